"""Which way to the marginals of a model: a circuit, a join tree, or sampling; and what each would take."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tinybayes.errors import TinybayesError
from tinybayes.infer.compile_circuit import MAX_EDGES, compile_circuit
from tinybayes.infer.elimination import estimate_width
from tinybayes.infer.join.limits import MAX_SECONDS, TooLargeError, default_bytes
from tinybayes.infer.join.solve import Question, prepare
from tinybayes.infer.log_linear import as_network
from tinybayes.infer.sampling.problem import Evidence, as_log_linear, dense_entries, observed
from tinybayes.model import BayesNet, Circuit, LogLinear

QUICK_EDGES = 300_000  # of a circuit that is tried where no join tree fits: so many are tried within about a second
_EDGE_BYTES, _EDGE_SECONDS = 40, 1e-6  # of compiling
_PASS_SECONDS = 5e-9  # of both passes, for an edge
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
        ``"circuit"`` (bounds from above: zeros and equal parameters often make a circuit smaller by orders of
        magnitude) or ``"join-tree"``.
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
    """Return what the exact ways to the marginals of a model would take, without computing them.

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
        return (InferenceCost("circuit", float(_EDGE_BYTES * edges), _PASS_SECONDS * edges, None, 1.0, True),)
    linear = as_log_linear(model)
    bound = estimate_width(model if isinstance(model, BayesNet) else as_network(model)[0])
    circuit = InferenceCost(
        "circuit",
        float(_EDGE_BYTES * bound.edges),
        _EDGE_SECONDS * bound.edges,
        bound.treewidth,
        1.0,
        bound.edges <= MAX_EDGES,
    )
    if dense_entries(linear) > DENSE:
        return circuit, InferenceCost("join-tree", math.inf, math.inf, bound.treewidth, 1.0, False)
    known = observed(linear.variables, evidence)
    limit = default_bytes() if max_bytes is None else max_bytes
    try:
        size, fits = prepare(linear, known, "posterior", max_bytes=limit).size, True
    except TooLargeError:
        size, fits = prepare(linear, known, "posterior", max_bytes=math.inf, max_seconds=math.inf).size, False
    return circuit, InferenceCost("join-tree", size.bytes, size.seconds, size.width, size.cases, fits)


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
            return keep_circuit(linear, MAX_EDGES)
        except TinybayesError as problem:
            return problem
    edges = QUICK_EDGES
    try:
        question = prepare(linear, known, "posterior", max_seconds=max_seconds or MAX_SECONDS)
        if question.size.seconds < _PATIENCE:
            return question
        found: Question | TinybayesError = question
        edges = int(min(max(question.size.seconds * _EDGES_SECOND, edges), MAX_EDGES))
    except TooLargeError as problem:
        found = problem
    if max_seconds is not None and max_seconds < _TRY:
        return found
    try:
        return keep_circuit(linear, edges)
    except TinybayesError:
        return found


def kept_circuit(model: LogLinear) -> Circuit | None:
    """Return the circuit that was compiled for a model before."""
    circuit: Circuit | None = model.__dict__.get("_circuit")
    return circuit


def keep_circuit(model: LogLinear, max_edges: int) -> Circuit:
    """Compile a model and keep the circuit with it, since a model never changes."""
    if (kept := kept_circuit(model)) is None:
        kept = model.__dict__["_circuit"] = compile_circuit(model, max_edges=max_edges)
    return kept
