"""Which way to the marginals of a model: a circuit, a join tree, or sampling; and what each would take."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tinybayes._kernels.threads import thread_count
from tinybayes.errors import TinybayesError
from tinybayes.infer.compile_circuit import EDGE_BYTES, compile_circuit, edges_in_memory
from tinybayes.infer.elimination import Estimate, estimate_width
from tinybayes.infer.join import rows as small
from tinybayes.infer.join.limits import MAX_SECONDS, TooLargeError
from tinybayes.infer.join.solve import Question, prepare
from tinybayes.infer.log_linear import as_network
from tinybayes.infer.memory import default_bytes
from tinybayes.infer.sampling.importance import table_room
from tinybayes.infer.sampling.problem import Evidence, Problem, as_log_linear, dense_entries, observed, restrict
from tinybayes.infer.sampling.result import SAMPLES
from tinybayes.model import BayesNet, Circuit, LogLinear

QUICK_EDGES = 300_000  # of a circuit that is tried where no join tree fits: so many are tried within about a second
MOST_EDGES = 50_000_000  # of a circuit that is tried where there can be no join tree: about a minute
BATCH_EDGES = 1_000_000  # of a circuit that is compiled for many rows
_VARIABLE_SECONDS, _EDGE_SECONDS = 1e-3, 1.5e-7  # of compiling, for an edge of the bound, which counts no zeros
_PASS_SECONDS, _PASS_BYTES = 5e-9, 40  # of both passes, for an edge
_SAMPLING_SECONDS, _SAMPLE_SECONDS = 2e-3, 3.5e-9  # of importance sampling; for an entry that a sample looks at
DENSE = 2**26  # entries of all factors as full tables: more is left to circuits, which keep decision trees small
_TRY = 2.0  # seconds of a budget in which a quick circuit can be tried
_PATIENCE = 5.0  # seconds of a join tree before a circuit is tried first
_EDGES_SECOND = 200_000  # edges that are tried for each second of the join tree, a small part of that time


@dataclass(frozen=True)
class InferenceCost:
    """What one way to all marginals takes.

    Parameters
    ----------
    method
        ``"circuit"`` (to compile it; the memory is a bound, since zeros and equal parameters often make a circuit
        smaller by orders of magnitude), ``"join-tree"``, or ``"tied"``: 20,000 samples.
    bytes, seconds
        Memory and time, roughly; infinite where the method does not apply.
    width
        The variables of the largest clique, less one; None for a circuit, whose network is not known.
    cases
        How many trees, because of the variables that are conditioned on.
    fits
        Whether it is within the limits.
    """

    method: str
    bytes: float
    seconds: float
    width: int | None
    cases: float
    fits: bool


def inference_costs(
    model: BayesNet | LogLinear | Circuit, evidence: Evidence = None, *, max_bytes: float | None = None
) -> tuple[InferenceCost, ...]:
    """Return what the ways to the marginals of a model would take, without computing them.

    Parameters
    ----------
    model
        A network, a log-linear model, or a circuit, which was compiled already.
    evidence
        As for `marginals`. A circuit is compiled before the evidence is known, a join tree is made for it.
    max_bytes
        The memory of a join tree, by default half of the machine's.
    """
    if isinstance(model, Circuit):
        edges = model.n_edges
        return (InferenceCost("circuit", float(_PASS_BYTES * edges), _PASS_SECONDS * edges, None, 1.0, True),)
    linear = as_log_linear(model)
    bound = estimate_width(model if isinstance(model, BayesNet) else as_network(model)[0])
    circuit = InferenceCost(
        "circuit",
        float(EDGE_BYTES * bound.edges),
        _compile_seconds(bound),
        bound.treewidth,
        1.0,
        bound.edges <= edges_in_memory(),
    )
    if dense_entries(linear) > DENSE:
        return circuit, InferenceCost("join-tree", math.inf, math.inf, bound.treewidth, 1.0, False)
    known = observed(linear.variables, evidence)
    sampling = _sampling(restrict(linear, known))
    limit = default_bytes() if max_bytes is None else max_bytes
    try:
        size, fits = prepare(linear, known, "posterior", max_bytes=limit).size, True
    except TooLargeError:
        size, fits = prepare(linear, known, "posterior", max_bytes=math.inf, max_seconds=math.inf).size, False
    return circuit, InferenceCost("join-tree", size.bytes, size.seconds, size.width, size.cases, fits), sampling


def _sampling(problem: Problem) -> InferenceCost:
    """Return what importance sampling takes: a sample looks at the entries of each variable in each of its factors."""
    entries = sum(int(problem.states[v]) for scope in problem.scopes for v in scope)
    seconds = _SAMPLING_SECONDS + _SAMPLE_SECONDS * SAMPLES * entries / thread_count()
    tables = table_room(float(SAMPLES) * len(problem.free))  # joint tables, and messages that are no larger
    return InferenceCost("tied", 16.0 * tables, seconds, None, 1.0, True)


def choose(
    model: BayesNet | LogLinear, known: Mapping[int, int], max_seconds: float | None = None
) -> Question | Circuit | TinybayesError:
    """Return the question to a join tree or a circuit that answers exactly; or the error that says why there is none.

    A circuit that was compiled before is the choice. Else it is a join tree, which mostly takes less time than
    compiling, unless tables would be far larger than the decision trees that they come from. Where a join tree takes
    many seconds, or more than memory holds, a circuit is tried: zeros and equal parameters may make it small.
    """
    linear = as_log_linear(model)
    if (kept := kept_circuit(linear)) is not None:
        return kept
    if dense_entries(linear) > DENSE:
        try:
            return keep_circuit(linear, MOST_EDGES)
        except TinybayesError as problem:
            return problem
    edges = QUICK_EDGES
    try:
        question = prepare(linear, known, "posterior", max_seconds=max_seconds or MAX_SECONDS)
        if question.size.seconds < _PATIENCE:
            return question
        found: Question | TinybayesError = question
        edges = int(min(max(question.size.seconds * _EDGES_SECOND, edges), edges_in_memory()))
    except TooLargeError as problem:
        found = problem
    if max_seconds is not None and max_seconds < _TRY:
        return found
    try:
        return keep_circuit(linear, edges)
    except TinybayesError:
        return found


def worth_compiling(model: LogLinear, rows: int) -> bool:
    """Tell whether a circuit for so many rows of evidence is compiled in less time than they take by join trees."""
    seconds = rows * small.row_seconds(model)
    if seconds < _VARIABLE_SECONDS * len(model.variables):
        return False
    return _compile_seconds(estimate_width(as_network(model)[0])) < seconds


def _compile_seconds(bound: Estimate) -> float:
    """Return the time that compiling takes, roughly."""
    return _VARIABLE_SECONDS * len(bound.order) + _EDGE_SECONDS * bound.edges


def kept_circuit(model: LogLinear) -> Circuit | None:
    """Return the circuit that was compiled for a model before."""
    circuit: Circuit | None = model.__dict__.get("_circuit")
    return circuit


def keep_circuit(model: LogLinear, max_edges: int | None) -> Circuit:
    """Compile a model and keep the circuit with it, since a model never changes."""
    if (kept := kept_circuit(model)) is None:
        kept = model.__dict__["_circuit"] = compile_circuit(model, max_edges=max_edges)
    return kept
