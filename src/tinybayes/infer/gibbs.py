"""Gibbs sampling: approximate posteriors of any Bayesian network, with their uncertainty."""

import math
import time
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.gibbs import Sums, burn, sample
from tinybayes._kernels.gibbs_chain import Chain, Layout, enter, start
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.errors import error
from tinybayes.infer._gibbs_estimates import GibbsEstimate, log_probability, state_probabilities
from tinybayes.infer._gibbs_layout import layout
from tinybayes.infer.queries import Queries
from tinybayes.model import BayesNet

MOST_SUMS = 2**23  # sums over the states of all variables that wait to be put together: 64 MiB
START_VISITS = 2_000_000  # visits of variables in the search for a first state of nonzero probability


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

    A sweep draws every variable that is not observed, in turn, from its distribution given all others. A chain starts
    at a random state of nonzero probability (forward sampling that goes back where the evidence forbids a value).

    **With zeros in the tables the chain need not reach every state**: where one variable is a function of
    others, no single variable can change alone, and the estimates may be wrong by any amount while their errors look
    small. Only chains from several starts can show it, and not surely. Rows that do not sum to one (quantised networks)
    are fine: the distribution is proportional to the product of the entries.

    Parameters
    ----------
    net
        The network; tables, decision trees, or both.
    queries
        What is asked: `Queries`, or only rows of evidence (codes, -1 where not observed, the class last), for which the
        marginals of all variables are returned.
    chains, burn_in, samples
        The number of chains for each query; for each chain the sweeps that are thrown away, then those that are used.
    rao_blackwell
        Average the distributions that values are drawn from instead of the values drawn: less noise for the same
        sweeps. For a joint query this is done for the last of the asked variables.
    smoothing
        A count that is spread evenly over all states of a variable, or over all joint states of the asked variables;
        the paper uses 1.
    marginals
        Whether to return the marginals of all variables; None returns them when nothing is asked.
    seed
        Each chain of each query has its own stream of random numbers, so that answers do not depend on the number
        of threads.
    seconds
        A time for the whole call, shared evenly among the chains; each finishes its burn-in and its first batch of
        samples, and stops early when its share is over. Answers then depend on the speed of the machine.

    Examples
    --------
    >>> from tinybayes.infer import gibbs
    >>> answers = gibbs(net, evidence, chains=10)  # doctest: +SKIP
    >>> answers.marginals[0].value, answers.marginals[0].error  # doctest: +SKIP
    """
    only_evidence = not isinstance(queries, Queries)
    if not isinstance(queries, Queries):
        evidence = np.asarray(queries)
        queries = Queries(evidence, np.full(evidence.shape, -1))
    queries.check(net)
    _check_options(chains, burn_in, samples, smoothing, seed, seconds)
    run = Run(net, queries, chains, burn_in, samples, rao_blackwell, seed)
    run.marginals = only_evidence if marginals is None else marginals
    size = int(run.net.first_state[-1]) if run.marginals else 1
    group = max(1, MOST_SUMS // (2 * size * chains))
    ends = time.perf_counter() + seconds if seconds is not None else None
    parts = [run.group(first, min(first + group, len(queries)), ends) for first in range(0, len(queries), group)]
    sums = Sums(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))) if parts else run.sums(0)
    asked = found = None
    if not only_evidence:
        asked = log_probability(sums, queries, run.net.states, smoothing, rao_blackwell)
    if run.marginals:
        found = state_probabilities(sums, queries, run.net.states, smoothing, rao_blackwell)
    return GibbsAnswers(asked, found, sums.samples.sum(axis=(1, 2)))


def _check_options(chains: int, burn_in: int, samples: int, smoothing: float, seed: int, seconds: float | None) -> None:
    for name, value, least in (("chains", chains, 1), ("burn_in", burn_in, 0), ("samples", samples, 1)):
        if value != int(value) or value < least:
            raise error(f"an integer of at least {least}", value, where=name)
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
            found = start(self.net, order, evidence, seed, budget, tried, chain.x, chain.random)
            if found == 1:
                return
            if found == 0:
                raise error("evidence that can occur", "values of probability zero", where=f"evidence of query {query}")
            if left <= 0:
                raise error(
                    "evidence with a state of nonzero probability that can be found",
                    f"none within {START_VISITS} steps",
                    where=f"evidence of query {query}",
                    remedy="the evidence may be impossible; ask an exact method",
                )
            # Not as easy as that: the evidence and what it depends on first, new starts with growing patience.
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
    parents, place = net.structure.parents, np.argsort(order)
    found: dict[int, None] = {}
    for observed in [v for v in order.tolist() if evidence[v] >= 0]:
        above, waiting = set(), [observed]
        while waiting:
            v = waiting.pop()
            if v not in above and v not in found:
                above.add(v)
                waiting += parents[v]
        found |= dict.fromkeys(sorted(above, key=lambda v: place[v]))
    return np.array([*found, *(v for v in order.tolist() if v not in found)], dtype=np.int64)
