"""The parts of the native model file: JSON fields, packed tensors, and models of each kind."""
