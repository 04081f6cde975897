"""MC-SAT: slice sampling whose slices are sets of constraints.

Each factor draws a level below its present value, and the next assignment is drawn uniformly among those that leave no
factor below its level. For a clause this is the algorithm of Poon and Domingos; a factor with several features, such as
a table of a network, has one level instead of one for each entry, so that a constant added to all of them changes
nothing.
"""

import numpy as np

from tinybayes._kernels.constraints import Violations, mcsat_exact, mcsat_walk
from tinybayes._kernels.draws import start_stream
from tinybayes.errors import error
from tinybayes.infer.sampling._chains import chain_count, run_chains
from tinybayes.infer.sampling._constraints import digits_of, shape_of, way_of
from tinybayes.infer.sampling._problem import Problem, impossible
from tinybayes.infer.sampling._schedule import Units, elimination_order, make_units
from tinybayes.infer.sampling._weighted import rows
from tinybayes.infer.sampling.result import Budget, Marginals, Progress
from tinybayes.infer.sampling.tied import choose
from tinybayes.model import Variable

LARGEST = 2**20  # entries of the tables that are filled for each draw
BURN_IN = 20  # sweeps
FLIPS = 2000  # steps of SampleSAT before it gives up, for each open variable in a hundred
_NOISE, _WALK, _COLD = 0.3, 0.5, 10.0
_TRIES = 2000  # samples that may have the weight zero before there is a first state


def mcsat(
    variables: tuple[Variable, ...],
    problem: Problem,
    budget: Budget,
    seed: int,
    progress: Progress | None = None,
    *,
    chains: int | None = None,
    burn_in: int = BURN_IN,
    uniform: str = "auto",
) -> Marginals:
    """Estimate all marginals.

    Parameters
    ----------
    variables, problem, budget, seed, progress
        As everywhere.
    chains, burn_in
        The number of chains, and the sweeps of each that are thrown away.
    uniform
        How to draw from a slice: ``"exact"``, by counting its assignments; ``"samplesat"``, by local search, which is
        near uniform only; ``"auto"``, exactly where the tables are small enough.
    """
    if uniform not in ("auto", "exact", "samplesat"):
        raise error("'auto', 'exact' or 'samplesat'", repr(uniform), where="uniform")
    units = make_units(problem.scopes, problem.states, elimination_order(problem.scopes, problem.states))
    small = units.entries <= LARGEST
    if uniform == "exact" and not small:
        remedy = "uniform='samplesat' does without"
        raise error(f"tables of at most {LARGEST:,} entries", f"{units.entries:,}", where="mcsat", remedy=remedy)
    exact = small and uniform != "samplesat"
    count = chains or chain_count()
    begins = _starts(problem, count, seed)
    made = [_Chain(problem, units if exact else None, begins[c], [seed, c], burn_in) for c in range(count)]
    ways = (
        () if exact else ("SampleSAT draws are near uniform only: the estimates have a bias that errors do not show",)
    )
    first_state = np.concatenate([[0], np.cumsum(problem.cards)]).astype(np.int64)
    return run_chains(variables, made, first_state, budget, "mcsat", progress, ways)


def _starts(problem: Problem, count: int, seed: int) -> np.ndarray:
    """Draw first states that the zeros allow."""
    drawn, logs = rows(choose(problem, LARGEST, seed), _TRIES, seed)
    good = np.flatnonzero(np.isfinite(logs))
    if not good.size:
        raise impossible()
    return drawn[np.resize(good, count)]


class _Chain:
    """A chain of MC-SAT."""

    def __init__(self, problem: Problem, units: Units | None, x: np.ndarray, seed: list[int], burn_in: int) -> None:
        self.problem, self.units, self.x = problem, units, x.astype(np.int32)
        self.shape, self.burn_in = shape_of(problem), burn_in
        self.random = np.zeros(1, dtype=np.uint64)
        start_stream(np.array([*seed, 7], dtype=np.uint64), self.random)
        self.logs = np.concatenate([np.empty(0), *problem.logs])
        self.failed = np.zeros(1, dtype=np.int64)
        factors = max(len(problem.scopes), 1)
        if units is not None:
            self.way, self.digits = way_of(units), digits_of(units)
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
            mcsat_exact(self.shape, self.units.plan, self.way, self.logs, *work, sweeps, total)
        else:
            flips = FLIPS * max(1, len(self.x) // 100)
            trial = np.zeros(len(self.x), dtype=np.int32)
            state = (self.tables, self.x, trial, self.violations, self.random)
            mcsat_walk(self.shape, self.logs, *state, flips, _NOISE, _WALK, _COLD, sweeps, total, self.failed)
        return total
