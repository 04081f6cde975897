"""Generated C in Python: read, run on a few rows, and counted; no compiler is needed."""
