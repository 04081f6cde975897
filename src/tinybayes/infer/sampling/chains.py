"""Markov chains that run side by side for a budget: Gibbs sampling and MC-SAT.

Gibbs sampling averages the chances that values are drawn from, not the values. In MC-SAT each factor draws a level
below its present value, and the next assignment is drawn uniformly among those that leave no factor below its level.
For a clause this is the algorithm of Poon and Domingos; a factor with several features, such as a table of a network,
has one level instead of one for each entry, so that a constant added to all of them changes nothing. With
``levels="feature"`` each feature has its own constraint, as in their paper.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinybayes._kernels.constraints import Groups, Violations, mcsat_exact, mcsat_walk
from tinybayes._kernels.gibbs import Sums, burn, enter, sample
from tinybayes._kernels.streams import start_stream
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.errors import error
from tinybayes.infer.gibbs import Queries, Run, check_count, new_chain
from tinybayes.infer.log_linear import as_network
from tinybayes.infer.orders import quick_order
from tinybayes.infer.sampling.importance import choose
from tinybayes.infer.sampling.problem import Problem, impossible
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.infer.sampling.satisfiable import satisfiable, solvable
from tinybayes.infer.sampling.schedule import Units, make_units
from tinybayes.infer.sampling.weighted import rows
from tinybayes.model import CPD, BayesNet, Float, LogLinear, Variable
from tinybayes.model.layout import starts

ROUNDS = 40  # batches of each chain
_REPORT = 0.1  # seconds
GIBBS_BURN_IN, MCSAT_BURN_IN = 1000, 20  # sweeps
_ZEROS = "one variable moves at a time: where zeros forbid this, regions that no chain has visited are missing"
_BIAS = "SampleSAT draws are near uniform only: the estimates have a bias that errors do not show"
LARGEST = 2**20  # entries of the tables that MC-SAT fills for each draw
FLIPS = 2000  # steps of SampleSAT before it gives up, for each open variable in a hundred
_NOISE, _WALK, _COLD = 0.3, 0.5, 10.0
_TRIES = 2000  # samples that may have the weight zero before there is a first state


def run_chains(
    variables: tuple[Variable, ...],
    chains: Sequence[Callable[[int], np.ndarray]],
    first_state: np.ndarray,
    budget: Budget,
    method: str,
    progress: Progress | None,
    notes: tuple[str, ...] = (),
) -> Marginals:
    """Let chains run in rounds until the budget is spent; a round of a chain is a batch.

    A chain does a number of sweeps from where it stopped, and returns the sum over them of the chances of all states.
    """
    sums: list[np.ndarray] = []
    lengths: list[int] = []
    rate, done, lately = 0.0, 0, time.perf_counter()

    def report() -> Marginals:
        return _estimates(variables, np.array(sums), np.array(lengths), first_state, budget.spent, method, notes)

    most = math.inf if budget.samples is None else max(2, math.ceil(budget.samples / len(chains)))
    while done < most and (done == 0 or budget.left > 0):
        sweeps = _sweeps(budget, rate, most - done, most)
        parts: list[np.ndarray] = [np.empty(0)] * len(chains)

        def work(begin: int, end: int, parts: list[np.ndarray] = parts, sweeps: int = sweeps) -> None:
            for c in range(begin, end):
                parts[c] = chains[c](sweeps)

        start = time.perf_counter()
        for_blocks(work, len(chains), 1)
        now = time.perf_counter()
        rate = sweeps / max(now - start, 1e-7)
        sums.append(np.array(parts))
        lengths.append(sweeps)
        done += sweeps
        if progress is not None and len(sums) > 1 and now - lately >= _REPORT:
            lately = now
            progress(report())
    return report()


def chain_count() -> int:
    """Return how many chains to run: some for each thread, and enough to compare them."""
    return max(4, thread_count())


def _sweeps(budget: Budget, rate: float, left: float, most: float) -> int:
    """Return the length of the next round."""
    if budget.seconds is None:
        return int(min(left, max(1, most // ROUNDS)))
    return int(min(left, max(1.0, rate * min(budget.seconds / ROUNDS, max(budget.left, 0.0)))))


def _estimates(
    variables: tuple[Variable, ...],
    sums: np.ndarray,
    lengths: np.ndarray,
    first_state: np.ndarray,
    seconds: float,
    method: str,
    notes: tuple[str, ...],
) -> Marginals:
    """Average the batches; errors from their spread or from that of whole chains, whichever is larger."""
    rounds, chains, _ = sums.shape
    total = lengths.sum() * chains
    mean = sums.sum(axis=(0, 1)) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        each = sums / lengths[:, None, None]
        within = (lengths[:, None, None] * (each - mean) ** 2).sum(axis=(0, 1)) / max(rounds * chains - 1, 1) / total
        between = ((sums.sum(axis=0) / lengths.sum() - mean) ** 2).sum(axis=0) / max(chains - 1, 1) / chains
        variance = np.maximum(within, between)
        effective = float((mean * (1 - mean)).sum() / variance.sum()) if variance.sum() > 0 else float(total)
    means, errors = (tuple(np.split(values, first_state[1:-1])) for values in (mean, np.sqrt(variance)))
    return Marginals(variables, means, errors, effective, None, None, int(total), seconds, 0.0, method, False, notes)


def gibbs_marginals(
    model: BayesNet | LogLinear,
    known: Mapping[int, int],
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    chains: int | None = None,
    burn_in: int = GIBBS_BURN_IN,
) -> Marginals:
    """Estimate all marginals; the chances that values are drawn from are averaged, not the values."""
    net = model if isinstance(model, BayesNet) else network(model)
    variables = model.nodes if isinstance(model, BayesNet) else model.variables
    evidence = np.full((1, len(net.nodes)), -1, dtype=np.int64)
    for v, state in known.items():
        evidence[0, v] = state
    queries = Queries(evidence, np.full(evidence.shape, -1))
    count = _checked(chains, burn_in)
    plan = Run(net, queries, count, burn_in, 1, True, seed)
    states = int(plan.net.first_state[len(variables)])
    made = [_Gibbs(plan, queries.evidence[0], number, burn_in, states).advance for number in range(count)]
    zeros = any(np.isneginf(cpd.log_parameters).any() for cpd in net.cpds)
    first_state = plan.net.first_state[: len(variables) + 1]
    return run_chains(variables, made, first_state, budget, "gibbs", progress, (_ZEROS,) if zeros else ())


class _Gibbs:
    """A chain; it is started and burnt in when it is first asked."""

    def __init__(self, plan: Run, evidence: np.ndarray, number: int, burn_in: int, states: int) -> None:
        self.plan, self.evidence, self.number, self.burn_in, self.states = plan, evidence, number, burn_in, states
        net = plan.net
        self.free = np.flatnonzero((evidence < 0) & (net.states > 1))
        self.fixed = np.flatnonzero((evidence >= 0) | (net.states < 2))
        self.asked = plan.queries.asked[0]
        self.logs = np.empty(int(net.states.max()))
        self.chain = new_chain(net)
        self.started = False

    def advance(self, sweeps: int) -> np.ndarray:
        net, chain = self.plan.net, self.chain
        if not self.started:
            self.plan.begin(chain, self.evidence, 0, self.number)
            enter(net, chain, self.asked, -1)
            burn(net, chain, self.free, self.asked, -1, self.burn_in, self.logs)
            self.started = True
        size = int(net.first_state[-1])
        one = np.zeros(1, dtype=np.int64)
        sums = Sums(one, one.copy(), np.zeros(2), np.zeros(size), np.zeros(size))
        sample(net, chain, self.free, self.asked, -1, True, np.array([0, sweeps]), sums, self.logs)
        sums.total[net.first_state[self.fixed] + chain.x[self.fixed]] = sweeps
        return sums.total[: self.states]


def network(model: LogLinear) -> BayesNet:
    """Return a network, not normalised, whose entries multiply to what the features add up to.

    Factors that cannot be the distribution of one of their variables are those of helpers with a single state, which
    come after the variables.
    """
    shape, classes = as_network(model)
    values, begin, cpds = np.append(model.weights, 0.0)[classes], 0, []
    for cpd in shape.cpds:
        table = values[begin : begin + cpd.table.size].reshape(cpd.table.shape)
        cpds.append(CPD(cpd.parents, table, Float(64), cpd.tree))
        begin += cpd.table.size
    return BayesNet(shape.variables, None, tuple(cpds))


def _checked(chains: int | None, burn_in: int) -> int:
    """Check the options of all chains; return how many there are to be."""
    check_count("burn_in", burn_in, 0)
    return chain_count() if chains is None else check_count("chains", chains, 1)


def mcsat(
    problem: Problem,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    chains: int | None = None,
    burn_in: int = MCSAT_BURN_IN,
    uniform: str = "auto",
    levels: str = "factor",
) -> Marginals:
    """Estimate all marginals.

    `uniform` says how to draw from a slice: ``"exact"``, by counting its assignments; ``"samplesat"``, by local search,
    which is only near uniform; ``"auto"``, exactly where the tables are small enough. `levels` says what has a
    constraint of its own: ``"factor"`` or ``"feature"``.
    """
    if levels not in ("factor", "feature"):
        raise error("'factor' or 'feature'", repr(levels), where="levels")
    if uniform not in ("auto", "exact", "samplesat"):
        raise error("'auto', 'exact' or 'samplesat'", repr(uniform), where="uniform")
    units = make_units(problem.scopes, problem.states, quick_order(problem.scopes, problem.states))
    small = units.entries <= LARGEST
    if uniform == "exact" and not small:
        remedy = "uniform='samplesat' does without"
        raise error(f"tables of at most {LARGEST:,} entries", f"{units.entries:,}", where="mcsat", remedy=remedy)
    exact = small and uniform != "samplesat"
    count = _checked(chains, burn_in)
    begins, groups = _first_states(problem, count, seed), _groups(problem, by_feature=levels == "feature")
    within = units if exact else None
    made = [_McSat(problem, within, groups, begins[c], [seed, c], burn_in).advance for c in range(count)]
    first_state = starts(variable.cardinality for variable in problem.variables)
    return run_chains(problem.variables, made, first_state, budget, "mcsat", progress, () if exact else (_BIAS,))


def _first_states(problem: Problem, count: int, seed: int) -> np.ndarray:
    """Draw first states that the zeros allow."""
    proposal = choose(problem, LARGEST, seed)
    drawn, logs = rows(proposal, _TRIES, seed)
    good = np.flatnonzero(np.isfinite(logs))
    if not good.size and proposal.blind and solvable(problem):
        return satisfiable(problem, proposal).rows(count, np.array([seed, 0], dtype=np.uint64))[0]
    if not good.size:
        raise impossible()
    return drawn[np.resize(good, count)]


def _groups(problem: Problem, *, by_feature: bool) -> Groups:
    """Return the number of each entry's feature within its factor; no groups if each factor has one constraint."""
    if not by_feature:
        return Groups(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    numbered = [np.unique(feature, return_inverse=True)[1].reshape(-1) for feature in problem.features]
    most = max((int(own.max()) + 1 for own in numbered), default=1)
    tops = np.array([logs.max() for logs in problem.logs])
    return Groups(np.concatenate([np.empty(0, dtype=np.int64), *numbered]), tops, np.empty(most))


class _McSat:
    """A chain of MC-SAT."""

    def __init__(
        self, problem: Problem, units: Units | None, groups: Groups, x: np.ndarray, seed: list[int], burn_in: int
    ) -> None:
        self.problem, self.units, self.x = problem, units, x.astype(np.int32)
        self.groups = groups._replace(allowed=groups.allowed.copy())
        self.shape, self.burn_in = problem.shape, burn_in
        self.random = np.zeros(1, dtype=np.uint64)
        start_stream(np.array([*seed, 7], dtype=np.uint64), self.random)
        self.logs = np.concatenate([np.empty(0), *problem.logs])
        self.failed = np.zeros(1, dtype=np.int64)
        factors = max(len(problem.scopes), 1)
        if units is not None:
            self.way, self.digits = units.way, units.digits()
            self.tables, self.joint = np.zeros(units.tables), np.empty(units.entries)
        else:
            self.tables = np.zeros(len(self.logs))
            self.violations = Violations(*(np.zeros(size, dtype=np.int64) for size in (factors, factors, factors, 1)))
        self.chance = np.zeros(int(problem.first_state[-1]))

    def advance(self, sweeps: int) -> np.ndarray:
        if self.burn_in:
            burn, self.burn_in = self.burn_in, 0
            self._sweep(burn)
        total = self._sweep(sweeps)
        return np.concatenate(self.problem.spread(total, float(sweeps)))

    def _sweep(self, sweeps: int) -> np.ndarray:
        total = np.zeros(int(self.problem.first_state[-1]))
        if not len(total):
            return total
        if self.units is not None:
            work = (self.tables, self.joint, self.digits, self.x, self.chance, self.random)
            mcsat_exact(self.shape, self.units.plan, self.way, self.logs, self.groups, *work, sweeps, total)
        else:
            flips = FLIPS * max(1, len(self.x) // 100)
            trial = np.zeros(len(self.x), dtype=np.int32)
            state = (self.tables, self.x, trial, self.violations, self.random)
            mcsat_walk(
                self.shape, self.logs, self.groups, *state, flips, _NOISE, _WALK, _COLD, sweeps, total, self.failed
            )
        return total
