"""How codes enter a neural network: as integers, with the unit that makes them about one in size."""

from dataclasses import dataclass

import numpy as np

from tinybayes.errors import error
from tinybayes.model import Dataset, Inputs, Variable

KINDS = ("standard", "shared", "one-hot")
STEPS = 16  # integers to a standard deviation, at least


@dataclass(frozen=True, eq=False)
class Columns:
    """The inputs of a network in training: ``unit`` times the integers that `inputs` makes of codes."""

    inputs: Inputs
    unit: float

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the real numbers of rows of codes, zero where they are missing."""
        codes = X[:, self.inputs.feature]
        value = np.where(self.inputs.state >= 0, codes == self.inputs.state, codes).astype(np.float32)
        scaled = (value * self.inputs.multiplier - self.inputs.center) * np.float32(self.unit)
        return np.where(codes >= 0, scaled, np.float32(0))


def columns(data: Dataset, kind: str, *, centred: bool) -> Columns:
    """Choose multipliers and centres on training rows.

    Kind "standard" gives each feature mean zero and a variance of about one, as in the paper; "shared" one factor for
    all features; "one-hot" an indicator for each state. Features whose states have no order always become indicators.
    `centred` subtracts the mean in "shared": not for images, whose surrounding zeros are dark pixels.
    """
    if kind not in KINDS:
        raise error(" or ".join(KINDS), repr(kind), where="inputs")
    feature: list[int] = []
    state: list[int] = []
    for i, variable in enumerate(data.variables):
        states = (-1,) if kind != "one-hot" and has_order(variable) else tuple(range(variable.cardinality))
        feature += [i] * len(states)
        state += states
    means, deviations = _moments(data)
    ordinal = np.array(state) < 0
    of = np.array(feature, dtype=np.int64)
    if kind == "standard" and ordinal.any():
        steps = max(STEPS, int(np.ceil(deviations[of[ordinal]].max())))
        multiplier = np.maximum(1, np.rint(steps / np.maximum(deviations, 1e-9))).astype(np.int64)
        multiplier[deviations < 1e-6] = 1  # a constant feature
        multiplier = np.where(ordinal, np.minimum(multiplier, 2**12)[of], steps)
        center = np.where(ordinal, np.rint(multiplier * means[of]), 0)
        return Columns(Inputs(of, np.array(state), multiplier, center), 1.0 / steps)
    spread = max(1.0, float(np.sqrt(np.mean(deviations**2)))) if ordinal.any() else 1.0
    multiplier = np.where(ordinal, 1, max(1, round(spread)))
    center = np.where(ordinal & centred, np.rint(means[of]), 0)
    return Columns(Inputs(of, np.array(state), multiplier, center), 1.0 / spread)


def has_order(variable: Variable) -> bool:
    """Tell whether the codes of a variable rise with something: it came from numbers, or has only two states."""
    numbers = all(isinstance(state, int | float) for state in variable.states)
    return (
        variable.has_intervals
        or variable.cardinality <= 2
        or (numbers and list(variable.states) == sorted(variable.states))
    )


def _moments(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of the codes of each feature, missing ones left out."""
    known = data.X >= 0
    count = np.maximum(known.sum(axis=0), 1)
    means = np.where(known, data.X, 0).sum(axis=0) / count
    squares = np.where(known, data.X - means, 0.0) ** 2
    return means, np.sqrt(squares.sum(axis=0) / count)
