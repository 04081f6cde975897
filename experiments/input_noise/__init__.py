"""Experiments on noise in the inputs of training, which is not in the papers."""
