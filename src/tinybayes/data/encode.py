"""From raw values to the codes of given variables.

Unseen values follow one rule: a value that is none of the states (or cannot be read as a number
where one is needed) is *missing*, code -1, and is summed out at prediction. Nothing raises at prediction time because
of a new category.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from tinybayes._kernels.encode import encode_numbers, look_up
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import TinybayesError, error
from tinybayes.model import MISSING, Integers, Variable
from tinybayes.model.dataset import code_dtype
from tinybayes.model.encoding import Intervals, single
from tinybayes.model.layout import starts

BLOCK = 2**14  # rows of a unit of work
LOOK_UP_RANGE = 2**12  # integers whose range is at most this are encoded by a table


def encode_frame(frame: pd.DataFrame, variables: Sequence[Variable]) -> np.ndarray:
    """Encode the columns named like the variables, in their order; other columns are ignored."""
    names = [variable.name for variable in variables]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        expected, got = f"the columns {_listing(names)}", f"a table without {_listing(absent)}"
        raise error(expected, got, where="table", remedy="give the table the model was trained for")
    columns = [frame[name] for name in names]
    if columns and all(isinstance(c.dtype, np.dtype) and c.dtype.kind in "iuf" for c in columns):
        return encode_matrix(frame[names].to_numpy(), variables)
    codes = _empty(len(frame), variables)
    for position, (column, variable) in enumerate(zip(columns, variables, strict=True)):
        codes[:, position] = encode_column(column, variable)
    return codes


def encode_rows(
    frame: pd.DataFrame, variables: Sequence[Variable], target: Variable | None, weight: str | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return the codes of the features, those of the class where its column is there, and the row weights."""
    known = target is not None and target.name in frame.columns
    y = encode_column(frame[target.name], target) if target is not None and known else None
    return encode_frame(frame, variables), y, None if weight is None else row_weights(frame[weight])


def encode_matrix(X: np.ndarray, variables: Sequence[Variable]) -> np.ndarray:
    """Encode a matrix with one column for each variable."""
    if X.ndim != 2 or X.shape[1] != len(variables):
        raise error(f"a matrix with {len(variables)} columns", f"shape {X.shape}", where="X")
    if X.dtype.kind in "iu" and X.size:
        lowest, highest = int(X.min()), int(X.max())
        if highest - lowest < LOOK_UP_RANGE:
            table = _look_up_table(tuple(variables), lowest, highest)
            if table is not None:
                codes = np.empty(X.shape, dtype=table.dtype)
                for_blocks(lambda start, stop: look_up(X, lowest, table, start, stop, codes), len(X), BLOCK)
                return codes
    if X.dtype.kind not in "iuf" or not all(_is_number(v) for v in variables):
        frame = pd.DataFrame(X, columns=[v.name for v in variables])
        codes = _empty(len(X), variables)
        for position, variable in enumerate(variables):
            codes[:, position] = encode_column(frame.iloc[:, position].infer_objects(), variable)
        return codes
    if X.dtype.kind == "f" and np.isinf(X).any():
        raise infinity("X")
    codes = _empty(len(X), variables)
    keys = [v.encoding.thresholds if isinstance(v.encoding, Intervals) else _numbers_of(v) for v in variables]
    # Cut points are increasing, states in any order.
    order = {j: np.argsort(keys[j]) for j, v in enumerate(variables) if not v.has_intervals}
    first = starts(len(key) for key in keys)
    exact = np.array([not v.has_intervals for v in variables])
    rounded = np.array([_is_rounded(v) for v in variables])
    flat = np.concatenate([key[order[j]] if j in order else key for j, key in enumerate(keys)] or [np.empty(0)])
    for_blocks(lambda start, stop: encode_numbers(X, first, flat, exact, rounded, start, stop, codes), len(X), BLOCK)
    for j, states in order.items():
        if not np.array_equal(states, np.arange(len(states))):
            codes[:, j] = np.append(states, MISSING)[codes[:, j]]
    return codes


@lru_cache(maxsize=16)  # a model is queried many times
def _look_up_table(variables: tuple[Variable, ...], lowest: int, highest: int) -> np.ndarray | None:
    """Return the code of each variable for the integers from `lowest` to `highest`; None for other states."""
    if not all(_is_number(variable) for variable in variables):
        return None
    values = np.arange(lowest, highest + 1)
    table = np.full((len(variables), len(values)), MISSING, dtype=_empty(0, variables).dtype)
    for codes, variable in zip(table, variables, strict=True):
        if isinstance(variable.encoding, Intervals):
            codes[:] = variable.encoding.codes(values)
            continue
        for code, state in enumerate(variable.states):
            if lowest <= state <= highest and state == int(state):  # type: ignore[operator]
                codes[int(state) - lowest] = code
    return table


def encode_column(column: pd.Series, variable: Variable) -> np.ndarray:
    """Encode one column of any type."""
    if isinstance(column.dtype, pd.CategoricalDtype):  # each category once
        used = column.cat.remove_unused_categories().cat
        codes = encode_column(pd.Series(used.categories, name=column.name), variable)
        return np.append(codes, MISSING)[used.codes]
    if isinstance(variable.encoding, Intervals):
        numbers = as_numbers(column)
        if np.isinf(numbers).any():
            raise infinity("X" if column.name is None else f"column {column.name!r}")
        return variable.encoding.codes(numbers)
    if _is_number(variable):
        index, numbers = pd.Index(_numbers_of(variable)), as_numbers(column)
        return np.asarray(index.get_indexer(pd.Index(single(numbers) if _is_rounded(variable) else numbers)))
    index = pd.Index([str(s).casefold() for s in variable.states], dtype=object)
    if not index.is_unique or not all(isinstance(s, bool) for s in variable.states):
        index = pd.Index([str(s) for s in variable.states], dtype=object)
        _check_distinct(index, variable)
        return np.asarray(index.get_indexer(pd.Index(as_texts(column), dtype=object)))
    texts = [t if t is None else {"1": "true", "0": "false"}.get(t, t.casefold()) for t in as_texts(column)]
    return np.asarray(index.get_indexer(pd.Index(texts, dtype=object)))


def _numbers_of(variable: Variable) -> np.ndarray:
    numbers = np.array(variable.states, dtype=float)
    _check_distinct(pd.Index(numbers), variable)
    return numbers


def _check_distinct(index: pd.Index, variable: Variable) -> None:
    """Refuse states that no cell of a table tells apart: 1 and '1', or integers that are the same double."""
    if not index.is_unique:
        got = f"{index[index.duplicated()][0]} twice"
        remedy = "rename one of these states"
        raise error("states that differ in a table", got, where=f"variable {variable.name!r}", remedy=remedy)


def as_numbers(column: pd.Series) -> np.ndarray:
    """Read a column as float64; values that are not numbers become NaN."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        return column.to_numpy(dtype=float)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan))


def row_weights(column: pd.Series) -> np.ndarray:
    """Read a column of row weights."""
    values = as_numbers(column)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise error("finite numbers that are not negative", "others", where=f"weight column {column.name!r}")
    return values


def as_texts(column: pd.Series) -> np.ndarray:
    """Read a column as strings, None where missing; integral numbers lose their decimal point (1.0 is '1')."""
    missing = column.isna().to_numpy()
    values = column.astype(object).to_numpy()
    texts = np.empty(len(values), dtype=object)
    cache: dict[object, str] = {}
    for position in np.flatnonzero(~missing):
        value = values[position]
        key = (type(value), value)
        if key not in cache:
            whole = isinstance(value, float | np.floating) and float(value).is_integer()
            cache[key] = str(int(value)) if whole else str(value)
        texts[position] = cache[key]
    return texts


def _is_number(variable: Variable) -> bool:
    """Return whether a variable takes numbers: cut points, or states that are numbers."""
    return variable.has_intervals or all(
        isinstance(state, int | float) and not isinstance(state, bool) for state in variable.states
    )


def _is_rounded(variable: Variable) -> bool:
    """Return whether values are rounded to float32 before they are compared with states; cut points see to it alone."""
    return isinstance(variable.encoding, Integers) and variable.encoding.is_single


def _empty(rows: int, variables: Sequence[Variable]) -> np.ndarray:
    largest = max((variable.cardinality for variable in variables), default=1)
    return np.empty((rows, len(variables)), dtype=code_dtype(largest))


def infinity(where: str) -> TinybayesError:
    """Return the error for infinite values."""
    return error("finite numbers", "infinity", where=where, remedy="replace it, or leave the cell empty")


def _listing(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
