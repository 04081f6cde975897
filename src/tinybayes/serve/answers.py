"""Answers to queries: the known values of a row in, the posteriors of the class and of all other variables out."""

import math
import re
from typing import Any

import numpy as np

from tinybayes.deploy.programs.javascript import described_encoding
from tinybayes.errors import TinybayesError, error
from tinybayes.infer import ask_codes, class_scores, explain, normalize_scores
from tinybayes.infer.explain import brief
from tinybayes.model import BayesNet, Circuit, Classifier, NeuralNet, TreeEnsemble, Variable
from tinybayes.model.variable import distinct_texts
from tinybayes.report.cards import nodes_of
from tinybayes.report.finite import finite

STRONGEST = 10  # contributions that are shown
STATES = 60  # of a variable whose posterior is sent
_PAIR = re.compile(r"([0-9]{1,7})\.([0-9]{1,7})")


def parse_known(text: str, model: Classifier) -> np.ndarray:
    """Parse comma-separated ``node.code`` pairs into a row of codes over all nodes, -1 where unknown."""
    nodes = nodes_of(model)
    row = np.full(len(nodes), -1, dtype=np.int64)
    for part in filter(None, text.split(",")):
        match = _PAIR.fullmatch(part)
        node, code = (int(match[1]), int(match[2])) if match else (-1, -1)
        if not 0 <= node < len(nodes) or code >= nodes[node].cardinality:
            raise error("VARIABLE.STATE by number, with commas between", repr(part[:40]), where="known")
        if row[node] >= 0:
            raise error("one state for a variable", f"two for {node}", where="known")
        row[node] = code
    return row


def questions(model: Classifier) -> dict[str, Any]:
    """Return the possible queries: the variables with their states, and the kinds of answers."""
    kinds = {BayesNet: "network", Circuit: "circuit", NeuralNet: "net", TreeEnsemble: "trees"}
    return {
        "kind": kinds[type(model)],
        "variables": [
            {"name": v.name, "states": distinct_texts(v.states), "encoding": _encoding(v)} for v in nodes_of(model)
        ],
        "target": None if model.target is None else len(model.variables),
        "explains": isinstance(model, BayesNet | TreeEnsemble) and model.target is not None,
        "posteriors": not isinstance(model, NeuralNet | TreeEnsemble),
    }


def _encoding(variable: Variable) -> dict[str, Any]:
    """Say how a raw value becomes a code; states that are listed stand there once."""
    how = described_encoding(variable)
    return how | {"states": True} if "states" in how else how


def answer(model: Classifier, circuit: Circuit | None, known: np.ndarray, against: int | None = None) -> dict[str, Any]:
    """Answer a question about a row of codes, -1 where a node is not known.

    The answer has the posterior of the class (``classes``), from the circuit, if there is one, ``log_evidence`` and the
    ``posteriors`` of all nodes, an ``explanation`` (see `tinybayes.explain`) against the given class or the second
    most probable one, and a ``note`` where something is missing.
    """
    fields: dict[str, Any] = dict.fromkeys(("classes", "log_evidence", "posteriors", "explanation"))
    fields["note"] = ""
    if circuit is not None:
        try:
            told = ask_codes(circuit, np.full(len(known), -1), known, posterior=True)
        except TinybayesError:
            return {**fields, "note": "This cannot happen under the model: its probability is zero."}
        assert told.posterior is not None
        parts = np.split(told.posterior, circuit.first_state[1:-1])
        fields["log_evidence"] = told.log_evidence
        fields["posteriors"] = [part.tolist() if len(part) <= STATES else None for part in parts]
        if model.target is not None:
            fields["classes"] = parts[-1].tolist()
    if model.target is not None and known[-1] < 0:
        fields |= _decision(model, known[:-1], against, fields["classes"])
    clean: dict[str, Any] = finite(fields)
    return clean


def _decision(model: Classifier, row: np.ndarray, against: int | None, classes: list[float] | None) -> dict[str, Any]:
    """Predict the class and explain it, with the scores that are deployed."""
    assert model.target is not None
    try:
        scores = class_scores(model, row[None])
    except TinybayesError as problem:  # this structure cannot sum out missing values; circuits can
        return {} if classes is not None else {"note": str(problem)}
    if not (scores > -math.inf).any():
        return {"classes": None, "note": "This cannot happen under the model: its probability is zero."}
    decision: dict[str, Any] = {"classes": np.exp(normalize_scores(scores))[0].tolist()}
    if isinstance(model, BayesNet | TreeEnsemble) and model.target.cardinality > 1:
        states = model.target.states
        other = None if against is None or against == int(scores[0].argmax()) else states[against]
        told = explain(model, row, against=other)
        codes = {"label_code": states.index(told.label), "against_code": states.index(told.against)}
        decision["explanation"] = brief(told, STRONGEST) | codes
    return decision
