"""Checks that a table means what its user thinks, before something is learned from it.

A table that means something else is refused with a remedy: a target of measurements, numbers with a decimal comma. A
suspicious one gets a warning: identifiers and times among the features, few rows. Weights that are not counts are
scaled. All thresholds are here.
"""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tinybayes.errors import TinybayesError, error, warn
from tinybayes.model.variable import State

MANY_CLASSES = 50  # numbers with more distinct values need this many rows a value to be classes:
ROWS_A_CLASS = 10
FEW_ROWS = 20  # below it, nothing but the number of rows is looked at
DISTINCT = 0.9  # share of distinct values from which values are names of rows
HEAD = 200  # rows that are looked at first; most columns are cleared by them
FIRST = 32  # rows of a matrix by which most of its columns are cleared at once
TIMES = [(1e9 * unit, 2.0**31 * unit) for unit in (1, 1e3, 1e6, 1e9)]  # seconds since 1970, from 2001 to 2038, to ns

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")
_INTEGER = re.compile(r"\s*[-+]?\d+\s*")


def check_classes(classes: Sequence[State], rows: int, where: str, *, declared: bool = False) -> None:
    """Refuse a target whose values are measurements or names of rows; warn if there are few rows.

    Parameters
    ----------
    classes
        The distinct values of the target.
    rows
        The number of rows.
    where
        The target, as messages name it.
    declared
        Whether the source declares the values as categories; then they are classes.
    """
    texts = [value for value in classes if isinstance(value, str)]
    if _has_decimal_comma(texts):
        raise _decimal_comma(texts, where)
    count = len(classes)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in classes)
    continuous = numbers and count > max(MANY_CLASSES, rows / ROWS_A_CLASS)
    names = rows >= FEW_ROWS and count >= DISTINCT * rows
    if (continuous or names) and not declared:
        remedy = "choose another column" if not numbers else "cut it into classes, for example with pandas.cut"
        remedy += "; numbers that name classes can be written as text" if continuous and not names else ""
        raise error("classes", f"{count:,} distinct values in {rows:,} rows", where=where, remedy=remedy)
    check_rows(rows, count)


def check_rows(rows: int, classes: int = 0) -> None:
    """Warn if there are too few rows to learn from."""
    if rows < max(FEW_ROWS, 2 * classes):
        of = f" of {classes:,} classes" if classes else ""
        warn(f"only {rows:,} rows{of}: what is learned, and its error, is mostly chance; add rows")


def check_features(table: pd.DataFrame | np.ndarray) -> None:
    """Refuse numbers with a decimal comma, and warn of columns that look like identifiers or times."""
    first = table.iloc[:FIRST].to_numpy() if isinstance(table, pd.DataFrame) else table[:FIRST]
    left = np.flatnonzero(~_cleared(first)).tolist()
    if not left:
        return
    frame = table if isinstance(table, pd.DataFrame) else as_frame(table)
    suspicious = [str(frame.columns[i]) for i in left if _is_suspicious(frame.iloc[:, i])]
    if not suspicious:
        return
    shown = ", ".join(map(repr, suspicious[:5])) + (f" and {len(suspicious) - 5} more" if len(suspicious) > 5 else "")
    why = "the values do not come again in new rows, or follow the order of the table"
    warn(f"columns that look like identifiers or times: {shown}; {why}: drop what is not a measurement")


def _cleared(first: np.ndarray) -> np.ndarray:
    """Tell which columns have a number twice in the first rows, and none as large as a time."""
    if first.dtype.kind not in "iuf":  # not a matrix of numbers: each column is looked at alone
        return np.zeros(first.shape[1], dtype=bool)
    ordered = np.sort(first, axis=0)
    return (ordered[1:] == ordered[:-1]).any(axis=0) & ~(first >= TIMES[0][0]).any(axis=0)


def as_frame(table: np.ndarray) -> pd.DataFrame:
    """Return a matrix as a frame with the columns ``x0, x1, ...``."""
    frame = pd.DataFrame(table, columns=[f"x{i}" for i in range(table.shape[1])], copy=False)
    return frame.infer_objects() if table.dtype == object else frame


def _is_suspicious(column: pd.Series) -> bool:
    """Return whether the values are names of rows or times; refuse a decimal comma."""
    kind = column.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iuf":
        return _names_rows(column.to_numpy())
    if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_complex_dtype(kind):
        return False
    if pd.api.types.is_numeric_dtype(kind):  # of pandas' own types, with gaps
        return _names_rows(column.to_numpy(dtype=float, na_value=np.nan))
    known = column.dropna()
    head = known.iloc[:HEAD]
    texts = _distinct_texts(head)
    if _has_decimal_comma(texts):
        raise _decimal_comma(texts, f"column {column.name!r}")
    if len(head) < FEW_ROWS or len(texts) < DISTINCT * len(head):
        return False
    return len(_distinct_texts(known)) >= DISTINCT * len(known)


def _distinct_texts(column: pd.Series) -> list[str]:
    return list(dict.fromkeys(value for value in column.tolist() if isinstance(value, str)))


def _names_rows(column: np.ndarray) -> bool:
    """Return whether numbers are times, rise or fall from row to row, or number the rows in any order."""
    head = _known(column[:HEAD])
    if len(head) < FEW_ROWS:
        return False
    timed = any(low <= head[0] < high for low, high in TIMES)
    monotonic = _is_monotonic(head)
    integral = bool((head == np.rint(head)).all())
    if not (timed or monotonic or (integral and len(np.unique(head)) == len(head))):
        return False
    values = _known(column)
    if monotonic and _is_monotonic(values):
        return True
    low, high = float(values.min()), float(values.max())
    if any(start <= low and high < stop for start, stop in TIMES):
        return len(np.unique(values)) > len(values) / 2
    dense = integral and high - low < 2 * len(values)
    return dense and len(np.unique(values)) == len(values) and bool((values == np.rint(values)).all())


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def _is_monotonic(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all())


def _has_decimal_comma(texts: Sequence[str]) -> bool:
    """Return whether most texts are numbers with a decimal comma, and nearly all others integers."""
    commas = sum(_DECIMAL_COMMA.fullmatch(text) is not None for text in texts)
    if not commas or 2 * commas < len(texts):
        return False
    return commas + sum(_INTEGER.fullmatch(text) is not None for text in texts) >= DISTINCT * len(texts)


def _decimal_comma(texts: Sequence[str], where: str) -> TinybayesError:
    example = next(text for text in texts if _DECIMAL_COMMA.fullmatch(text))
    remedy = "write the numbers with a point, or read the table with pandas.read_csv(..., decimal=',')"
    return error("numbers with a decimal point", f"a comma in {example!r}", where=where, remedy=remedy)


def weight_sums(weight: np.ndarray) -> np.ndarray:
    """Return the sum of row weights, how many are positive, and how many are no integers; sums of batches add up."""
    fractional = np.count_nonzero(weight != np.rint(weight))
    with np.errstate(over="ignore"):  # an infinite sum leaves the weights as they are
        total = weight.sum()
    return np.array([total, np.count_nonzero(weight), fractional], dtype=float)


def weight_scale(sums: np.ndarray) -> float:
    """Return the factor that makes row weights count as rows.

    Integers are repetitions and stay as they are. Others tell only how rows compare; they are scaled to a mean of 1
    over the rows of positive weight. Otherwise weights that sum to 1 would stand for a table of a single row, in which
    smoothing and the description length of cut points outweigh the data.
    """
    total, positive, fractional = sums.tolist()
    scale = positive / total if fractional and total > 0 else 1.0
    return scale if np.isfinite(scale) and scale > 0 else 1.0


def repetitions(weight: np.ndarray) -> np.ndarray:
    """Scale row weights so that they count as rows; see `weight_scale`."""
    return weight * weight_scale(weight_sums(weight))
