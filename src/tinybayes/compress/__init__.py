"""Model to smaller model."""

from tinybayes.compress._likelihood import mean_log_likelihood
from tinybayes.compress.fixed_point import quantize
from tinybayes.compress.levels import LevelPath, optimal_levels
from tinybayes.compress.tie import Tied, tie
from tinybayes.compress.tie_circuit import TiedCircuit, tie_circuit

__all__ = [
    "LevelPath",
    "Tied",
    "TiedCircuit",
    "mean_log_likelihood",
    "optimal_levels",
    "quantize",
    "tie",
    "tie_circuit",
]
