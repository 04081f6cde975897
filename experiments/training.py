"""Training of configurations to the end: the library returns what an interrupt cut short, which is no result."""

from collections.abc import Sequence
from typing import Any, TypeVar

from tinybayes.learn.training import nets, tables
from tinybayes.model import Dataset

Result = TypeVar("Result", tables.Trained, nets.TrainedNet)


def train_tables(
    data: Dataset, configurations: Sequence[tables.TableConfiguration], *more: Any, **named: Any
) -> list[tables.Trained]:
    """Train as the library's `train_tables` does, or end with the interrupt."""
    return _in_full(tables.train_tables(data, configurations, *more, **named), len(configurations))


def train_nets(
    data: Dataset, configurations: Sequence[nets.NetConfiguration], *more: Any, **named: Any
) -> list[nets.TrainedNet]:
    """Train as the library's `train_nets` does, or end with the interrupt."""
    return _in_full(nets.train_nets(data, configurations, *more, **named), len(configurations))


def _in_full(results: list[Result], wanted: int) -> list[Result]:
    """Return the results if none is missing or was cut short."""
    if len(results) < wanted or not all(result.complete for result in results):
        raise KeyboardInterrupt
    return results
