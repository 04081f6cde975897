"""Gibbs sampling: approximate answers to many queries of any Bayesian network at once, with their uncertainty.

A sweep draws every variable that is not observed, in turn, from its distribution given all others. A chain starts at a
random state of nonzero probability: forward sampling that goes back where the evidence forbids a value. Rows need not
sum to one (quantised networks): the distribution is proportional to the product of the entries.

**With zeros in the tables the chain need not reach every state**: where one variable is a function of others, no single
variable can change alone, and the estimates may be wrong by any amount while their errors look small. Only chains from
several starts can show it, and not reliably.

`tinybayes.marginals` with ``method="gibbs"`` runs the same chains for one case.
"""

import math
import time
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from tinybayes._kernels.gibbs import Chain, Layout, Sums, burn, enter, sample, start
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.errors import error
from tinybayes.model import CPD, BayesNet
from tinybayes.model.layout import starts, strides

MOST_SUMS = 2**23  # sums over the states of all variables that wait to be combined: 64 MiB
MOST_WORDS = 2**25  # of all path sets: 256 MiB
MOST_STOPS = 2**22  # nodes on the ways to leaves; beyond, and in decision graphs, ways are followed from the root
START_VISITS = 2_000_000  # visits of variables in the search for a first state of nonzero probability


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions ``P(asked | evidence)``, one per row.

    Parameters
    ----------
    evidence
        Codes of the observed values, -1 where a variable is not observed; shape (queries, variables), the columns in
        the order of ``BayesNet.nodes`` (the class, if there is one, last).
    asked
        Codes of the values whose joint probability is wanted, -1 where a variable is not asked for.
    """

    evidence: np.ndarray
    asked: np.ndarray

    def __post_init__(self) -> None:
        for name in ("evidence", "asked"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 2 or array.dtype.kind not in "iu":
                raise error("integer codes, one query per row", f"{array.dtype} of shape {array.shape}", where=name)
            object.__setattr__(self, name, np.ascontiguousarray(array, dtype=np.int32))
        if self.evidence.shape != self.asked.shape:
            raise error(f"the shape {self.evidence.shape} of the evidence", self.asked.shape, where="asked")
        both = np.argwhere((self.evidence >= 0) & (self.asked >= 0))
        if len(both):
            row, column = both[0].tolist()
            raise error(
                "variables that are asked for or observed, not both",
                f"both for variable {column}",
                where=f"query {row}",
                remedy="set one of them to -1",
            )

    def __len__(self) -> int:
        return len(self.evidence)

    def check(self, net: BayesNet) -> None:
        """Raise unless every code is a state of its variable."""
        states = np.array([node.cardinality for node in net.nodes])
        for name, codes in (("evidence", self.evidence), ("asked", self.asked)):
            if codes.shape[1] != len(states):
                raise error(f"{len(states)} columns, one per variable of the network", codes.shape[1], where=name)
            wrong = np.argwhere((codes < -1) | (codes >= states))
            if len(wrong):
                row, column = wrong[0].tolist()
                raise error(
                    f"a code from -1 to {states[column] - 1}",
                    codes[row, column],
                    where=f"{name}, query {row}, variable {net.nodes[column].name!r}",
                )


@dataclass(frozen=True, eq=False)
class GibbsEstimate:
    """Estimates from samples, and how far to trust them; three arrays of the same shape.

    Parameters
    ----------
    value
        The estimates.
    error
        Their standard errors, from the spread of batches of consecutive samples or of whole chains, whichever is
        larger. They say nothing about regions that no chain has visited.
    effective
        The number of independent samples that would give the same error.
    """

    value: np.ndarray
    error: np.ndarray
    effective: np.ndarray


@dataclass(frozen=True, eq=False)
class GibbsAnswers:
    """The result of `gibbs`.

    Parameters
    ----------
    log_probability
        ``log P(asked | evidence)`` of each query; None when nothing was asked. Where no sample agreed with the values
        asked for, the value is what the smoothing alone gives, its error infinite and its effective size 0.
    marginals
        For each variable ``P(state | evidence)``, shape (queries, states); None when they were not wanted.
    samples
        Samples of each query, over all chains.
    """

    log_probability: GibbsEstimate | None
    marginals: tuple[GibbsEstimate, ...] | None
    samples: np.ndarray


def gibbs(
    net: BayesNet,
    queries: Queries | np.ndarray,
    *,
    chains: int = 1,
    burn_in: int = 100,
    samples: int = 1000,
    rao_blackwell: bool = False,
    smoothing: float = 1.0,
    marginals: bool | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> GibbsAnswers:
    """Estimate posterior probabilities by Gibbs sampling, many queries at once on all cores.

    Parameters
    ----------
    net
        The network; tables, decision trees, or both.
    queries
        `Queries`, or only rows of evidence (codes, -1 where not observed, the class last), for which the marginals of
        all variables are returned.
    chains, burn_in, samples
        The number of chains for each query; for each chain the sweeps that are discarded, then those that are used.
    rao_blackwell
        Average the distributions that values are drawn from instead of the values drawn: less noise for the same
        sweeps. For a joint query this is done for the last of the asked variables.
    smoothing
        A count that is spread evenly over all states of a variable, or over all joint states of the asked variables.
    marginals
        Whether to return the marginals of all variables; None returns them when nothing is asked.
    seed
        Each chain of each query has its own stream of random numbers: answers do not depend on the number of threads.
    seconds
        A time for the whole call, shared evenly among the chains; each finishes its burn-in and its first batch of
        samples, and stops when its share is over. Answers then depend on the speed of the machine.
    """
    only_evidence = not isinstance(queries, Queries)
    if not isinstance(queries, Queries):
        evidence = np.asarray(queries)
        queries = Queries(evidence, np.full(evidence.shape, -1))
    queries.check(net)
    _check_options(chains, burn_in, samples, smoothing, seed, seconds)
    run = Run(net, queries, chains, burn_in, samples, rao_blackwell, seed)
    run.marginals = only_evidence if marginals is None else marginals
    sums = run.all_sums(time.perf_counter() + seconds if seconds is not None else None)
    options = (sums, queries, run.net.states, smoothing, rao_blackwell)
    return GibbsAnswers(
        log_probability=None if only_evidence else _log_probability(*options),
        marginals=_state_probabilities(*options) if run.marginals else None,
        samples=sums.samples.sum(axis=(1, 2)),
    )


def check_count(name: str, value: object, least: int) -> int:
    """Return a number of chains, sweeps or samples."""
    if not isinstance(value, int | np.integer) or value < least:
        raise error(f"an integer of at least {least}", repr(value), where=name)
    return int(value)


def _check_options(chains: int, burn_in: int, samples: int, smoothing: float, seed: int, seconds: float | None) -> None:
    for name, value, least in (("chains", chains, 1), ("burn_in", burn_in, 0), ("samples", samples, 1)):
        check_count(name, value, least)
    if not 0 <= smoothing < math.inf:
        raise error("a number of at least 0", smoothing, where="smoothing")
    if not 0 <= seed < 2**64:
        raise error("an integer from 0 to 2**64 - 1", seed, where="seed")
    if seconds is not None and not seconds > 0:
        raise error("a positive number", seconds, where="seconds", remedy="None sets no limit")


class Run:
    """All chains of all queries."""

    def __init__(
        self, net: BayesNet, queries: Queries, chains: int, burn_in: int, samples: int, blackwell: bool, seed: int
    ) -> None:
        self.model, self.net, self.queries = net, layout(net), queries
        self.chains, self.burn_in, self.blackwell, self.seed = chains, burn_in, blackwell, seed
        self.marginals = True
        self.order = np.array(net.structure.order, dtype=np.int64)
        batches = min(samples, max(2, math.isqrt(samples)))
        self.bounds = np.arange(batches + 1) * samples // batches

    def all_sums(self, ends: float | None) -> Sums:
        """Run the chains of all queries, groups of them one after the other, so that the sums fit into memory."""
        size = int(self.net.first_state[-1]) if self.marginals else 1
        group, count = max(1, MOST_SUMS // (2 * size * self.chains)), len(self.queries)
        parts = [self.group(first, min(first + group, count), ends) for first in range(0, count, group)]
        return Sums(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))) if parts else self.sums(0)

    def sums(self, queries: int) -> Sums:
        """Make empty sums for some queries."""
        lead = (queries, self.chains)
        size = int(self.net.first_state[-1]) if self.marginals else 0
        return Sums(
            samples=np.zeros((*lead, 1), dtype=np.int64),
            batches=np.zeros((*lead, 1), dtype=np.int64),
            hits=np.zeros((*lead, 2)),
            total=np.zeros((*lead, size)),
            square=np.zeros((*lead, size)),
        )

    def group(self, first: int, stop: int, ends: float | None) -> Sums:
        """Run the chains of some queries."""
        sums = self.sums(stop - first)
        all_units = len(self.queries) * self.chains

        def work(begin: int, end: int) -> None:
            for unit in range(begin, end):
                query, chain = divmod(unit, self.chains)
                until = None
                if ends is not None:
                    now = time.perf_counter()
                    until = now + (ends - now) * thread_count() / (all_units - first * self.chains - unit)
                self.chain(first + query, chain, Sums(*(array[query, chain] for array in sums)), until)

        for_blocks(work, (stop - first) * self.chains, 1)
        return sums

    def chain(self, query: int, number: int, sums: Sums, until: float | None) -> None:
        """Run one chain."""
        net, evidence, asked = self.net, self.queries.evidence[query], self.queries.asked[query]
        free = np.flatnonzero((evidence < 0) & (net.states > 1))
        last = int(max(free[asked[free] >= 0], default=-1))
        chain, logs = new_chain(net), np.empty(int(net.states.max()))
        self.begin(chain, evidence, query, number)
        enter(net, chain, asked, last)
        burn(net, chain, free, asked, last, self.burn_in, logs)
        if until is None:
            sample(net, chain, free, asked, last, self.blackwell, self.bounds, sums, logs)
            return
        done, step = 0, 1
        while done < len(self.bounds) - 1 and (done == 0 or time.perf_counter() < until):
            began = time.perf_counter()
            sample(net, chain, free, asked, last, self.blackwell, self.bounds[done : done + step + 1], sums, logs)
            done += step
            now = time.perf_counter()
            step = max(1, int(0.5 * step * (until - now) / max(now - began, 1e-9)))

    def begin(self, chain: Chain, evidence: np.ndarray, query: int, number: int) -> None:
        """Set the first state of a chain."""
        order, budget, left, attempt = self.order, len(self.order), START_VISITS, 0
        tried = np.zeros(int(self.net.first_state[-1]), dtype=np.bool_)
        while True:
            seed = np.array([self.seed, query, number, attempt], dtype=np.uint64)
            status = start(self.net, order, evidence, seed, budget, tried, chain.x, chain.random)
            if status == 1:
                return
            if status == 0:
                raise error("evidence that can occur", "values of probability zero", where=f"evidence of query {query}")
            if left <= 0:
                raise error(
                    "evidence with a state of nonzero probability that can be found",
                    f"none within {START_VISITS} steps",
                    where=f"evidence of query {query}",
                    remedy="the evidence may be impossible; ask an exact method",
                )
            # The simple order failed: draw the evidence and its ancestors first, with a growing budget for each start.
            attempt, left = attempt + 1, left - budget
            order = _evidence_first(self.model, self.order, evidence)
            budget = min(2 * budget, max(left, 1))


def new_chain(net: Layout) -> Chain:
    """Return a chain that has not been started."""
    n, size, words = len(net.states), int(net.first_state[-1]), net.path.shape[1]
    return Chain(
        x=np.zeros(n, dtype=np.int32),
        entry=np.zeros(n, dtype=np.int64),
        path=np.zeros(n, dtype=np.int32),
        leaf=np.zeros(n, dtype=np.int32),
        stale=np.zeros(words, dtype=np.uint64),
        version=np.zeros(n, dtype=np.int64),
        turn=np.empty(int(net.first_turn[-1]), dtype=np.int64),
        turn_version=np.empty(len(net.child), dtype=np.int64),
        chance=np.zeros(size),
        since=np.zeros(n, dtype=np.int64),
        part=np.zeros(size),
        random=np.zeros(1, dtype=np.uint64),
        missed=np.zeros(1, dtype=np.int64),
    )


def _evidence_first(net: BayesNet, order: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Sort parents before children, so that each observed variable comes soon after what it depends on."""
    parents, rank = net.structure.parents, np.argsort(order)
    sorted_: dict[int, None] = {}
    for observed in [v for v in order.tolist() if evidence[v] >= 0]:
        above, waiting = set(), [observed]
        while waiting:
            v = waiting.pop()
            if v not in above and v not in sorted_:
                above.add(v)
                waiting += parents[v]
        sorted_ |= dict.fromkeys(sorted(above, key=lambda v: rank[v]))
    return np.array([*sorted_, *(v for v in order.tolist() if v not in sorted_)], dtype=np.int64)


def _spread(sums: Sums, total: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for sums over samples, shape (queries, chains, ...): the mean, its variance, and the number of samples."""
    lengths = sums.samples
    n, batches = lengths.sum(axis=1), sums.batches.sum(axis=1)
    mean = total.sum(axis=1) / n
    center = n * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(square.sum(axis=1) - center, 0.0) / ((batches - 1) * n)
        variance = np.where(batches > 1, variance, np.inf)
    chains = lengths.shape[1]
    if chains > 1:
        between = np.maximum((total**2 / lengths).sum(axis=1) - center, 0.0) / ((chains - 1) * n)
        variance = np.maximum(variance, between)
    return mean, variance, n


def _log_probability(
    sums: Sums, queries: Queries, states: np.ndarray, smoothing: float, blackwell: bool
) -> GibbsEstimate:
    """Turn hits into smoothed log-probabilities; the joint states may be too many for a float."""
    mean, variance, n = (a[:, 0] for a in _spread(sums, sums.hits[..., :1], sums.hits[..., 1:]))
    log_states = np.where(queries.asked >= 0, np.log(states), 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.logaddexp(np.log(mean * n), np.log(smoothing) - log_states) - np.log(n + smoothing)
        near = np.exp(value)
        spread = near * (1 - near)
        # Independent draws would do no better; batches that happen to agree must not look certain.
        variance = variance if blackwell else np.maximum(variance, spread / n)
        error_of_log = np.where(mean > 0, np.sqrt(variance) / near, np.inf)
        effective = np.where(variance > 0, spread / variance, n)
    return GibbsEstimate(value, error_of_log, np.where(mean > 0, effective, 0.0))


def _state_probabilities(
    sums: Sums, queries: Queries, states: np.ndarray, smoothing: float, blackwell: bool
) -> tuple[GibbsEstimate, ...]:
    """Turn sums over the states of all variables into their smoothed probabilities; what was observed is certain."""
    mean, variance, n = _spread(sums, sums.total, sums.square)
    answers = []
    ends = states.cumsum().tolist()
    for v, size in enumerate(states.tolist()):
        part = slice(ends[v] - size, ends[v])
        value = (mean[:, part] * n + smoothing / size) / (n + smoothing)
        spread = value * (1 - value)
        own = variance[:, part] * (n / (n + smoothing)) ** 2
        if not blackwell:
            own = np.maximum(own, spread / n)
        seen = queries.evidence[:, v] if size > 1 else np.zeros(len(value), dtype=np.int32)
        known = (seen >= 0)[:, None]
        value = np.where(known, seen[:, None] == np.arange(size), value)
        own = np.where(known, 0.0, own)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.where(own > 0, spread / own, n)
        answers.append(GibbsEstimate(value, np.sqrt(own), np.where(known, n, effective)))
    return tuple(answers)


def layout(net: BayesNet) -> Layout:
    """Return the network as flat arrays; they are cached on the network, which is immutable."""
    kept = net.__dict__.get("_gibbs_layout")
    if kept is None:
        kept = net.__dict__["_gibbs_layout"] = _lay_out(net)
    return kept


def _lay_out(net: BayesNet) -> Layout:
    states = np.array([node.cardinality for node in net.nodes], dtype=np.int64)
    words = (len(states) + 63) // 64
    leaves = sum(len(cpd.tree.split) for cpd in net.cpds if cpd.tree is not None)
    # Where one set for each leaf would take too much memory, one for each tree serves: more work, the same samples.
    fine = leaves * words <= MOST_WORDS
    paths: dict[int, int] = {}  # the number of each set of variables, which are bits
    base = starts(cpd.table.size for cpd in net.cpds)
    root, table_path, first_parent = [], [], [0]
    parent: list[int] = []
    parent_stride: list[int] = []
    trees = _Trees(paths, fine)
    children: list[list[tuple[int, int]]] = [[] for _ in states]
    for node, cpd in enumerate(net.cpds):
        if cpd.tree is None:
            steps = strides([states[p] for p in cpd.parents], cpd.table.shape[1])
            parent += cpd.parents
            parent_stride += steps
            root.append(-1)
            table_path.append(paths.setdefault(sum(1 << p for p in cpd.parents), len(paths)))
            tested = dict(zip(cpd.parents, steps, strict=True))
        else:
            root.append(len(trees.step))
            table_path.append(0)
            tested = dict.fromkeys(trees.add(cpd, int(base[node]), states), 0)
        first_parent.append(len(parent))
        for variable, stride in tested.items():
            children[variable].append((node, stride))
    pairs = np.array([pair for family in children for pair in family], dtype=np.int64).reshape(-1, 2)
    whose = np.repeat(np.arange(len(states)), [len(family) for family in children])
    packed = b"".join(bits.to_bytes(8 * words, "little") for bits in paths)
    return Layout(
        states=states,
        first_state=starts(states),
        log_entry=np.concatenate([cpd.log_parameters.ravel() for cpd in net.cpds]),
        base=base[:-1],
        root=np.array(root, dtype=np.int32),
        table_path=np.array(table_path, dtype=np.int32),
        first_parent=np.array(first_parent, dtype=np.int64),
        parent=np.array(parent, dtype=np.int32),
        parent_stride=np.array(parent_stride, dtype=np.int64),
        step=np.array(trees.step, dtype=np.int32).reshape(-1, 2),
        goto=np.array(trees.goto, dtype=np.int32),
        leaf_entry=np.array(trees.leaf_entry, dtype=np.int64),
        leaf_path=np.array(trees.leaf_path, dtype=np.int32),
        first_stop=np.array(trees.first_stop, dtype=np.int64),
        stop=np.array(trees.stop, dtype=np.int32).reshape(-1, 2),
        path=np.frombuffer(packed, dtype="<u8").astype(np.uint64).reshape(-1, words),
        first_child=starts(len(family) for family in children),
        child=pairs[:, 0].astype(np.int32),
        child_stride=pairs[:, 1].copy(),
        first_turn=starts(np.where(pairs[:, 1] > 0, 0, states[whose])),
    )


class _Trees:
    """The trees of all distributions in one set of arrays."""

    def __init__(self, paths: dict[int, int], fine: bool) -> None:
        self.paths, self.fine = paths, fine
        self.step: list[tuple[int, int]] = []
        self.goto: list[int] = []
        self.leaf_entry: list[int] = []
        self.leaf_path: list[int] = []
        self.first_stop = [0]
        self.stop: list[tuple[int, int]] = []

    def add(self, cpd: CPD, base: int, states: np.ndarray) -> list[int]:
        """Add a tree and return the variables that it tests."""
        tree = cpd.tree
        assert tree is not None
        root, columns = len(self.step), cpd.table.shape[1]
        split, first, row = tree.split.tolist(), tree.first.tolist(), tree.row.tolist()
        below = [tree.children[f : f + states[v]].tolist() if v >= 0 else [] for v, f in zip(split, first, strict=True)]
        # Children come after their node. Several ways to a node of a decision graph: the union of their variables.
        above, before = [0] * len(split), [-1] * len(split)
        ways = np.zeros(len(split), dtype=np.int64)
        for node, variable in enumerate(split):
            for child in set(below[node]) if node == 0 or before[node] >= 0 else ():
                above[child] |= above[node] | 1 << variable
                before[child] = node
                ways[child] += 1
        everything = reduce(or_, above)
        for node, variable in enumerate(split):
            if variable >= 0:
                self.step.append((variable, len(self.goto)))
                self.goto += [root + child for child in below[node]]
                continue
            self.step.append((-1, len(self.leaf_entry)))
            self.leaf_entry.append(base + row[node] * columns)
            bits = above[node] if self.fine else everything
            self.leaf_path.append(self.paths.setdefault(bits, len(self.paths)))
            if ways.max() <= 1 and len(self.stop) < MOST_STOPS:
                way = [before[node]]  # from the leaf to the root, and -1
                while way[-1] >= 0:
                    way.append(before[way[-1]])
                self.stop += [(split[n], root + n) for n in way[-2::-1]]
            self.first_stop.append(len(self.stop))
        return [parent for parent in cpd.parents if everything >> parent & 1]
