"""One question to a model as people write it, ``A=1, B=yes | C=0``, and its answer.

Answers are divided by the sum over all assignments, because that sum is not one for tied and quantised tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.errors import TinybayesError, error, near
from tinybayes.infer.choose import DENSE, MOST_EDGES
from tinybayes.infer.circuit import conditional, log_evidence, log_partition, posteriors
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.infer.join.limits import TooLargeError
from tinybayes.infer.join.queries import log_z
from tinybayes.infer.join.solve import prepare, solve
from tinybayes.infer.sampling.problem import ImpossibleError, as_log_linear, dense_entries, observed
from tinybayes.model import BayesNet, Circuit, LogLinear, Variable
from tinybayes.model.encoding import Intervals
from tinybayes.model.variable import distinct_texts

_WHERE = "query"


@dataclass(frozen=True)
class Answer:
    """The result of `ask`.

    Parameters
    ----------
    log_evidence
        The log-probability of the evidence.
    probability
        The probability of the query, given the evidence; None when nothing is asked.
    posterior
        The posterior of every state of every variable (see `marginals`), or None.
    """

    log_evidence: float
    probability: float | None = None
    posterior: np.ndarray | None = None

    def to_dict(self, nodes: Sequence[Variable]) -> dict[str, Any]:
        """Return the answer in plain values, posteriors by variable and state; `nodes` are the model's variables."""
        values: dict[str, Any] = {"log_evidence": self.log_evidence, "probability": self.probability}
        if self.posterior is not None:
            parts = np.split(self.posterior, np.cumsum([node.cardinality for node in nodes])[:-1])
            values["marginals"] = {
                node.name: dict(zip(distinct_texts(node.states), part.tolist(), strict=True))
                for node, part in zip(nodes, parts, strict=True)
            }
        return values


def ask(model: BayesNet | Circuit | LogLinear, question: str, *, posterior: bool = False) -> Answer:
    """Answer a question such as ``"rain=yes | wet=yes, sprinkler=off"`` exactly.

    Parameters
    ----------
    model
        The model. A network or a log-linear model is answered by a join tree for each question; to ask often, compile
        it once.
    question
        ``NAME=STATE`` with commas between them: what is asked, then after a bar what is known. Either side may be
        empty. For a variable that was cut from numbers, a number stands for the interval it falls in.
    posterior
        Return the posterior of every state of every variable, too.

    Raises
    ------
    TinybayesError
        When a name or a state is unknown, or the evidence has the probability zero.
    """
    nodes = model.variables if isinstance(model, LogLinear) else model.nodes
    return ask_codes(model, *parse_query(question, nodes), posterior=posterior)


def ask_codes(
    model: BayesNet | Circuit | LogLinear, query: np.ndarray, evidence: np.ndarray, *, posterior: bool = False
) -> Answer:
    """Answer one question in codes, -1 for variables that are not in it.

    The values of the model are divided by their sum over all assignments, which is not one for tied or quantised
    parameters. Asking for a probability given impossible evidence is an error.
    """
    query, evidence = query.reshape(-1), evidence.reshape(-1)
    if not isinstance(model, Circuit):
        linear = as_log_linear(model)
        if dense_entries(linear) <= DENSE:
            try:
                return _by_join_tree(linear, query, evidence, posterior)
            except TooLargeError:
                pass  # a circuit may be small, where many parameters are zero or equal
    circuit = compile_circuit(model, max_edges=MOST_EDGES)
    query, evidence = query.reshape(1, -1), evidence.reshape(1, -1)
    log = float(log_evidence(circuit, evidence)[0]) - log_partition(circuit)
    probability = float(conditional(circuit, query, evidence)[0]) if (query >= 0).any() else None
    return Answer(log, probability, posteriors(circuit, evidence)[0] if posterior else None)


def _by_join_tree(model: LogLinear, query: np.ndarray, evidence: np.ndarray, posterior: bool) -> Answer:
    """Answer without a circuit: variables that do not bear on the question are left out."""
    known = observed(model.variables, evidence)
    asked = observed(model.variables, query)
    whole = log_z(model)
    whole = 0.0 if abs(whole) < 1e-12 * len(model.variables) else whole
    try:
        given = log_z(model, known)
    except ImpossibleError:
        if asked or posterior:
            raise
        return Answer(-np.inf)
    probability = None
    if asked:
        try:
            contradicts = any(known.get(v, state) != state for v, state in asked.items())
            both = -np.inf if contradicts else log_z(model, {**known, **asked})
        except ImpossibleError:
            both = -np.inf
        probability = min(float(np.exp(both - given)), 1.0)
    parts = solve(prepare(model, known, "posterior")).states if posterior else None
    return Answer(given - whole, probability, None if parts is None else np.concatenate(parts))


def parse_query(text: str, nodes: Sequence[Variable]) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the query and of the evidence of a question (see `ask`), -1 for variables not in them."""
    sides = text.split("|")
    if len(sides) > 2:
        raise error("one bar between what is asked and what is known", f"{len(sides) - 1}", where=_WHERE)
    rows = [np.full(len(nodes), -1, dtype=np.int32) for _ in range(2)]
    given: dict[int, int] = {}
    for row, side in zip(rows, sides, strict=False):
        for part in filter(None, map(str.strip, side.split(","))):
            node, code = _assignment(part, nodes)
            if given.setdefault(node, code) != code:
                states = f"{nodes[node].states[given[node]]} and {nodes[node].states[code]}"
                raise error(f"one state for {nodes[node].name!r}", states, where=_WHERE)
            row[node] = code
    return rows[0], rows[1]


def _assignment(part: str, nodes: Sequence[Variable]) -> tuple[int, int]:
    index = {node.name: number for number, node in enumerate(nodes)}
    # Names may hold an equals sign themselves: the first one that ends a name counts.
    for at in (at for at, letter in enumerate(part) if letter == "="):
        name = part[:at].strip()
        if name in index:
            return index[name], state_code(nodes[index[name]], part[at + 1 :].strip())
    if "=" not in part:
        raise error("NAME=STATE", repr(part), where=_WHERE, remedy='write for example "A=1, B=yes | C=0"')
    raise _unknown("one of the variables", part.split("=")[0].strip(), list(index))


def state_code(variable: Variable, text: str) -> int:
    """Return the code of a state by its text, or by a number that equals it or falls into its interval."""
    texts = distinct_texts(variable.states)
    if text in texts:
        return texts.index(text)
    number = _number(text)
    if number is not None:
        if isinstance(variable.encoding, Intervals):
            return int(variable.encoding.codes(np.array(number)))
        for code, state in enumerate(variable.states):
            if _number(str(state)) == number:
                return code
    lowered = [word.lower() for word in texts]
    if lowered.count(text.lower()) == 1:  # true for True
        return lowered.index(text.lower())
    raise _unknown(f"a state of {variable.name!r}", text, texts)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _unknown(expected: str, got: str, known: list[str]) -> TinybayesError:
    listing = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return error(f"{expected} ({listing})", repr(got), where=_WHERE, remedy=near(got, known))
