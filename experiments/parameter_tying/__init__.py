"""Experiments of *On Parameter Tying by Quantization* (Chou and others, 2016)."""
