"""Model to smaller model."""

from tinybayes.compress.levels import LevelPath, optimal_levels
from tinybayes.compress.quantize import quantize
from tinybayes.compress.tie import Tied, tie

__all__ = ["LevelPath", "Tied", "optimal_levels", "quantize", "tie"]
