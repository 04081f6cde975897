"""Passes over a circuit for many rows: in the range of doubles where that can be, in log space where not.

The scales of a plan keep the probability of a row near one as long as its variables are about independent. Long rows
of dependent variables drift away from it, most of them alike: a few of them are passed in log space, which says how
far, and all with scales that make up for it. What still leaves the range is passed in log space.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tinybayes._kernels.circuit_plan import log_coefficients, make_homes, make_plan, plan_sizes
from tinybayes._kernels.circuits import each_row, many_rows, one_row
from tinybayes._kernels.circuits_log import rows_log
from tinybayes._kernels.lanes import ROWS
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes.infer.circuit_properties import require
from tinybayes.model import Circuit

FEW = 4  # rows that are passed one by one
_LARGE = 4_000_000  # slots: above, the values of a block of rows would take more than half a gigabyte a thread
_SHARES = 8  # of the rows, when flows are added up
_ROUNDS, _SOME = 3, 8  # how often other scales are tried, and the rows that say which
_MANY, _PROBED = 64, 512  # rows for which other scales are worth it, and for which a look at some of them beforehand is
_LOW = -580.0  # the exponent of two of a small root that is still in the range
_STEP = 300.0  # the largest exponent of two by which a scale is moved
NO_ROWS, NO_TERMS = np.empty((0, 0)), np.empty(0)

# What passes over some rows: of evidence, log-probabilities, posteriors, weights and flows.
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class Plan:
    """A circuit laid out for the kernels (`_kernels/circuit_plan.py` describes the arrays)."""

    linear: tuple[np.ndarray, ...]
    log: tuple[np.ndarray, ...]
    widest: int
    places: int
    first_entry: np.ndarray
    entry: np.ndarray
    first_state: np.ndarray
    state_variable: np.ndarray
    scale: np.ndarray
    buffers: threading.local


def plan_of(circuit: Circuit) -> Plan:
    """Return the plan of a circuit; it is kept with the circuit, which never changes."""
    kept: Plan | None = circuit.__dict__.get("_plan")
    if kept is None:
        require(circuit, "decomposable", "smooth")
        kept = circuit.__dict__["_plan"] = _make_plan(circuit)
    return kept


def _make_plan(circuit: Circuit) -> Plan:
    first_state = circuit.first_state
    graph, states = (circuit.kind, circuit.offsets, circuit.children), int(first_state[-1])
    sizes = plan_sizes(*graph, states)
    first_term, first_child, child, first_entry, entry = make_plan(*graph, circuit.leaf, states, *sizes)
    logs = log_coefficients(first_entry, entry, circuit.log_parameters)
    home, target, places = make_homes(first_term, first_child, child, states)
    slots = np.arange(len(home), dtype=np.uint32)
    log_plan = (first_term, first_child, child, logs)
    widest = max(int(np.diff(first_child).max(initial=1)), 1)
    cards = np.diff(first_state)
    # Without evidence the posteriors are the probabilities of the states, which the scales make up for.
    none, prior = np.full((1, len(cards)), -1, dtype=np.int32), np.zeros((1, states))
    rows_log(log_plan, widest, none, first_state, np.empty(1), prior, NO_TERMS, NO_TERMS)
    used = np.add.reduceat(prior[0], first_state[:-1]) > 0  # a variable need not be in the circuit
    linear = (first_term, first_child, child, np.exp(logs), target, home, slots, used)
    with np.errstate(divide="ignore"):
        scale = np.exp2(np.clip(np.rint(-np.log2(prior[0])), 0, 300))
    scale[~((prior[0] > 0) & np.isfinite(scale))] = 1.0
    variable = np.repeat(np.arange(len(cards)), cards)
    return Plan(linear, log_plan, widest, places, first_entry, entry, first_state, variable, scale, threading.local())


def passes(
    plan: Plan, X: np.ndarray, posterior: np.ndarray | None = None, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probabilities of rows and the flows of terms; write posteriors where a place is given."""
    logs, flow = np.full(len(X), np.nan), np.zeros(0 if weight is None else len(plan.linear[3]))
    if len(X) <= FEW and weight is None:
        _few_rows(plan, X, logs, posterior)
    else:
        scale: np.ndarray | None = plan.scale if len(X) < _PROBED else _scale_for(plan, X)
        for _ in range(_ROUNDS):
            if scale is None:
                break
            before = np.count_nonzero(np.isnan(logs))
            flow = flow + _pass(_linear(plan, scale), X, logs, posterior, weight, flow)
            left = np.flatnonzero(np.isnan(logs))
            in_vain = scale is not plan.scale and len(left) > 0.9 * before
            scale = None if in_vain or len(left) < _MANY else _scale_for(plan, X[left])
    return logs, flow + _pass(_in_logs(plan), X, logs, posterior, weight, flow)


def _linear(plan: Plan, scale: np.ndarray) -> Kernel:
    """Return the pass in doubles, which leaves nan where a row leaves their range."""

    def run(X: np.ndarray, logs: np.ndarray, places: np.ndarray, weight: np.ndarray, flow: np.ndarray) -> None:
        evidence = (X, plan.first_state, scale, logs, places)
        if not len(weight) and len(plan.linear[5]) > _LARGE:
            each_row(plan.linear, plan.widest, plan.places, *evidence)
        else:
            many_rows(plan.linear, plan.widest, plan.places, *evidence, weight, flow)

    return run


def _in_logs(plan: Plan) -> Kernel:
    def run(X: np.ndarray, logs: np.ndarray, places: np.ndarray, weight: np.ndarray, flow: np.ndarray) -> None:
        rows_log(plan.log, plan.widest, X, plan.first_state, logs, places, weight, flow)

    return run


def _scale_for(plan: Plan, X: np.ndarray) -> np.ndarray | None:
    """Return scales under which some of these rows stay in the range of doubles, or None."""
    some, logs = _spread(X, ROWS), np.empty(ROWS)
    for scale in _scales(plan, X):
        _linear(plan, scale)(some, logs, NO_ROWS, NO_TERMS, NO_TERMS)
        if not np.isnan(logs).all():
            return scale
    return None


def _scales(plan: Plan, X: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the scales of the plan, and others, powers of two, under which rows like these are near one, or less.

    Less, because parts of the circuit that the evidence rules out may be much larger than the rest.
    """
    yield plan.scale
    some = _spread(X, _SOME)
    logs = np.empty(len(some))
    rows_log(plan.log, plan.widest, some, plan.first_state, logs, NO_ROWS, NO_TERMS, NO_TERMS)
    seen = some >= 0
    scaled = np.where(seen, np.log2(plan.scale)[plan.first_state[:-1] + np.maximum(some, 0)], 0.0).sum(axis=1)
    possible = np.isfinite(logs) & seen.any(axis=1)
    if not possible.any():
        return
    counts = seen.sum(axis=1)[possible]
    for aim in (0.0, _LOW):
        drift = np.median(((logs / np.log(2.0) + scaled)[possible] - aim) / counts)
        steps = np.diff(np.rint(-drift * np.arange(X.shape[1] + 1)))
        yield plan.scale * np.exp2(np.clip(steps, -_STEP, _STEP))[plan.state_variable]


def _spread(X: np.ndarray, count: int) -> np.ndarray:
    """Return so many rows, from the first to the last."""
    return X[np.linspace(0, len(X) - 1, count).astype(int)]


def _pass(
    kernel: Kernel,
    X: np.ndarray,
    logs: np.ndarray,
    posterior: np.ndarray | None,
    weight: np.ndarray | None,
    flow: np.ndarray,
) -> np.ndarray:
    """Pass over the rows whose log-probability is nan; return their flows, of the shape of `flow`."""
    left = np.flatnonzero(np.isnan(logs))
    if not len(left):
        return np.zeros_like(flow)
    places = NO_ROWS if posterior is None else posterior
    weights = NO_TERMS if weight is None else weight
    if len(left) == len(X):  # usually; nothing is copied
        return _in_shares(kernel, X, logs, places, weights, flow)
    part, own = np.full(len(left), np.nan), places[left] if len(places) else NO_ROWS
    found = _in_shares(kernel, X[left], part, own, weights[left] if len(weights) else NO_TERMS, flow)
    logs[left] = part
    if len(places):
        places[left] = own
    return found


def _in_shares(
    kernel: Kernel, X: np.ndarray, logs: np.ndarray, places: np.ndarray, weight: np.ndarray, flow: np.ndarray
) -> np.ndarray:
    share = max(-(-len(X) // _SHARES // ROWS) * ROWS, ROWS) if len(weight) else share_of(len(X))
    # One place for each share, added in their order: sums do not depend on which thread was first, nor on how many.
    flows = np.zeros((-(-len(X) // share), len(flow)))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        kernel(X[part], logs[part], places[part], weight[part], flows[start // share])

    for_blocks(work, len(X), share)
    return np.asarray(flows.sum(axis=0))


def _few_rows(plan: Plan, X: np.ndarray, logs: np.ndarray, posterior: np.ndarray | None) -> None:
    if not hasattr(plan.buffers, "value"):
        plan.buffers.value, plan.buffers.slope = np.empty(len(plan.linear[0]) - 1), np.zeros(plan.places)
    value, slope = plan.buffers.value, plan.buffers.slope
    for r in range(len(X)):
        place = NO_TERMS if posterior is None else posterior[r]
        row = (X[r], plan.first_state, plan.scale)
        logs[r] = one_row(plan.linear, plan.widest, plan.places, *row, value, slope, place, posterior is not None)


def share_of(rows: int) -> int:
    """Return how many rows a thread takes at a time: whole blocks, and a few times as many shares as threads."""
    shares = 4 * thread_count() if thread_count() > 1 else 1
    return max(-(-rows // shares // ROWS) * ROWS, ROWS)
