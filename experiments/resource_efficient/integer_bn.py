"""Integer naive Bayes by branch and bound, a baseline: python -m experiments.resource_efficient.integer_bn.

After Tschiatschek, Paul and Pernkopf, "Integer Bayesian network classifiers" (2014). The log-parameters are -k * step
for integers k of a given number of bits. The program looks for the tables with the least sum of hinge losses

    sum over rows of max(0, gamma - (score of the row's class - best score of another class)).

The entries of a distribution must not sum to more than a limit: 1, plus what rounding may add, so that the limit admits
every table that rounding a normalised one can give. This is a mixed integer linear program: the convex envelope of exp
on the integers is piecewise linear. HiGHS (through SciPy) solves it in steps:

- relaxed: k real. Pairs of row and class, and pieces of the envelope, are added when they are violated. The least
  loss is a lower bound for all integer tables.
- rounded: these k rounded, as many of them up instead of down as the limits demand.
- near: a mixed integer program in which every k is the integer below or above the relaxed one.
- full: the mixed integer program itself, where a run asks for it.

Every solve has a time limit. The tables with the least loss are kept. Their gap is the largest possible distance of
their loss from the optimum, as a share of it. integer_bn.toml lists the runs; each finished run is appended to
results/integer_bn.jsonl and not repeated.
"""

import argparse
import json
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from experiments.provenance import provenance
from experiments.store import Record, append_line, pack, read_lines, read_report, write_report
from experiments.training import train_tables
from tinybayes import datasets
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration
from tinybayes.model import Dataset, Fixed

HERE = Path(__file__).parent
CLOSE = 2e-3  # relative: the relaxation is good enough, a limit is kept
COMPETITORS = 3  # classes that a row is compared with from the start


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from, a number format and the wanted margin.

    A cell is a value of a feature; the last one stands for the prior and is part of every row. The parameter of a cell
    and a class has the number ``cell * classes + class``.
    """

    data: Dataset
    form: Fixed
    gamma: float
    cells: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", cells(self.data))

    @property
    def rows(self) -> int:
        return len(self.data)

    @cached_property
    def y(self) -> np.ndarray:
        assert self.data.y is not None
        return self.data.y.astype(np.int64)

    @cached_property
    def classes(self) -> int:
        assert self.data.target is not None
        return self.data.target.cardinality

    @cached_property
    def group(self) -> np.ndarray:
        """The distribution that a parameter belongs to: one for each feature and class, the last is the prior."""
        count, features = self.classes, len(self.data.variables)
        of_cell = np.repeat(np.arange(features), [v.cardinality for v in self.data.variables])
        tables = of_cell[:, None] * count + np.arange(count)
        return np.concatenate([tables.reshape(-1), np.full(count, features * count)])

    @property
    def parameters(self) -> int:
        return len(self.group)

    @property
    def top(self) -> int:
        """The largest k."""
        return 2**self.form.bits - 1

    @property
    def step(self) -> float:
        return float(2.0**-self.form.fraction)

    @property
    def wanted(self) -> float:
        """The wanted margin in steps."""
        return self.gamma / self.step

    @cached_property
    def limit(self) -> np.ndarray:
        """What a distribution may sum to: rounding adds half a step to a log-parameter, clipping stops at the top."""
        return np.exp(self.step / 2) + (np.bincount(self.group) - 1) * np.exp(-self.top * self.step)

    @cached_property
    def least(self) -> np.ndarray:
        """The least k of each parameter: values that no row has say nothing, alike for all classes."""
        seen = np.zeros(self.parameters // self.classes, dtype=bool)
        seen[self.cells] = True
        return np.where(np.repeat(seen, self.classes), 0, self.top)


def cells(data: Dataset) -> np.ndarray:
    sizes = np.array([v.cardinality for v in data.variables])
    ends = np.cumsum(sizes)
    return np.column_stack([data.X.astype(np.int64) + (ends - sizes), np.full(len(data), ends[-1])])


def margins(problem: Problem, k: np.ndarray) -> np.ndarray:
    """Return by how many steps the class of each row is ahead of every class; infinite for the class itself."""
    against = k.reshape(-1, problem.classes)[problem.cells].sum(axis=1)
    ahead = against - np.take_along_axis(against, problem.y[:, None], axis=1)
    np.put_along_axis(ahead, problem.y[:, None], np.inf, axis=1)
    return ahead


def loss(problem: Problem, k: np.ndarray) -> float:
    """Return the mean hinge loss, in the units of gamma."""
    return float(np.maximum(0.0, problem.wanted - margins(problem, k).min(axis=1)).mean() * problem.step)


def error(k: np.ndarray, data: Dataset) -> float:
    assert data.target is not None
    scores = -k.reshape(-1, data.target.cardinality)[cells(data)].sum(axis=1)
    return float((scores.argmax(axis=1) != data.y).mean())


def envelope(problem: Problem, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the piece of the convex envelope of exp below each k: its left end, its value there, its slope."""
    left = np.clip(np.floor(k + 1e-9), 0, problem.top - 1)
    value = np.exp(-left * problem.step)
    return left, value, value * np.expm1(-problem.step)


def sums(problem: Problem, k: np.ndarray) -> np.ndarray:
    left, value, slope = envelope(problem, k)
    return np.bincount(problem.group, value + (k - left) * slope)


def closed_form(problem: Problem) -> np.ndarray:
    """Return the rounded tables of maximum likelihood with one more row in every cell: where to begin."""
    counts = np.ones((problem.parameters // problem.classes, problem.classes))
    np.add.at(counts, (problem.cells, problem.y[:, None]), 1)
    share = counts.reshape(-1) / np.bincount(problem.group, counts.reshape(-1))[problem.group]
    return problem.form.encode(np.log(share)).astype(np.float64)


def margin_rows(problem: Problem, pairs: np.ndarray, width: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the constraints of pairs of row and class; the columns are the k, then the slacks of the rows."""
    row, other = np.nonzero(pairs)
    at, count = problem.cells[row] * problem.classes, problem.cells.shape[1]
    columns = np.column_stack([at + problem.y[row, None], at + other[:, None], problem.parameters + row])
    values = np.tile(np.r_[np.ones(count), -np.ones(count), -1.0], (len(row), 1))
    starts = np.arange(len(row) + 1) * columns.shape[1]
    matrix = sp.csr_matrix((values.reshape(-1), columns.reshape(-1), starts), (len(row), width))
    return matrix, np.full(len(row), -problem.wanted)


def limit_rows(problem: Problem, pieces: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the limits of the distributions; the last columns are the exponentials, above the pieces in use."""
    count, start = problem.parameters, problem.parameters + problem.rows
    which, left = np.nonzero(pieces)
    value = np.exp(-left * problem.step)
    slope, number = value * np.expm1(-problem.step), np.arange(len(which))
    entries = np.r_[slope, -np.ones(len(which))], (np.r_[number, number], np.r_[which, start + which])
    above = sp.csr_matrix(entries, (len(which), start + count))
    entries = np.ones(count), (problem.group, start + np.arange(count))
    totals = sp.csr_matrix(entries, (len(problem.limit), start + count))
    return sp.vstack([totals, above]).tocsr(), np.r_[problem.limit, left * slope - value]


@dataclass(eq=False)
class Relaxed:
    """The relaxation as far as it was solved: its tables, the bound on the loss, and the constraints in use."""

    k: np.ndarray
    bound: float
    pairs: np.ndarray
    pieces: np.ndarray
    rounds: int = 0

    def program(self, problem: Problem) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
        """Return costs, matrix, right-hand sides, lower and upper ends of the columns."""
        count, n = problem.parameters, problem.rows
        limits, ends = limit_rows(problem, self.pieces)
        rows, wanted = margin_rows(problem, self.pairs, limits.shape[1])
        cost = np.r_[np.zeros(count), np.ones(n), np.zeros(count)]
        low = np.r_[problem.least, np.zeros(n + count)]
        high = np.r_[np.full(count, problem.top), np.full(n, np.inf), np.ones(count)]
        return cost, sp.vstack([limits, rows]).tocsr(), np.r_[ends, wanted], low, high

    def add(self, problem: Problem, k: np.ndarray, slack: np.ndarray) -> bool:
        """Take in what these tables violate; return whether there was anything."""
        pairs = problem.wanted - margins(problem, k) > slack[:, None] + CLOSE * problem.wanted
        left = envelope(problem, k)[0].astype(np.int64)
        over = np.flatnonzero((sums(problem, k) > problem.limit * (1 + CLOSE))[problem.group])
        new = over[~self.pieces[over, left[over]]]
        grew = bool((pairs & ~self.pairs).any() or len(new))
        self.pairs |= pairs
        self.pieces[new, left[new]] = True
        return grew


def relax(problem: Problem, seconds: float) -> Relaxed | None:
    """Solve the relaxation; None when not even its first round was done in time."""
    k = closed_form(problem)
    ahead = margins(problem, k)
    pairs = ahead <= np.sort(ahead, axis=1)[:, min(COMPETITORS, problem.classes - 1) - 1, None]
    pieces = np.zeros((problem.parameters, problem.top), dtype=bool)
    spread = np.log([1.5, 4, 12]) / problem.step
    pieces[:, sorted({0, *(int(at) for at in spread if at < problem.top)}) if problem.top > 7 else slice(None)] = True
    state = Relaxed(k, 0.0, pairs, pieces)
    began = time.perf_counter()
    while (left := seconds - (time.perf_counter() - began)) > 0:
        cost, matrix, ends, low, high = state.program(problem)
        bounds = np.column_stack([low, high])
        solved = linprog(cost, matrix, ends, bounds=bounds, method="highs-ipm", options={"time_limit": left})
        if solved.status != 0:
            break
        state.k, slack = np.split(solved.x[: problem.parameters + problem.rows], [problem.parameters])
        state.bound, state.rounds = solved.fun * problem.step / problem.rows, state.rounds + 1
        more = state.add(problem, state.k, slack)
        near = loss(problem, state.k) <= state.bound * (1 + CLOSE)
        if not more or (near and (sums(problem, state.k) <= problem.limit * (1 + 10 * CLOSE)).all()):
            break
    return state if state.rounds else None


def rounded(problem: Problem, real: np.ndarray) -> np.ndarray:
    """Round, then raise one k after the other, those first that lost most by rounding, until all limits are kept."""
    k = np.round(real)
    for table in np.flatnonzero(sums(problem, k) > problem.limit + 1e-9):
        own = np.flatnonzero(problem.group == table)
        while np.exp(-k[own] * problem.step).sum() > problem.limit[table] + 1e-9:
            open_ = own[k[own] < problem.top]
            k[open_[np.argmax(real[open_] - k[open_])]] += 1
    return k


def near(problem: Problem, state: Relaxed, seconds: float) -> tuple[np.ndarray | None, bool]:
    """Return the best integer tables beside the relaxed ones, and whether they are proven to be the best."""
    real = state.k
    while (over := (sums(problem, real) > problem.limit)[problem.group]).any():  # the relaxation may be a little off
        real = np.where(over, np.minimum(real + 0.02, problem.top), real)
    left, value, slope = envelope(problem, real)
    count, n = problem.parameters, problem.rows
    limits = sp.csr_matrix((slope, (problem.group, np.arange(count))), (len(problem.limit), count + n))
    ends = problem.limit - np.bincount(problem.group, value - left * slope)
    whole = np.abs(real - np.round(real)) < 1e-6
    low = np.maximum(problem.least, np.where(whole, np.round(real), left))
    high = np.where(whole, np.round(real), left + 1)
    bounds = Bounds(np.r_[low, np.zeros(n)], np.r_[np.maximum(low, high), np.full(n, np.inf)])
    best, proven, began = None, False, time.perf_counter()
    while not proven and (rest := seconds - (time.perf_counter() - began)) > 0:
        rows, wanted = margin_rows(problem, state.pairs, count + n)
        program = sp.vstack([limits, rows]).tocsr(), np.r_[ends, wanted]
        solved = _milp(problem, np.r_[np.zeros(count), np.ones(n)], program, bounds, rest)
        if solved.x is None:
            break
        k = np.round(solved.x[:count])
        best = k if best is None or loss(problem, k) < loss(problem, best) else best
        proven = solved.status == 0 and not state.add(problem, k, solved.x[count:])
    return best, proven


def full(problem: Problem, state: Relaxed, seconds: float) -> tuple[np.ndarray | None, float]:
    """Return the best integer tables of all, and the bound on the loss."""
    count, n = problem.parameters, problem.rows
    best, bound, began = None, state.bound, time.perf_counter()
    while (rest := seconds - (time.perf_counter() - began)) > 0:
        cost, matrix, ends, low, high = state.program(problem)
        solved = _milp(problem, cost, (matrix, ends), Bounds(low, high), rest)
        if solved.mip_dual_bound is not None and np.isfinite(solved.mip_dual_bound):
            bound = max(bound, solved.mip_dual_bound * problem.step / n)
        if solved.x is None:
            break
        real = np.round(solved.x[:count])
        k = rounded(problem, real)
        best = k if best is None or loss(problem, k) < loss(problem, best) else best
        if not state.add(problem, real, solved.x[count : count + n]):
            break
    return best, bound


def _milp(
    problem: Problem, cost: np.ndarray, rows: tuple[sp.csr_matrix, np.ndarray], bounds: Bounds, seconds: float
) -> Any:
    matrix, ends = rows
    whole = np.arange(len(cost)) < problem.parameters
    limits = {"time_limit": seconds, "mip_rel_gap": 1e-4}
    constraint = LinearConstraint(matrix, -np.inf, ends)
    return milp(cost, integrality=whole, bounds=bounds, constraints=constraint, options=limits)


def solve(problem: Problem, test: Dataset, limits: dict[str, float]) -> Record:
    """Take the steps that the time limits name, and say what each of them came to."""
    began = time.perf_counter()
    state = relax(problem, limits["relaxed"])
    if state is None:
        return {"relaxed": {"seconds": round(time.perf_counter() - began, 1)}, "error": None}
    seconds = {"relaxed": time.perf_counter() - began}
    tables: dict[str, np.ndarray | None] = {"relaxed": state.k, "rounded": rounded(problem, state.k)}
    bound, rounds, proven = state.bound, state.rounds, False
    for step in ("near", "full"):
        if limits.get(step):
            at = time.perf_counter()
            if step == "near":
                tables[step], proven = near(problem, state, limits[step])
            else:
                tables[step], bound = full(problem, state, limits[step])
            seconds[step] = time.perf_counter() - at
    record: Record = {"rounds": rounds, "bound": round(state.bound, 6), "proven near": proven}
    for step, k in tables.items():
        if k is not None:
            record[step] = {"loss": round(loss(problem, k), 6), "error": round(error(k, test), 6)}
            record[step] |= {"seconds": round(seconds[step], 1)} if step in seconds else {}
    best = min((k for step, k in tables.items() if step != "relaxed" and k is not None), key=lambda k: loss(problem, k))
    least = loss(problem, best)
    gap = (least - bound) / least if least > 0 else 0.0
    return record | {
        "bound": round(bound, 6),
        "loss": round(least, 6),
        "gap": round(max(0.0, gap), 5),
        "error": round(error(best, test), 6),
        "seconds": round(sum(seconds.values()), 1),
    }


def ours(rows: Dataset, test: Dataset, form: Fixed, setting: Record, batch: int) -> Record:
    """Train through the same format on the same rows, with one setting of the loss."""
    began = time.perf_counter()
    run = TableConfiguration(candidates=candidates.fixed(naive_bayes(rows)), number_format=form, **setting)
    done = train_tables(rows, [run], TrainingOptions(epochs=500, batch_size=batch, device="cpu"), test=test)[0]
    return {"error": round(done.test_error, 6), "seconds": round(time.perf_counter() - began, 1)}


def runs(experiment: Record) -> Iterator[tuple[Record, dict[str, float], Record]]:
    """Return what identifies each run, its time limits, and how to train ours beside it."""
    for part in experiment["run"]:
        for bits, integer, gamma in product(part["bits"], part["integer"], part["gamma"]):
            key = {"data": part["data"], "rows": part["rows"], "bits": bits, "integer": integer, "gamma": gamma}
            yield key, part["seconds"], experiment["ours"][part["data"]]


def run(key: Record, limits: dict[str, float], training: Record) -> Record:
    everything, test = datasets.load(key["data"])
    wanted = key["rows"] or len(everything)
    rows = everything.rows(np.sort(np.random.default_rng(0).permutation(len(everything))[:wanted]))
    form = Fixed(key["integer"], key["bits"] - key["integer"])
    record = key | {"used": len(rows), "limits": limits} | solve(Problem(rows, form, key["gamma"]), test, limits)
    setting = {name: value for name, value in training.items() if name != "batch"}
    batch = min(training["batch"], max(1, len(rows) // 10))
    return record | {"ours, same rows": ours(rows, test, form, setting, batch)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many seconds")
    options = parser.parse_args()
    store = HERE / "results" / "integer_bn.jsonl"
    done = read_lines(store)
    earlier, began = read_report(store.with_suffix(".json")) or {"provenance": []}, time.perf_counter()
    new: list[Record] = []
    for key, limits, training in runs(tomllib.loads((HERE / "integer_bn.toml").read_text())):
        if any(key.items() <= record.items() for record in done) or time.perf_counter() - began > options.seconds:
            continue
        at = time.perf_counter()
        record = run(key, limits, training)
        new.append(record | {"wall": round(time.perf_counter() - at, 1)})
        append_line(store, new[-1])
        print(json.dumps(new[-1]), flush=True)
    made = [provenance(sum(r["wall"] for r in new), packages=("jax", "numpy", "scipy"))] if new else []
    command = "python -m experiments.resource_efficient.integer_bn"
    report = {"provenance": earlier["provenance"] + made, "command": command, "results": done + new}
    pack(store)
    write_report(store.with_suffix(".json"), report)


if __name__ == "__main__":
    main()
