"""Raw rows for programs: encodings of features, hostile values, and the codes that Python gives to values."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinybayes.model import Cuts, Integers, Variable
from tinybayes.model.encoding import HIGHEST, LOWEST, Grid

SPECIAL_FLOATS = (0.0, -0.0, np.inf, 1e-45, 1e-39, 1.2e-38, 1e38, 3.4028235e38, 0.5, 255, 256, 65535, 65536, 2.0**24)
SPECIAL_FLOATS += (2.0**24 + 2, 2.0**30, 2.0**31, 2.0**31 + 256, 2.0**32, 4e9, 1e19)
SPECIAL_INTEGERS = (
    LOWEST,
    LOWEST + 1,
    HIGHEST,
    HIGHEST - 1,
    0,
    -1,
    1,
    255,
    256,
    257,
    65535,
    65536,
    2**24 + 1,
    -(2**24) - 1,
)


def variable_of(name: str, encoding: Cuts | Grid | Integers | int) -> Variable:
    """Make a variable with an encoding; a number stands for so many categories."""
    if isinstance(encoding, int):
        return Variable(name, tuple(f"s{k}" for k in range(encoding)))
    return Variable.from_encoding(name, encoding)


def states_of(encoding: Cuts | Grid | Integers | int) -> int:
    """Return the number of states."""
    return encoding if isinstance(encoding, int) else encoding.count


def with_encodings(net: Any, encodings: Sequence[Cuts | Grid | Integers | int]) -> Any:
    """Give each feature of a model one of the encodings that has as many states."""
    left, variables = list(encodings), []
    for i, variable in enumerate(net.variables):
        encoding = next(e for e in left if states_of(e) == variable.cardinality)
        left.remove(encoding)
        variables.append(variable_of(f"v{i}", encoding))
    return replace(net, variables=tuple(variables))


def expected_codes(variables: Sequence[Variable], values: np.ndarray) -> np.ndarray:
    """Return the codes of raw values in Python: categories by their code, integers by their value; -1 where missing."""
    codes = []
    for variable, column in zip(variables, values.T, strict=True):
        encoding = variable.encoding
        if variable.has_intervals:
            codes.append(encoding.codes(column))
            continue
        low = encoding.low if isinstance(encoding, Integers) else 0
        shifted = column - low
        known = (shifted >= 0) & (shifted < variable.cardinality) & (np.floor(column) == column)
        codes.append(np.where(known, np.where(known, shifted, 0), -1))
    return np.array(codes, dtype=np.int64).T


def float_rows(variables: Sequence[Variable], rng: np.random.Generator, rows: int) -> np.ndarray:
    """Draw float32 values: any bits, special ones, neighbours of all cut points, and values within the range."""
    columns, hostile = [], _hostile(rng, rows)
    for variable in variables:
        steps = _edges(variable)
        near = rng.choice(steps.astype(np.float32), rows)
        beside = _step(near, rng.integers(-2, 3, rows))
        special = rng.choice(np.array(SPECIAL_FLOATS, np.float32), rows) * rng.choice(np.float32([-1, 1]), rows)
        anything = rng.integers(0, 2**32, rows, dtype=np.uint32).view(np.float32)
        payload = rng.choice(np.uint32([1, 2**22 - 1, 2**22, 2**23 - 1]), rows)  # the least and the most of both kinds
        payload = np.where(rng.random(rows) < 0.5, payload, rng.integers(1, 2**23, rows, dtype=np.uint32))
        sign = rng.integers(0, 2, rows, dtype=np.uint32) << np.uint32(31)
        missing = (payload | np.uint32(0x7F800000) | sign).view(np.float32)
        kinds = [near, beside, special, anything, missing, _inside(variable, rng, rows).astype(np.float32)]
        columns.append(_chosen(kinds, [0.25, 0.15, 0.15, 0.35, 0.1], hostile, rng))
    return np.array(columns, dtype=np.float32).T.copy()


def int_rows(variables: Sequence[Variable], rng: np.random.Generator, rows: int) -> np.ndarray:
    """Draw 32-bit integers: any bits, special ones, neighbours of all cut points, and values within the range."""
    columns, hostile = [], _hostile(rng, rows)
    for variable in variables:
        steps = np.clip(np.ceil(_edges(variable)), LOWEST, HIGHEST).astype(np.int64)
        beside = np.clip(rng.choice(steps, rows) + rng.integers(-2, 3, rows), LOWEST, HIGHEST)
        special = rng.choice(np.array(SPECIAL_INTEGERS, np.int64), rows)
        anything = rng.integers(LOWEST, HIGHEST, rows, endpoint=True)
        missing = np.full(rows, LOWEST)
        kinds = [beside, special, anything, missing, np.clip(np.floor(_inside(variable, rng, rows)), LOWEST, HIGHEST)]
        columns.append(_chosen(kinds, [0.45, 0.1, 0.35, 0.1], hostile, rng))
    return np.array(columns, dtype=np.int32).T.copy()


def numbers_of(values: np.ndarray) -> np.ndarray:
    """Return raw values as doubles, NaN where they are missing."""
    if values.dtype == np.int32:
        return np.where(values == LOWEST, np.nan, values)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64)


def _edges(variable: Variable) -> np.ndarray:
    """Return the numbers at which a code begins or ends, in order."""
    if variable.has_intervals:
        cuts = variable.encoding.cuts
        return cuts if len(cuts) else np.zeros(1)
    low = variable.encoding.low if isinstance(variable.encoding, Integers) else 0
    return np.arange(low - 2, low + variable.cardinality + 2, dtype=np.float64)


def _step(numbers: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the float32 so many steps above or below."""
    with np.errstate(over="ignore", under="ignore"):
        for k in (1, 2):
            numbers = np.where(steps >= k, np.nextafter(numbers, np.float32(np.inf)), numbers)
            numbers = np.where(steps <= -k, np.nextafter(numbers, np.float32(-np.inf)), numbers)
    return numbers


def _inside(variable: Variable, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Draw values of which few are missing: between the outermost cut points, or states."""
    steps = _edges(variable)
    if variable.has_intervals:
        return rng.uniform(steps[0] / 2, steps[-1] / 2, rows) * 2  # the range itself may be infinite
    return rng.choice(steps[2:-2], rows)


def _hostile(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Draw the share of hostile values of each row: none or few in most rows, which are complete, and all in some."""
    return rng.choice([0.0, 0.03, 0.3, 1.0], rows)


def _chosen(kinds: list[np.ndarray], share: list[float], hostile: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix values of several kinds by their share; the last kind takes the place of those that are not hostile."""
    which = rng.choice(len(share), len(hostile), p=share)
    which = np.where(rng.random(len(hostile)) < hostile, which, len(share))
    return np.choose(which, kinds)


def plain_rows(
    variables: Sequence[Variable], rng: np.random.Generator, rows: int, raw: str, share: float
) -> np.ndarray:
    """Draw values that are states or lie between cut points; a share of them is missing."""
    values = np.array([_inside(variable, rng, rows) for variable in variables]).T.reshape(rows, len(variables))
    gaps = rng.random(values.shape) < share
    if raw == "int":
        return np.where(gaps, LOWEST, np.floor(values)).astype(np.int32)
    return np.where(gaps, np.nan, values).astype(np.float32)
