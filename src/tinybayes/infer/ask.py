"""One question to a model, and its answer."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.infer.circuit import conditional, log_evidence, log_partition, marginals
from tinybayes.infer.compile_circuit import MAX_EDGES, compile_circuit
from tinybayes.infer.log_linear import compile_log_linear
from tinybayes.model import BayesNet, Circuit, LogLinear


@dataclass(frozen=True)
class Answer:
    """What `ask` found.

    Parameters
    ----------
    log_evidence
        The log-probability of what is known.
    probability
        That of what is asked, given what is known; None when nothing is asked.
    posterior
        The posterior of every state of every variable (see `marginals`), or None.
    """

    log_evidence: float
    probability: float | None = None
    posterior: np.ndarray | None = None

    def to_dict(self, circuit: Circuit) -> dict[str, Any]:
        """Return the answer in plain values, posteriors by variable and state."""
        values: dict[str, Any] = {"log_evidence": self.log_evidence, "probability": self.probability}
        if self.posterior is not None:
            parts = np.split(self.posterior, circuit.first_state[1:-1])
            values["marginals"] = {
                node.name: dict(zip(map(str, node.states), part.tolist(), strict=True))
                for node, part in zip(circuit.nodes, parts, strict=True)
            }
        return values


def ask(circuit: Circuit, query: np.ndarray, evidence: np.ndarray, *, posterior: bool = False) -> Answer:
    """Answer one question: rows of codes, -1 for variables that are not in them.

    Probabilities are those of the distribution: what the circuit gives is divided by its sum over all assignments,
    which is not one for tied or quantised parameters.

    Raises
    ------
    TinybayesError
        When the evidence has the probability zero, and a probability given it is asked for.
    """
    query, evidence = query.reshape(1, -1), evidence.reshape(1, -1)
    log = float(log_evidence(circuit, evidence)[0]) - log_partition(circuit)
    probability = float(conditional(circuit, query, evidence)[0]) if (query >= 0).any() else None
    return Answer(log, probability, marginals(circuit, evidence)[0] if posterior else None)


def as_circuit(model: BayesNet | Circuit | LogLinear, *, max_edges: int | None = None) -> Circuit:
    """Return a circuit as it is, and a network or a log-linear model compiled."""
    if isinstance(model, Circuit):
        return model
    most = MAX_EDGES if max_edges is None else max_edges
    if isinstance(model, LogLinear):
        return compile_log_linear(model, max_edges=most)
    return compile_circuit(model, max_edges=most)
