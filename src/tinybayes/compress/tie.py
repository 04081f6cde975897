"""Tie the parameters of a model: few levels, chosen by optimal k-means (parameter_tying_by_quantization)."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from tinybayes.compress.levels import LevelPath
from tinybayes.compress.quantize import with_tables
from tinybayes.cost import cheapest_format
from tinybayes.errors import TinybayesError, error
from tinybayes.infer import compile_circuit, expected_counts, log_evidence, log_partition
from tinybayes.infer.likelihood import dataset_rows
from tinybayes.model import BayesNet, Circuit, Codebook, Dataset, Float, LogLinear, NumberFormat
from tinybayes.model.number_format import singles

MAX_TIE_EDGES = 5_000_000
_MOST_LEVELS = 512  # the most that "auto" tries
M = TypeVar("M", bound=BayesNet | Circuit)


@dataclass(frozen=True)
class Tied(Generic[M]):
    """The result of `tie`.

    Parameters
    ----------
    model
        The model, its tables in a `Codebook` (with ``renormalize=True``, in the cheapest format that holds them).
    levels
        Levels of the codebook, that of the zeros included; of the largest codebook when each table has its own.
    zeros
        Entries whose probability is zero; they have a level of their own and stay zero.
    epsilon
        The largest distance of a log-parameter from its level.
    bound
        Of a network with m parameters, Theorem 1: the mean log-likelihood of any data falls by at most ``2 m epsilon``.
    table_bound
        Of a network, a tighter bound: twice the sum of the largest distances of the tables, since a row uses one entry
        of each.
    normalization
        The kind of likelihood of `before`, `after` and `path`: ``"exact"``, divided by the sum over all assignments, or
        ``"rows"``, of the network with normalised rows (asked for, or the exact one would need too large a circuit).
    log_partition
        ``log Z`` of `model`; None for a network without data, or when it is out of reach.
    before, after
        Mean log-likelihood of the data before and after, in nats; None without data. The real difference to compare
        with the bounds is ``before - after``.
    path
        The numbers of levels that were tried, each with its mean log-likelihood.
    """

    model: M
    levels: int
    zeros: int
    epsilon: float
    bound: float | None
    table_bound: float | None
    normalization: Literal["exact", "rows"]
    log_partition: float | None = None
    before: float | None = None
    after: float | None = None
    path: tuple[tuple[int, float], ...] = ()


def tie(
    model: M,
    levels: int | Literal["auto"] = 16,
    *,
    data: Dataset | None = None,
    counts: Dataset | None = None,
    per_table: bool = False,
    zeros: float | Literal["keep"] = "keep",
    renormalize: bool = False,
    candidates: Sequence[int] | None = None,
    max_edges: int = MAX_TIE_EDGES,
) -> Tied[M]:
    """Replace the log-parameters of a network or a circuit by few levels, those with the least squared error.

    Parameters
    ----------
    model
        A network; or a smooth and decomposable circuit, which takes only `levels`, `data`, `counts` and `candidates`.
    levels
        How many levels; or ``"auto"``: the smallest number with the best likelihood of `data`.
    data
        Held-out rows: they give the likelihoods, and choose the number of levels.
    counts
        Rows, such as the training rows: the squared error of an entry is weighted by one plus its uses in them; of a
        circuit, whose hidden variables are not in the rows, by one plus its expected uses.
    per_table
        Give each table levels of its own, at most as many as it has distinct values, instead of common ones.
    zeros
        ``"keep"``: probabilities of zero take one of the levels and stay zero. A probability: raise smaller ones to it
        and normalise their rows first; distances, bounds and `before` then refer to that network.
    renormalize
        Normalise the rows afterwards. The result is a Bayesian network again, but of more distinct parameters.
    candidates
        The numbers of levels that ``"auto"`` tries; by default 1, 2, 3, 4, 6, 8, 12, ... up to 512.
    max_edges
        The largest circuit to compile for the exact likelihood.

    Raises
    ------
    TinybayesError
        When there are fewer distinct parameters than levels, or no data to choose by.
    """
    tying = _Tying(model, data, counts, per_table, zeros, renormalize, max_edges)
    return tying.best(_candidate_levels(levels, candidates, tying.groups(tying.tables), data is not None))


@dataclass(eq=False)
class _Tying:
    """The tables of a model and the choice of their levels; the fields are the arguments of `tie`."""

    model: BayesNet | Circuit
    data: Dataset | None
    counts: Dataset | None
    per_table: bool
    zeros: float | Literal["keep"]
    renormalize: bool
    max_edges: int

    def __post_init__(self) -> None:
        self.tables = [part.log_parameters for part in _parts(self.model)]
        if isinstance(self.model, Circuit):
            options = {"per_table": self.per_table, "zeros": self.zeros != "keep"}
            _check_circuit(self.model, **options, renormalize=self.renormalize)
            self.tables = [self.tables[0][None]]
        if self.zeros != "keep":
            self.tables = _smoothed(self.tables, self.zeros)
        self.weights = np.ones(sum(table.size for table in self.tables))
        if self.counts is not None:
            self.weights += _entry_counts(self.model, self.counts)

    def groups(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the numbers that share levels: those of each table, or all of them."""
        return list(tables) if self.per_table else [np.concatenate([table.reshape(-1) for table in tables])]

    def best(self, tried: Sequence[int]) -> Tied[Any]:
        """Return the model tied to one of these numbers of levels, the one with the best likelihood."""
        books = Books(self.tables, self.weights, self.per_table, max(tried))
        likelihood = self._likelihood()
        before, path = self._path(likelihood, books, tried)
        chosen = max(path, key=lambda point: (point[1], -point[0]))[0] if path else tried[0]
        forms = books.formats(chosen)
        tied = _stored(self.model, self.tables, forms)
        quantized = [part.log_parameters for part in _parts(tied)]
        distances = [_distance(old.reshape(new.shape), new) for old, new in zip(self.tables, quantized, strict=True)]
        if self.renormalize:
            tied = self._renormalized(tied)
        network = isinstance(self.model, BayesNet)
        compiled = None if likelihood is None else likelihood.circuit
        circuit = self.model if isinstance(self.model, Circuit) else compiled
        return Tied(
            model=tied,
            levels=max(len(form.values) for form in forms),
            zeros=sum(int(np.isneginf(table).sum()) for table in self.tables),
            epsilon=max(distances),
            bound=2 * sum(table.size for table in self.tables) * max(distances) if network else None,
            table_bound=2 * math.fsum(distances) if network else None,
            normalization="rows" if self.renormalize or (likelihood is not None and likelihood.by_rows) else "exact",
            log_partition=None if circuit is None else log_partition(_with_values(circuit, tied)),
            before=before,
            after=dict(path).get(chosen),
            path=tuple(path),
        )

    def _likelihood(self) -> "Likelihood | None":
        source = _stored(self.model, self.tables, [Float(64)] * len(self.tables))
        return None if self.data is None else Likelihood(source, self.data, self.renormalize, self.max_edges)

    def _path(
        self, likelihood: "Likelihood | None", books: "Books", tried: Sequence[int]
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """Return the likelihood of the data before, and with each number of levels."""
        if likelihood is None:
            return None, []
        before = likelihood.mean(self.tables)
        if before == -math.inf and len(tried) > 1:
            remedy = "smooth the network with zeros=1e-4 (--zeros), or leave these rows out"
            raise error("data that the model allows", "rows of probability zero", where="data", remedy=remedy)
        return before, [(k, likelihood.mean(books.quantized(k))) for k in tried]

    def _renormalized(self, net: Any) -> Any:
        """Normalise the rows; store them in a codebook of their values or as floats, whichever is cheaper."""
        rows = normalized_rows([cpd.log_parameters for cpd in net.cpds])
        tables = [singles(table) for table in rows]
        forms = [cheapest_format([part]) for part in self.groups(tables)]
        return _stored(net, tables, forms if self.per_table else forms * len(tables))


class Books:
    """The codebooks of tables, for every number of levels."""

    def __init__(self, tables: Sequence[np.ndarray], weights: np.ndarray, per_table: bool, most: int) -> None:
        self._tables = tables
        self._of_table = range(len(tables)) if per_table else [0] * len(tables)
        self._paths: list[tuple[LevelPath | None, bool]] = []
        sizes = np.cumsum([0, *(table.size for table in tables)])
        cuts = pairwise(sizes) if per_table else [(0, int(sizes[-1]))]
        values = np.concatenate([table.reshape(-1) for table in tables])
        for start, stop in cuts:
            part, weight = values[start:stop], weights[start:stop]
            finite = np.isfinite(part)
            path = LevelPath(part[finite], most - (not finite.all()), weight[finite]) if finite.any() else None
            self._paths.append((path, not finite.all()))

    def formats(self, k: int) -> list[Codebook]:
        """Return the codebook of each table, with at most k levels."""
        formats = []
        for path, zero in self._paths:
            levels: list[float] = [-math.inf] if zero else []
            if path is not None:
                # A level is paid as a 32-bit float, so it must be one.
                best = path.levels(min(k - zero, path.most))
                levels += np.unique(singles(best)).tolist()
            formats.append(Codebook(tuple(levels)))
        return [formats[which] for which in self._of_table]

    def quantized(self, k: int) -> list[np.ndarray]:
        """Return the tables with each log-parameter at its level."""
        pairs = zip(self._tables, self.formats(k), strict=True)
        return [form.decode(form.encode(table)) for table, form in pairs]


class Likelihood:
    """Mean log-likelihood of data under tables of the shape and zeros of a model's; unknown values are summed out.

    A network is compiled once, for all parameters with the same zeros. `by_rows` asks for the likelihood of the network
    with normalised rows, which also replaces the exact one where the circuit would have more than `max_edges` edges.
    """

    def __init__(self, model: BayesNet | Circuit, data: Dataset, by_rows: bool, max_edges: int) -> None:
        X = dataset_rows(model.nodes, data)
        weight = np.ones(len(X)) if data.weight is None else data.weight
        if not (total := float(weight.sum())) > 0:
            raise error("rows with a weight above zero", "none", where="data")
        self.circuit: Circuit | None = None
        with suppress(TinybayesError):  # if it is too large, the likelihood by rows takes its place
            self.circuit = compile_circuit(model, max_edges=max_edges, share_equal=False)
        self.by_rows = by_rows or self.circuit is None
        # Complete rows of a network need no circuit but for the constant: their entries are counted.
        partial = (X < 0).any(axis=1) if isinstance(model, BayesNet) else np.full(len(X), True)
        if partial.any() and self.circuit is None:
            remedy = "leave out rows with unknown values, or raise max_edges"
            got = f"unknown values in {partial.sum():,} rows, and a network too large to sum them out"
            raise error("complete rows", got, where="data", remedy=remedy)
        self._total, self._rows, self._row_weights = total, X[partial], weight[partial]
        self._counts = np.zeros(0)
        if isinstance(model, BayesNet):
            self._counts = LogLinear.from_bayes_net(model).counts(X[~partial], weight[~partial])

    def mean(self, tables: Sequence[np.ndarray]) -> float:
        """Return the mean log-likelihood."""
        rows = normalized_rows(tables) if self.by_rows else tables
        values = np.concatenate([table.reshape(-1) for table in rows])
        used = np.flatnonzero(self._counts > 0)
        sum_of_logs = float(self._counts[used] @ values[used])
        constant = 0.0
        if self.circuit is not None:
            circuit = replace(self.circuit, table=values, format=Float(64))
            if len(self._rows):
                logs = log_evidence(circuit, self._rows)[self._row_weights > 0]
                sum_of_logs += float(self._row_weights[self._row_weights > 0] @ logs)
            constant = 0.0 if self.by_rows else log_partition(circuit)
        return sum_of_logs / self._total - constant


def _candidate_levels(
    levels: int | str, candidates: Sequence[int] | None, groups: Sequence[np.ndarray], can_choose: bool
) -> tuple[int, ...]:
    """Return the numbers of levels to try, increasing; raise when one cannot be."""
    most = max(len(np.unique(group)) for group in groups)
    least = 1 + any(0 < np.isneginf(group).sum() < group.size for group in groups)
    if levels != "auto":
        if not isinstance(levels, int | np.integer) or isinstance(levels, bool):
            raise error("a number of levels, or 'auto'", repr(levels), where="levels")
        tried = [int(levels)]
    elif not can_choose:
        raise error("data to choose the levels by", "none", where="levels 'auto'", remedy="name held-out rows as data")
    elif candidates is not None:
        tried = sorted({int(k) for k in candidates})
    else:
        top = min(most, _MOST_LEVELS)
        powers = (k for power in range(10) for k in (2**power, 3 * 2**power))
        tried = sorted({top, *(k for k in powers if least <= k <= top)})
    if not tried or tried[0] < least or tried[-1] > most:
        zero = " (one of them for probabilities of zero)" if least == 2 else ""
        expected = f"{least} to {most} levels{zero}, at most as many as there are distinct parameters"
        raise error(expected, ", ".join(map(str, tried[:10])) or "none", where="levels")
    return tuple(tried)


def _smoothed(tables: Sequence[np.ndarray], least: float) -> list[np.ndarray]:
    if not (isinstance(least, float | int) and 0 < least < 1):
        raise error("'keep' or a probability between 0 and 1", repr(least), where="zeros")
    raised = [np.maximum(table, math.log(least)) for table in tables]
    changed = [(new != old).any(axis=1, keepdims=True) for new, old in zip(raised, tables, strict=True)]
    return [np.where(c, n, r) for c, n, r in zip(changed, normalized_rows(raised), raised, strict=True)]


def normalized_rows(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Divide each row of log-parameters by its sum; a row of zeros stays."""
    normalized = []
    for logs in tables:
        top = logs.max(axis=1, keepdims=True)
        top = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            total = top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        normalized.append(logs - np.where(np.isneginf(total), 0.0, total))
    return normalized


def _entry_counts(net: Any, data: Dataset) -> np.ndarray:
    """Return how often each entry of the tables is used by the complete rows of data, or is expected to be by all."""
    X = dataset_rows(net.nodes, data)
    if isinstance(net, Circuit):
        return expected_counts(net, X, data.weight)
    complete = (X >= 0).all(axis=1)
    weight = None if data.weight is None else data.weight[complete]
    return LogLinear.from_bayes_net(net).counts(X[complete], weight)


def _stored(model: Any, tables: Sequence[np.ndarray], forms: Sequence[NumberFormat]) -> Any:
    """Return the model with other tables, in other formats."""
    if isinstance(model, Circuit):
        return replace(model, table=forms[0].encode(tables[0].reshape(-1)), format=forms[0])
    return with_tables(model, tables, forms)


def _parts(model: Any) -> Sequence[Any]:
    """Return the parts that hold the tables: the distributions of a network, or the circuit."""
    return [model] if isinstance(model, Circuit) else model.cpds


def _with_values(circuit: Circuit, model: Any) -> Circuit:
    """Return a circuit with the parameters of a model."""
    values = [part.log_parameters.reshape(-1) for part in _parts(model)]
    return replace(circuit, table=np.concatenate(values), format=Float(64))


def _check_circuit(circuit: Circuit, **options: Any) -> None:
    if not len(circuit.table):
        raise error("a circuit with parameters", "one without", where="tie")
    if given := [name for name, value in options.items() if value is not None and value is not False]:
        raise error("a Bayesian network", "a circuit", where=", ".join(given), remedy="leave this option out")


def _distance(table: np.ndarray, quantized: np.ndarray) -> float:
    """Return the largest distance of finite numbers from their quantised values."""
    finite = np.isfinite(table)
    return float(np.abs(table[finite] - quantized[finite]).max(initial=0.0))
