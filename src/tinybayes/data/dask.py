"""Tables on a Dask cluster: partitions are scanned and counted where they are, and only counts travel.

Dask is loaded when a function here is called, and not before: ``pip install 'tinybayes[distributed]'`` brings it.
"""

import os
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tinybayes.data._arrow import ArrowEncoder
from tinybayes.data._arrow_tables import simple
from tinybayes.data._scan import Scanner
from tinybayes.data._table import categories, plain
from tinybayes.data.checks import weight_scale, weight_sums
from tinybayes.data.encode import encode_rows, row_weights
from tinybayes.data.tables import choose_features
from tinybayes.data.variables import Discretization, Summary
from tinybayes.errors import TinybayesError, error
from tinybayes.files import is_file
from tinybayes.model import Dataset, State, Variable
from tinybayes.model.dataset import Columns
from tinybayes.model.record import Nodes

if TYPE_CHECKING:
    from distributed import Client

WHERE = "Dask frame"
FAN_IN = 8  # results that a worker adds up at a time
RETRIES = 3  # of a task whose worker failed
PATIENCE = 10  # seconds to wait for a scheduler

Count = Callable[[Iterable[Columns]], np.ndarray]


@dataclass(frozen=True, eq=False)
class DaskTable(Nodes):
    """A Dask frame seen through variables, for every learner that needs no more than counts."""

    frame: Any = field(repr=False)  # the Dask frame
    variables: tuple[Variable, ...]  # the features and the class
    target: Variable | None = None
    weight: str | None = None  # name of a column of row weights
    client: "Client | None" = None  # where to compute; None for Dask's own choice
    weight_scale: float = 1.0  # the factor of the row weights

    def __iter__(self) -> Iterator[Dataset]:
        """Fetch one partition after another, for functions that need rows, such as an evaluation."""
        encode = partial(_encode, self.variables, self.target, self.weight, self.weight_scale)
        for part in self.frame.to_delayed():
            X, y, weight = _compute(_lazy(encode)(part), self.client)
            if X.shape[1]:
                yield Dataset(self.variables, self.target, X.T, y, weight)

    def total(self, count: Count) -> np.ndarray:
        """Return the sum of `count` over the partitions, each counted on the worker that holds it."""
        work = _lazy(partial(_count, self.variables, self.target, self.weight, self.weight_scale, count))
        return np.asarray(_compute(_tree([work(part) for part in self.frame.to_delayed()], _add), self.client))


def open_dask(
    frame: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    discretization: Discretization | None = None,
    client: "Client | str | os.PathLike[str] | None" = None,
) -> DaskTable:
    """Open a table on a Dask cluster: one pass finds its variables, later passes count.

    Parameters
    ----------
    frame
        A Dask DataFrame, or a path (or pattern, or list) of Parquet files that the workers can read.
    target, features, weight, discretization
        As for `open_dataset`. Cut points are found on a uniform sample of ``discretization.sample_rows`` rows.
    client
        A `distributed.Client`, or an argument of `connect`; by default the current client, else threads here.

    Returns
    -------
    DaskTable
        Data for `learn_classifier(training="ml")`, `chow_liu`, `maximum_likelihood` and `count_tables`.
    """
    frames = _import("dask.dataframe")
    client = connect(client) if isinstance(client, str | os.PathLike) else client
    if isinstance(frame, str | os.PathLike | list):
        frame = frames.read_parquet(frame)
    if not isinstance(frame, frames.DataFrame):
        raise error("a Dask DataFrame, or paths of Parquet files", type(frame).__name__, where=WHERE)
    _check_workers(client)
    discretization = discretization or Discretization()
    frame = frame.rename(columns=str)
    chosen = choose_features(list(frame.columns), target, features, weight, WHERE)
    frame = frame[[*chosen, *(name for name in (target, weight) if name is not None)]]
    work = _lazy(partial(_scan, chosen, target, weight, discretization, _declared(frame)))
    parts = [work(part, number) for number, part in enumerate(frame.to_delayed())]
    summary = _compute(_tree(parts, _merge), client)
    if summary is None:
        raise error("at least one row", "none", where=WHERE)
    summary.states = {name: summary.states[name] for name in chosen}
    scale = 1.0
    if weight is not None:
        sums = [_lazy(_weight_sums)(part) for part in frame[weight].to_delayed()]
        scale = weight_scale(_compute(_tree(sums, _add), client))
    return DaskTable(frame, summary.features(), summary.class_variable(), weight, client, scale)


def connect(address: str | os.PathLike[str]) -> "Client":
    """Connect to a Dask scheduler, given by its address or by its scheduler file (``.json``)."""
    distributed = _import("distributed")
    text = os.fspath(address)
    remedy = "start one with 'dask scheduler', and workers with 'dask worker'"
    if text.endswith(".json") and not is_file(text):
        raise error("a scheduler file", "none of that name", where=text, remedy=remedy)
    try:
        by_file = {"scheduler_file": text} if text.endswith(".json") else {"address": text}
        client = distributed.Client(**by_file, timeout=f"{PATIENCE}s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as problem:
        raise error("a Dask scheduler", problem, where=text, remedy=remedy) from problem
    try:
        _check_workers(client)
    except TinybayesError:
        client.close()
        raise
    return client


def _import(name: str) -> Any:
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as problem:
        remedy = "pip install 'tinybayes[distributed]'"
        raise error("Dask", f"no module {problem.name!r}", where="open_dask", remedy=remedy) from problem


def _check_workers(client: "Client | None") -> None:
    """Refuse a cluster on which the package cannot be imported, before it fails in the middle of the work."""
    if client is None:
        return
    look = (pkgutil.get_data, "tinybayes", "py.typed")  # of the standard library: it travels where ours cannot
    replies = client.run(*look, on_error="return")
    without = [address for address, result in replies.items() if isinstance(result, BaseException)]
    try:
        client.run_on_scheduler(*look)
    except ImportError:
        without.append("the scheduler")
    if without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        got = f"no module 'tinybayes' on {', '.join(without[:3])}{more}"
        remedy = "install the same version of tinybayes where the scheduler and the workers run"
        raise error("a cluster that can import tinybayes", got, where="Dask cluster", remedy=remedy)


def _lazy(work: Callable[..., Any]) -> Any:
    return _import("dask").delayed(work, pure=False)


def _tree(parts: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Join results by a few at a time, on the workers."""
    while len(parts) > 1:
        parts = [_lazy(join)(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def _compute(value: Any, client: "Client | None") -> Any:
    try:
        if client is None:
            return value.compute()
        return client.compute(value, retries=RETRIES).result()
    except TinybayesError:
        raise
    except Exception as problem:  # whatever a worker raised, a lost cluster included
        text = str(problem).strip().splitlines()
        got = f"{type(problem).__name__}: {text[0] if text else ''}"
        remedy = "see the log of the workers; where they ran out of memory, use smaller partitions"
        raise error("workers that finish their work", got, where="Dask cluster", remedy=remedy) from problem


def _declared(frame: Any) -> dict[str, tuple[State, ...]]:
    """Return the categories that are known without looking at the partitions."""
    meta = plain(frame._meta, WHERE)
    return {name: states for name, states in categories(meta).items() if frame[name].cat.known}


def _as_arrow(part: pd.DataFrame) -> pa.Table | None:
    """Return a partition as Arrow table, without a copy where that is possible; None for mixtures of types."""
    try:
        return simple(pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata(), WHERE)
    except pa.ArrowException:
        return None


def _scan(
    features: Sequence[str],
    target: str | None,
    weight: str | None,
    discretization: Discretization,
    declared: dict[str, tuple[State, ...]],
    part: pd.DataFrame,
    number: int,
) -> Summary | None:
    """Summarise a partition."""
    if not len(part):
        return None
    part = plain(part, WHERE)
    priority = np.random.default_rng([discretization.seed, number]).random(len(part))
    rows = np.sort(np.argsort(priority, kind="stable")[: discretization.sample_rows])
    table = _as_arrow(part) if weight is None else None
    if table is not None:
        scanner = Scanner(table.schema, features, target, discretization, declared)
        scanner.add(table, rows)
        return scanner.finish(priority[rows])
    summary = Summary(discretization, dict(declared), target)
    of_class = None if target is None else part[target]
    summary.add(part[list(features)], of_class, None if weight is None else row_weights(part[weight]))
    return summary


def _merge(parts: list[Summary | None]) -> Summary | None:
    """Join summaries into a new one: the parts stay as they are, since a lost worker's task is done again."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    joined = replace(known[0], states={}, numeric={}, cut=set(), classes={}, pieces=[], priority=np.empty(0))
    for part in known:
        joined.merge(part)
    return joined


def _weight_sums(part: pd.Series) -> np.ndarray:
    return weight_sums(row_weights(part))


def _encode(
    variables: tuple[Variable, ...], target: Variable | None, weight: str | None, scale: float, part: pd.DataFrame
) -> Columns:
    part = plain(part, WHERE)
    table = _as_arrow(part)
    if table is not None:
        columns = ArrowEncoder(variables, target, weight)(table)
    else:
        X, y, weights = encode_rows(part, variables, target, weight)
        columns = Columns(np.ascontiguousarray(X.T), y, weights)
    return columns if columns.weight is None else columns._replace(weight=scale * columns.weight)


def _count(
    variables: tuple[Variable, ...],
    target: Variable | None,
    weight: str | None,
    scale: float,
    count: Count,
    part: pd.DataFrame,
) -> np.ndarray:
    return count([_encode(variables, target, weight, scale, part)])


def _add(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)
