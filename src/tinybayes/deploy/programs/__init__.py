"""Models as programs, one module for each target."""
