"""Passes over a circuit for many rows: in the range of doubles where that can be, in log space where not.

The scales of a plan keep the probability of a row near one as long as its variables are about independent. Long rows
of dependent variables drift away from it, most of them alike: a few of them are passed in log space, which says how
far, and all with scales that make up for it. What still leaves the range is passed in log space.

Coefficients are products of parameters, and may themselves be outside the range of doubles. Then every slot is scaled
by a power of two that brings its value without evidence near one, and a coefficient becomes about the share that its
term has of its slot.
"""

import math
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tinybayes._kernels.circuit_plan import Plan, log_coefficients, make_homes, make_terms
from tinybayes._kernels.circuits import each_row, many_rows, one_row, partition_and_counts
from tinybayes._kernels.circuits_log import fill_log, rows_log, up_log
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
_SAFE = 345.0  # nats, half of the range of doubles: larger coefficients, or smaller ones, are scaled
_TINY = 1e-300  # the smallest coefficient, and parameter, that has all its bits for certain
_BIT = math.log(2.0)
_NO_ROWS, _NO_TERMS = np.empty((0, 0)), np.empty(0)

# A pass over some rows: of evidence, log-probabilities, posteriors, weights and flows.
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


def plan_of(circuit: Circuit) -> Plan:
    """Return the plan of a circuit; it is kept with the circuit, which never changes."""
    kept: Plan | None = circuit.__dict__.get("_plan")
    if kept is None:
        require(circuit, "decomposable", "smooth")
        kept = circuit.__dict__["_plan"] = _make_plan(circuit)
    return kept


def _make_plan(circuit: Circuit) -> Plan:
    first_state = circuit.first_state
    cards, states = circuit.cardinalities, int(first_state[-1])
    terms = make_terms(circuit.graph, states)
    logs = log_coefficients(terms.first_entry, terms.entry, circuit.log_parameters)
    home, target, n_homes = make_homes(terms, states)
    plan = Plan(
        **terms._asdict(),
        target=target,
        home=home,
        slots=np.arange(len(home), dtype=np.uint32),
        coefficient=_NO_TERMS,
        log_coefficient=logs,
        first_state=first_state,
        state_variable=np.repeat(np.arange(len(cards)), cards),
        scale=np.ones(states),
        used=np.ones(len(cards), dtype=bool),
        most_children=max(int(np.diff(terms.first_child).max(initial=1)), 1),
        n_homes=int(n_homes),
        shift=0.0,
        watched=False,
    )
    plan = _with_coefficients(plan, logs)
    # Without evidence the posteriors are the probabilities of the states, which the scales make up for.
    nothing, prior = np.full((1, len(cards)), -1, dtype=np.int32), np.zeros((1, states))
    rows_log(plan, nothing, np.empty(1), prior, _NO_TERMS, _NO_TERMS)
    used = np.add.reduceat(prior[0], first_state[:-1]) > 0  # a variable need not be in the circuit
    with np.errstate(divide="ignore"):
        scale = np.exp2(np.clip(np.rint(-np.log2(prior[0])), 0, 300))
    scale[~((prior[0] > 0) & np.isfinite(scale))] = 1.0
    return plan._replace(scale=scale, used=used)


def _with_coefficients(plan: Plan, logs: np.ndarray) -> Plan:
    """Return the plan with its coefficients in linear space, scaled where they are not in the middle of the range."""
    possible = logs > -np.inf
    if not (np.abs(logs[possible]) > _SAFE).any():
        return plan._replace(coefficient=np.exp(logs))
    value, nothing = np.empty(len(plan.home)), np.full(len(plan.first_state) - 1, -1, dtype=np.int32)
    fill_log(plan, nothing, value)
    up_log(plan, value)
    bits = np.where(value > -np.inf, np.rint(value / _BIT), 0.0)
    if np.abs(bits).sum() + np.abs(bits[plan.child]).sum() > 2.0**53:  # these integers are added up in doubles
        with np.errstate(over="ignore"):
            return plan._replace(coefficient=np.exp(logs), watched=True)
    below = np.diff(np.concatenate([[0.0], np.cumsum(bits[plan.child])])[plan.first_child])
    # A slot that is always zero has no scale; what multiplies it does not matter, but must not be infinite.
    never = np.concatenate([[0], np.cumsum(np.isneginf(value[plan.child]))])[plan.first_child]
    possible &= np.diff(never) == 0
    scaled = logs + (below - np.repeat(bits, np.diff(plan.first_term))) * _BIT
    coefficient = np.exp(np.where(possible, scaled, -np.inf))
    watched = bool((coefficient[possible] < _TINY).any())
    return plan._replace(coefficient=coefficient, shift=float(bits[-1]) * _BIT, watched=watched)


def pass_rows(
    circuit: Circuit, X: np.ndarray, posterior: np.ndarray | None = None, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probability of each row of evidence, and the flow through each term of the plan.

    `X` holds the codes of all variables as contiguous int32. Posteriors are written to `posterior`, shape (rows, states
    of all variables). Flows (see `_kernels/circuit_plan.py`) are added up, weighted, where `weight` is given.
    """
    plan = plan_of(circuit)
    logs, flow = np.full(len(X), np.nan), np.zeros(0 if weight is None else len(plan.coefficient))
    if len(X) <= FEW and weight is None:
        _few_rows(circuit, plan, X, logs, posterior)
        if not np.isnan(logs).any():
            return logs, flow
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
    return logs, flow + _pass(partial(rows_log, plan), X, logs, posterior, weight, flow)


def entry_counts(plan: Plan, flow: np.ndarray, n_entries: int) -> np.ndarray:
    """Return how much flows through each of the parameters, given the flows through the terms."""
    terms = np.repeat(np.arange(len(flow)), np.diff(plan.first_entry))
    return np.bincount(plan.entry, weights=flow[terms], minlength=n_entries)


class ExpectedCounts:
    """``log Z`` and the expected count of every parameter of a log-linear model's circuit, for changing weights."""

    def __init__(self, circuit: Circuit) -> None:
        plan = plan_of(circuit)
        # The plan of all circuits of this form, whatever their weights: no coefficient is known to be zero, or scaled.
        own, no_zeros = np.empty(len(plan.coefficient)), np.zeros(len(plan.coefficient))
        self._plan = plan._replace(coefficient=own, log_coefficient=no_zeros, shift=0.0, watched=False)
        self._entries = len(circuit.table)
        self._scratch = np.empty(len(plan.home)), np.zeros(plan.n_homes), np.empty(len(plan.coefficient))

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return ``log Z`` and the expected counts under these weights, logarithms of the parameters."""
        counts = np.empty(self._entries)
        with np.errstate(over="ignore", under="ignore"):
            parameters = np.exp(weights)
        if ((parameters < _TINY) & (weights > -np.inf)).any():
            return self._in_logs(weights)
        root = partition_and_counts(self._plan, parameters, *self._scratch, counts)
        return (math.log(root), counts) if not math.isnan(root) else self._in_logs(weights)

    def _in_logs(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        logs = log_coefficients(self._plan.first_entry, self._plan.entry, weights)
        plan, total, flow = self._plan._replace(log_coefficient=logs), np.empty(1), np.zeros(len(logs))
        nothing = np.full((1, len(plan.first_state) - 1), -1, np.int32)
        rows_log(plan, nothing, total, _NO_ROWS, np.ones(1), flow)
        return float(total[0]), entry_counts(plan, flow, self._entries)


def _linear(plan: Plan, scale: np.ndarray) -> Kernel:
    """Return the pass in doubles, which leaves nan where a row leaves their range."""
    scaled = plan._replace(scale=scale)

    def run(X: np.ndarray, logs: np.ndarray, posterior: np.ndarray, weight: np.ndarray, flow: np.ndarray) -> None:
        if not len(weight) and len(plan.home) > _LARGE:
            each_row(scaled, X, logs, posterior)
        else:
            many_rows(scaled, X, logs, posterior, weight, flow)

    return run


def _scale_for(plan: Plan, X: np.ndarray) -> np.ndarray | None:
    """Return scales under which some of these rows stay in the range of doubles, or None."""
    some, logs = _spread(X, ROWS), np.empty(ROWS)
    for scale in _scales(plan, X):
        _linear(plan, scale)(some, logs, _NO_ROWS, _NO_TERMS, _NO_TERMS)
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
    rows_log(plan, some, logs, _NO_ROWS, _NO_TERMS, _NO_TERMS)
    seen = some >= 0
    scaled = np.where(seen, np.log2(plan.scale)[plan.first_state[:-1] + np.maximum(some, 0)], 0.0).sum(axis=1)
    possible = np.isfinite(logs) & seen.any(axis=1)
    if not possible.any():
        return
    counts = seen.sum(axis=1)[possible]
    for aim in (0.0, _LOW):
        drift = np.median((((logs - plan.shift) / _BIT + scaled)[possible] - aim) / counts)
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
    size = len(left)
    if not size:
        return np.zeros_like(flow)
    arrays = X, logs, _NO_ROWS if posterior is None else posterior, _NO_TERMS if weight is None else weight
    # Usually these are all rows, and nothing is copied.
    own = arrays if size == len(X) else tuple(array[left] if len(array) else array for array in arrays)
    share = share_of(size) if weight is None else max(-(-size // _SHARES // ROWS) * ROWS, ROWS)
    # A row for each share, added in their order: sums do not depend on which thread was first, nor on how many.
    flows = np.zeros((-(-size // share), len(flow)))

    def work(start: int, stop: int) -> None:
        rows, own_logs, own_posterior, own_weight = (array[start:stop] for array in own)
        kernel(rows, own_logs, own_posterior, own_weight, flows[start // share])

    for_blocks(work, size, share)
    if own is not arrays:
        for array, part in zip(arrays[1:3], own[1:3], strict=True):
            if len(array):
                array[left] = part
    return np.asarray(flows.sum(axis=0))


def _few_rows(circuit: Circuit, plan: Plan, X: np.ndarray, logs: np.ndarray, posterior: np.ndarray | None) -> None:
    """Pass over rows one by one, in scratch that each thread keeps with the circuit."""
    scratch = circuit.__dict__.get("_scratch") or circuit.__dict__.setdefault("_scratch", threading.local())
    if not hasattr(scratch, "value"):
        scratch.value, scratch.slope = np.empty(len(plan.home)), np.zeros(plan.n_homes)
    for r in range(len(X)):
        out = _NO_TERMS if posterior is None else posterior[r]
        logs[r] = one_row(plan, X[r], scratch.value, scratch.slope, out)


def share_of(rows: int) -> int:
    """Return how many rows a thread takes at a time: whole blocks, and a few times as many shares as threads."""
    shares = 4 * thread_count() if thread_count() > 1 else 1
    return max(-(-rows // shares // ROWS) * ROWS, ROWS)
