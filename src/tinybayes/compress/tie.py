"""Tie the parameters of a network: few levels, chosen by optimal k-means (parameter_tying_by_quantization)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from tinybayes.compress._likelihood import Likelihood, compiled, entry_counts, normalized_rows
from tinybayes.compress.levels import LevelPath
from tinybayes.cost import cheapest_format
from tinybayes.errors import error
from tinybayes.infer import log_partition
from tinybayes.model import CPD, BayesNet, Circuit, Codebook, Dataset, Float

MAX_TIE_EDGES = 5_000_000
_MOST_LEVELS = 512  # that "auto" tries


@dataclass(frozen=True)
class Tied:
    """What `tie` made.

    Parameters
    ----------
    net
        The network, its tables in a `Codebook` (with ``renormalize=True``, in the cheapest format that holds them).
    levels
        Levels of the codebook, that of the zeros included; of the largest one when each table has its own.
    zeros
        Entries whose probability is zero; they have a level of their own and stay zero.
    epsilon
        The largest distance of a log-parameter from its level.
    bound
        Theorem 1: the mean log-likelihood of any data falls by at most ``2 m epsilon``, with m parameters.
    table_bound
        A tighter bound: twice the sum of the largest distances of the tables, since a row uses one entry of each.
    normalization
        Which likelihood `before`, `after` and `path` are: ``"exact"``, divided by the sum over all assignments, or
        ``"rows"``, that of the network with normalised rows (asked for, or the exact one is out of reach).
    log_partition
        ``log Z`` of `net`; None without data, for which it is not needed, or when it is out of reach.
    before, after
        Mean log-likelihood of the data before and after, in nats; None without data. The real difference to compare
        with the bounds is ``before - after``.
    path
        The numbers of levels that were tried, each with its mean log-likelihood.
    """

    net: BayesNet
    levels: int
    zeros: int
    epsilon: float
    bound: float
    table_bound: float
    normalization: Literal["exact", "rows"]
    log_partition: float | None = None
    before: float | None = None
    after: float | None = None
    path: tuple[tuple[int, float], ...] = ()


def tie(
    net: BayesNet,
    levels: int | Literal["auto"] = 16,
    *,
    data: Dataset | None = None,
    counts: Dataset | None = None,
    per_table: bool = False,
    zeros: float | Literal["keep"] = "keep",
    renormalize: bool = False,
    candidates: Sequence[int] | None = None,
    max_edges: int = MAX_TIE_EDGES,
) -> Tied:
    """Replace the log-parameters of a network by few levels, those with the least squared error.

    Parameters
    ----------
    net
        The network.
    levels
        How many levels; or ``"auto"``: the number with the best likelihood of `data`, of equally good ones the least.
    data
        Held-out rows: they give the likelihoods, and choose the number of levels.
    counts
        Rows, such as those that were learned from: an entry's squared error counts one more than its uses in them.
    per_table
        Give each table levels of its own, as many as it has distinct values at most, instead of common ones.
    zeros
        ``"keep"``: probabilities of zero take one of the levels and stay zero. A probability: raise smaller ones to it
        and normalise their rows first; distances, bounds and `before` then refer to that network.
    renormalize
        Normalise the rows afterwards. The result is a Bayesian network again, but of more distinct parameters.
    candidates
        The numbers of levels that ``"auto"`` tries; when None 1, 2, 3, 4, 6, 8, 12, ... and the most, 512 at most.
    max_edges
        The largest circuit to compile for the exact likelihood.

    Raises
    ------
    TinybayesError
        When there are fewer distinct parameters than levels, or no data to choose by.
    """
    tables = [cpd.log_parameters for cpd in net.cpds]
    if zeros != "keep":
        tables = _smoothed(tables, zeros)
    weights = np.ones(sum(table.size for table in tables)) if counts is None else 1 + entry_counts(net, counts)
    tried = candidate_levels(levels, candidates, _groups(tables, per_table), data)
    books = Books(tables, weights, per_table, max(tried))
    source = BayesNet(net.variables, net.target, tuple(map(_as_float, net.cpds, tables)))
    circuit = None if data is None else compiled(source, max_edges)
    by_rows = renormalize or (data is not None and circuit is None)
    chosen, before = tried[0], None
    path: list[tuple[int, float]] = []
    if data is not None:
        likelihood = Likelihood(source, data, circuit)
        before = likelihood.mean(tables, by_rows=by_rows)
        if before == -math.inf and len(tried) > 1:
            remedy = "smooth the network with zeros=1e-4 (--zeros), or leave these rows out"
            raise error("data that the network allows", "rows of probability zero", where="data", remedy=remedy)
        path = [(k, likelihood.mean(books.quantized(k), by_rows=by_rows)) for k in tried]
        chosen = max(path, key=lambda point: (point[1], -point[0]))[0]
    cpds = books.stored(net.cpds, chosen)
    distances = [distance(table, cpd.log_parameters) for table, cpd in zip(tables, cpds, strict=True)]
    if renormalize:
        cpds = _renormalized(cpds, per_table)
    return Tied(
        net=BayesNet(net.variables, net.target, tuple(cpds)),
        levels=max(len(book.values) for book in books.formats(chosen)),
        zeros=sum(int(np.isneginf(table).sum()) for table in tables),
        epsilon=max(distances),
        bound=2 * sum(table.size for table in tables) * max(distances),
        table_bound=2 * math.fsum(distances),
        normalization="rows" if by_rows else "exact",
        log_partition=None if circuit is None else _log_partition(circuit, cpds),
        before=before,
        after=dict(path).get(chosen),
        path=tuple(path),
    )


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
        found = []
        for path, zero in self._paths:
            levels: list[float] = [-math.inf] if zero else []
            if path is not None:
                # A level is paid as a 32-bit float, so it must be one.
                best = path.levels(min(k - zero, path.most))
                levels += np.unique(best.astype(np.float32).astype(np.float64)).tolist()
            found.append(Codebook(tuple(levels)))
        return [found[which] for which in self._of_table]

    def stored(self, cpds: Sequence[CPD], k: int) -> list[CPD]:
        """Return the distributions with their tables in the codebooks."""
        parts = zip(cpds, self._tables, self.formats(k), strict=True)
        return [replace(cpd, table=book.encode(table), format=book) for cpd, table, book in parts]

    def quantized(self, k: int) -> list[np.ndarray]:
        """Return the tables with each log-parameter at its level."""
        pairs = zip(self._tables, self.formats(k), strict=True)
        return [form.decode(form.encode(table)) for table, form in pairs]


def _groups(tables: Sequence[np.ndarray], per_table: bool) -> list[np.ndarray]:
    return list(tables) if per_table else [np.concatenate([table.reshape(-1) for table in tables])]


def candidate_levels(
    levels: int | str, candidates: Sequence[int] | None, groups: Sequence[np.ndarray], data: Dataset | None
) -> tuple[int, ...]:
    """Return the numbers of levels to try, increasing; raise when one cannot be."""
    most = max(len(np.unique(group)) for group in groups)
    least = 1 + any(0 < np.isneginf(group).sum() < group.size for group in groups)
    if levels != "auto":
        if not isinstance(levels, int | np.integer) or isinstance(levels, bool):
            raise error("a number of levels, or 'auto'", repr(levels), where="levels")
        tried = [int(levels)]
    elif data is None:
        raise error("data to choose the levels by", "none", where="levels 'auto'", remedy="name held-out rows as data")
    elif candidates is not None:
        tried = sorted({int(k) for k in candidates})
    else:
        top = min(most, _MOST_LEVELS)
        powers = (k for power in range(10) for k in (2**power, 3 * 2**power))
        tried = sorted({top, *(k for k in powers if least <= k <= top)})
    if not tried or tried[0] < least or tried[-1] > most:
        zero = ", of which one is for the probabilities of zero" if least == 2 else ""
        expected = f"{least} to {most} levels{zero}, at most as many as there are distinct parameters"
        raise error(expected, ", ".join(map(str, tried[:10])) or "none", where="levels")
    return tuple(tried)


def _smoothed(tables: Sequence[np.ndarray], least: float) -> list[np.ndarray]:
    if not (isinstance(least, float | int) and 0 < least < 1):
        raise error("'keep' or a probability between 0 and 1", repr(least), where="zeros")
    raised = [np.maximum(table, math.log(least)) for table in tables]
    changed = [(new != old).any(axis=1, keepdims=True) for new, old in zip(raised, tables, strict=True)]
    return [np.where(c, n, r) for c, n, r in zip(changed, normalized_rows(raised), raised, strict=True)]


def _as_float(cpd: CPD, table: np.ndarray) -> CPD:
    return replace(cpd, table=table, format=Float(64))


def _log_partition(circuit: Circuit, cpds: Sequence[CPD]) -> float:
    values = np.concatenate([cpd.log_parameters.reshape(-1) for cpd in cpds])
    return log_partition(replace(circuit, table=values, format=Float(64)))


def distance(table: np.ndarray, quantized: np.ndarray) -> float:
    """Return the largest distance of finite numbers from what they became."""
    finite = np.isfinite(table)
    return float(np.abs(table[finite] - quantized[finite]).max(initial=0.0))


def _renormalized(cpds: Sequence[CPD], per_table: bool) -> list[CPD]:
    """Normalise the rows of tables; store them in a codebook of their values or as floats, whichever is cheaper."""
    tables = [t.astype(np.float32).astype(np.float64) for t in normalized_rows([cpd.log_parameters for cpd in cpds])]
    forms = [cheapest_format([part]) for part in _groups(tables, per_table)]
    chosen = forms if per_table else forms * len(cpds)
    return [replace(c, table=f.encode(t), format=f) for c, f, t in zip(cpds, chosen, tables, strict=True)]
