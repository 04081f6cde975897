"""The parts of the native model file: JSON fields, packed tensors, and one module for each kind of model."""
