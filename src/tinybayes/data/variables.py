"""Finding the variables of a table: which states a column has, or where to cut its numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tinybayes._kernels.encode import mark_values
from tinybayes.data.checks import repetitions
from tinybayes.data.discretize import MOST_BINS, learn_encodings
from tinybayes.data.encode import LOOK_UP_RANGE, as_numbers, as_texts, encode_column, infinity
from tinybayes.errors import error
from tinybayes.model import Cuts, Grid, State, Variable
from tinybayes.options import MOST_SEED, check_options, documented, option, options_of

Discretizer = Any  # a name, a scikit-learn discretiser, or None; scikit-learn has no types to say more
LARGEST = float(np.finfo(np.float32).max)  # numbers are encoded in single precision
_NUMBERS = ("integer", "floating", "decimal", "mixed-integer-float")  # pandas' names for objects that are numbers
Part = tuple[pd.DataFrame, pd.Series | None, np.ndarray | None]  # features, class, weight


@documented
@dataclass(frozen=True, kw_only=True)
class Discretization:
    """How columns become variables; the discretizer may also be an object of scikit-learn."""

    discretizer: Discretizer = option(  # noqa: RUF009 - it is a field
        "auto",
        "Cuts numeric columns: mdlp, uniform, quantile, histogram (between few values, else equal counts), grid (steps "
        "of a power of two), none (every number is a state) or auto (mdlp with a class).",
        metavar="NAME",
    )
    n_bins: int = option(8, "Bins of uniform, quantile and histogram; the most steps of grid.", low=2, high=MOST_BINS)
    max_states: int = option(1000, "Refuse columns with more distinct states.", low=1)
    keep_values: int = option(0, "Integer columns with at most this many distinct values are not cut.", low=0)
    sample_rows: int = option(200_000, "Rows on which cut points are found, when the table comes in batches.", low=1)
    seed: int = option(0, "Seed of that sample.", low=0, high=MOST_SEED)

    def __post_init__(self) -> None:
        for name in options_of(Discretization):
            value = getattr(self, name)
            if name != "discretizer" and not isinstance(value, int | np.integer):
                raise error("an integer", repr(value), where=name)
        check_options(self)


def learn_variables(
    parts: Iterable[Part], discretization: Discretization, declared: Mapping[str, tuple[State, ...]] | None = None
) -> tuple[tuple[Variable, ...], Variable | None]:
    """Find the features and the class in one pass over the parts of a table.

    A column of numbers is cut by the discretiser; text, categories and booleans keep their distinct values as
    states (sorted; declared categories in their declared order, whether seen or not). A column that is missing
    everywhere becomes a variable with the one state ``"any"``. Rows of weight zero are ignored.
    """
    summary = Summary(discretization, dict(declared or {}))
    for part in parts:
        summary.add(*part)
    return summary.features(), summary.class_variable()


def matrix_variables(
    X: np.ndarray, weight: np.ndarray | None, discretization: Discretization
) -> tuple[Variable, ...] | None:
    """Find the variables ``x0, x1, ...`` of a matrix of small integers, each value being a state.

    The same as `learn_variables`, in one pass over the matrix; None for other matrices and discretisations.
    """
    if X.dtype.kind not in "iu" or not X.size:
        return None
    lowest, highest = int(X.min()), int(X.max())
    limit = discretization.max_states if discretization.discretizer is None else discretization.keep_values
    if highest - lowest >= min(LOOK_UP_RANGE, limit):
        return None
    seen = np.zeros((X.shape[1], highest - lowest + 1), dtype=bool)
    mark_values(X, weight, lowest, seen)
    if not seen.any(axis=1).all():  # no row of positive weight
        return None
    return tuple(Variable(f"x{j}", tuple((np.flatnonzero(row) + lowest).tolist())) for j, row in enumerate(seen))


def distinct_values(column: pd.Series) -> list[State]:
    """Return the distinct known values (of categories, all) as plain scalars; a mixture of types counts as text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _plain(column.cat.categories.to_series())
    known = column.dropna()
    try:
        if known.dtype == object and pd.api.types.infer_dtype(known).startswith("mixed"):
            known = pd.Series(as_texts(known))  # pandas takes True and 1 for duplicates
        return _plain(known.drop_duplicates())
    except TypeError as problem:
        where = f"column {column.name!r}"
        raise error("numbers, text, categories or booleans", problem, where=where, remedy="drop it") from problem


def is_numeric(column: pd.Series) -> bool:
    """Return whether a column holds numbers (or nothing at all), rather than states."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        got, remedy = f"dates ({column.dtype})", "convert it, for example to the month or to seconds"
        raise error("numbers, text, categories or booleans", got, where=f"column {column.name!r}", remedy=remedy)
    if pd.api.types.is_complex_dtype(column.dtype):
        raise error("real numbers", "complex ones", where=f"column {column.name!r}")
    if pd.api.types.is_bool_dtype(column.dtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype) or column.isna().all():
        return True
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS


def _plain(values: pd.Series) -> list[State]:
    scalars = [v.item() if isinstance(v, np.generic) else v for v in values.tolist()]
    if all(isinstance(v, bool) for v in scalars):
        return scalars
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in scalars):
        whole = all(float(v).is_integer() for v in scalars)
        return [int(v) for v in scalars] if whole else [float(v) for v in scalars]
    return list(dict.fromkeys(as_texts(pd.Series(scalars, dtype=object)).tolist()))


@dataclass
class Summary:
    """The result of one pass over a table: the states of every column, and a sample of its numbers."""

    discretization: Discretization
    declared: dict[str, tuple[State, ...]]
    target: str | None = None  # the name of the class
    states: dict[str, dict[State, None]] = field(default_factory=dict)
    numeric: dict[str, bool] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # numeric columns that are cut
    classes: dict[State, None] = field(default_factory=dict)
    pieces: list[Part] = field(default_factory=list)
    priority: np.ndarray = field(default_factory=lambda: np.empty(0))

    def add(self, frame: pd.DataFrame, target: pd.Series | None, weight: np.ndarray | None) -> None:
        """Add a batch."""
        if weight is not None and not (weight > 0).all():
            positive = weight > 0
            frame, weight = frame[positive], weight[positive]
            target = None if target is None else target[positive]
        for column in [frame[name] for name in frame.columns] + ([] if target is None else [target]):
            if isinstance(column.dtype, pd.CategoricalDtype):
                self.declared.setdefault(str(column.name), tuple(distinct_values(column)))
        if target is not None:
            self.target = str(target.name)
            self.see_class(target)
        for name in frame.columns:
            self.see(name, frame[name])
        cut = [name for name in frame.columns if self.numeric[name] and self.discretizer is not None]
        # A selection is a copy, even of all columns.
        self.sample(frame if len(cut) == len(frame.columns) else frame[cut], target, weight)

    def merge(self, other: "Summary") -> None:
        """Add the summary of other rows of the same table."""
        self.classes.update(other.classes)
        self._limit(self.target, self.classes)
        for name, states in other.states.items():
            if states or not self.states.get(name):
                self._set_type(name, other.numeric[name])
            mine = self.states.setdefault(name, {})
            mine.update(states)
            if self.numeric[name] and self.discretizer is not None:
                self._keep_or_cut(name, mine, cut=name in other.cut or name in self.cut)
            elif name not in self.declared:
                self._limit(name, mine)
        pieces = [*self.pieces, *other.pieces]
        self.pieces = [part for part in pieces if len(part[0])] or pieces[:1]
        self.priority = np.concatenate([self.priority, other.priority])
        self._thin(2 * self.discretization.sample_rows)

    @property
    def discretizer(self) -> Discretizer:
        """The chosen discretiser, with ``"auto"`` resolved."""
        asked = self.discretization.discretizer
        if isinstance(asked, str) and asked == "auto":
            return None if self.target is None else "mdlp"
        return asked

    def see_class(self, target: pd.Series) -> None:
        """Add values of the class."""
        if is_numeric(target):
            _refuse_infinite(target)
        self.classes.update(dict.fromkeys(distinct_values(target)))
        self._limit(self.target, self.classes)

    def see(self, name: str, column: pd.Series) -> None:
        """Add values of a feature."""
        if name in self.declared:
            self.numeric[name] = False
            self.states[name] = dict.fromkeys(self.declared[name])
            return
        if len(column) and column.isna().all() and not isinstance(column.dtype, pd.CategoricalDtype):
            self.numeric.setdefault(name, True)
            self.states.setdefault(name, {})
            return
        numeric = is_numeric(column)
        if numeric:
            _refuse_infinite(column)
        self._set_type(name, numeric)
        seen = self.states.setdefault(name, {})
        if not numeric or self.discretizer is None:
            seen.update(dict.fromkeys(distinct_values(column)))
            self._limit(name, seen)
        elif name not in self.cut:
            seen.update(dict.fromkeys(distinct_values(column) if self.discretization.keep_values else ()))
            self._keep_or_cut(name, seen, cut=not self.discretization.keep_values)

    def _set_type(self, name: str, numeric: bool) -> None:
        """Note whether a column holds numbers; all its batches must agree, but for those without a value."""
        if self.numeric.get(name, numeric) != numeric and self.states.get(name):
            raise error("one type in all batches", "numbers in one and text in another", where=f"column {name!r}")
        self.numeric[name] = numeric

    def _keep_or_cut(self, name: str, seen: dict[State, None], *, cut: bool) -> None:
        if cut or len(seen) > self.discretization.keep_values or not all(isinstance(value, int) for value in seen):
            self.cut.add(name)
            seen.clear()
            seen[0] = None  # marks that a number was seen

    def _limit(self, name: str | None, seen: dict[State, None]) -> None:
        if len(seen) > self.discretization.max_states:
            limit = f"at most {self.discretization.max_states:,} distinct values"
            remedy = "drop the column, discretise it, or raise max_states"
            classes = "choose a column of classes as the target, or cut it into classes"
            remedy = classes if seen is self.classes else remedy
            raise error(limit, f"{len(seen):,}", where=f"column {name!r}", remedy=remedy)

    def sample(
        self,
        frame: pd.DataFrame,
        target: pd.Series | None,
        weight: np.ndarray | None,
        priority: np.ndarray | None = None,
    ) -> None:
        """Keep the batch; from the second on, keep the rows of smallest random priority."""
        if priority is None:
            generator = np.random.default_rng([self.discretization.seed, len(self.priority), len(self.pieces)])
            priority = generator.random(len(frame))
        self.pieces.append((frame, target, weight))
        self.priority = np.concatenate([self.priority, priority])
        self._thin(2 * self.discretization.sample_rows)

    def _thin(self, most: int) -> None:
        """Keep at most `most` rows, those of smallest priority; a table in one batch is not thinned."""
        if len(self.pieces) > 1 and len(self.priority) > most:
            keep = np.sort(np.argsort(self.priority, kind="stable")[: self.discretization.sample_rows])
            frame, target, weight = self._joined()
            self.priority = self.priority[keep]
            target = None if target is None else target.iloc[keep]
            self.pieces = [(frame.iloc[keep], target, None if weight is None else weight[keep])]

    def _joined(self) -> Part:
        if len(self.pieces) == 1:
            return self.pieces[0]
        frames, targets, weights = zip(*self.pieces, strict=True)
        target = None if targets[0] is None else pd.concat(targets, ignore_index=True)
        weight = None if weights[0] is None else np.concatenate(weights)
        return pd.concat(frames, ignore_index=True), target, weight

    def class_variable(self) -> Variable | None:
        """Return the class, if there is one."""
        if self.target is None:
            return None
        states = self._states(self.target, self.classes) if self.classes else ()
        where = f"target {self.target!r}"
        if broken := [state for state in states if isinstance(state, float)]:
            remedy = "round it or cut it into classes, or choose another column"
            raise error("classes", f"measurements such as {broken[0]}", where=where, remedy=remedy)
        if len(states) < 2:
            raise error("at least 2 classes", list(states), where=where, remedy="add other rows")
        return Variable(self.target, states)

    def features(self) -> tuple[Variable, ...]:
        """Return one variable for each column."""
        if not self.states:
            raise error("at least one feature column", "none", where="table")
        self._thin(self.discretization.sample_rows)  # otherwise the last batches would be over-represented
        frame, target, weight = self._joined()
        of: dict[str, Cuts | Grid] = {}
        if self.discretizer is not None and len(frame.columns):
            variable = self.class_variable()
            y = None if target is None or variable is None else encode_column(target, variable)
            # A column without a value in the first batches was kept too, and may turn out to hold states.
            names = [name for name in frame.columns if self.numeric[name] and not self._kept(name)]
            columns = [_numbers(frame[name]) for name in names]
            weight = None if weight is None else repetitions(weight)
            encodings = learn_encodings(columns, self.discretizer, y, weight, n_bins=self.discretization.n_bins)
            of = dict(zip(names, encodings, strict=True))
        return tuple(self._variable(name, of) for name in self.states)

    def _kept(self, name: str) -> bool:
        """Return whether a column of numbers has few enough values to keep them."""
        return bool(self.states[name]) and name not in self.cut

    def _variable(self, name: str, encodings: dict[str, Cuts | Grid]) -> Variable:
        if name in encodings or not self.states[name]:
            return Variable.from_encoding(name, encodings.get(name, Cuts(())))
        return Variable(name, self._states(name, self.states[name]))

    def _states(self, name: str, seen: Iterable[State]) -> tuple[State, ...]:
        """Sort the values collected from the batches; a boolean column always has both states."""
        values = list(seen)
        if name in self.declared:
            return self.declared[name]
        if all(isinstance(v, bool) for v in values):
            return (False, True)
        if any(isinstance(v, str) for v in values):
            return tuple(sorted({str(v) for v in values}))
        if len({float(v) for v in values}) < len(values):
            expected = "numbers that differ in double precision, such as integers up to 2**53"
            raise error(expected, max(values), where=f"column {name!r}", remedy="turn the column into text")
        return tuple(sorted(values))


def _numbers(column: pd.Series) -> np.ndarray:
    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf"
    return column.to_numpy() if plain else as_numbers(column)


def _refuse_infinite(column: pd.Series) -> None:
    values = _numbers(column)
    if values.dtype.kind == "f" and (large := np.abs(values) > LARGEST).any():
        row = int(np.argmax(large))
        where = f"column {column.name!r}, row {row}"
        if np.isinf(values[row]):
            raise infinity(where)
        raise error(f"numbers up to {LARGEST:.3g}", f"{values[row]:g}", where=where, remedy="scale the column")
