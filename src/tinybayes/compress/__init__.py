"""Model to smaller model."""

from tinybayes.compress.fixed_point import to_format

__all__ = ["to_format"]
