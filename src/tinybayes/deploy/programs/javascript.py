"""Models for JavaScript: one description in integers, which a few hundred lines of plain JavaScript run.

The description is made of the same plan as the programs of every other target, and ``run.js`` computes the integers of
these. The report page runs it, too: its content security policy allows no generated code, but data.
"""

import base64
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.files.native import model_id
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan, refuse_circuit_options
from tinybayes.deploy.programs.encoding import RAW
from tinybayes.deploy.programs.forest import branches
from tinybayes.deploy.programs.names import check_name, plain
from tinybayes.deploy.programs.plan import NetPlan, TablePlan, Term, make_plan
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.errors import error
from tinybayes.infer.integer_circuit import encode
from tinybayes.infer.integers import PRECISE
from tinybayes.model import Circuit, Classifier, Cuts, Grid, Integers, Variable
from tinybayes.model.encoding import Intervals

TYPES = (("u1", 2**8), ("u2", 2**16), ("u4", 2**32))  # unsigned integers, and what is too large for them
UNFORGEABLE = frozenset({"window", "document", "location", "top"})  # no script of a page may declare these
END = """
const {name} = tinybayesProgram({description});
if (typeof module !== "undefined") module.exports = {name};
"""


def to_javascript(
    model: Classifier,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    gaps: bool = True,
    query: str | None = None,
) -> dict[str, str]:
    """Write a model as one file of plain JavaScript, for browsers and Node.js.

    The object of that name has ``predict`` and ``scores``, which take codes, -1 where one is missing, ``predictRaw``
    and ``encode``, which take raw values, and ``probabilities``, ``features`` and ``classes``. Scores are integers, the
    same as in `tinybayes.deploy.programs.c.to_c`. Networks of floats are added up in doubles. Raw values are numbers or
    texts, whatever `raw` says.
    """
    check_name(name, UNFORGEABLE)
    if raw is not None and raw not in RAW:
        raise error(f"one of {', '.join(RAW)}", repr(raw), where="raw")
    if not isinstance(model, Circuit):
        refuse_circuit_options(query=query)
    described = described_program(model, gaps=gaps, query=query)
    facts = [
        f"A classifier of {len(described['features'])} features into {described['classes']} classes, by tinybayes.",
        f"Price: {model_cost(model)}.",
        *([plain(note).replace("<", "< ")] if note else []),
        f"Model {model_id(model)}.",
    ]
    head = "".join(f"// {line}\n" for line in facts)
    # Within the text of a page, "</script>" would end the script, and "<!--" would swallow what follows.
    text = json.dumps(described).replace("<", "\\u003c")
    return {f"{name}.js": head + runner() + END.format(name=name, description=text)}


@cache
def runner() -> str:
    """Return the JavaScript that runs a description."""
    folder = files("tinybayes.deploy.programs") / "_javascript"
    return (folder / "run.js").read_text(encoding="utf-8").replace("\r\n", "\n")


def described_program(model: Classifier, *, gaps: bool = True, query: str | None = None) -> dict[str, Any]:
    """Return the model as ``run.js`` takes it: plain values, and numbers in base64."""
    if isinstance(model, Circuit):
        return _circuit(model, query)
    plan = make_plan(model, "none", gaps=gaps)
    body = _tables(plan) if isinstance(plan, TablePlan) else _trees(plan) if isinstance(plan, TreePlan) else _net(plan)
    return _top(plan.variables, plan.target) | {"nats": 1.0 if plan.nats is None else float(plan.nats)} | body


def _top(features: tuple[Variable, ...], target: Variable) -> dict[str, Any]:
    return {
        "features": [variable.name for variable in features],
        "encodings": [described_encoding(variable) for variable in features],
        "states": [variable.cardinality for variable in features],
        "classes": target.cardinality,
        "labels": [str(state) for state in target.states],
    }


def described_encoding(variable: Variable) -> dict[str, Any]:
    """Say how a raw value becomes a code, as `tinybayes.data.encode` does."""
    encoding = variable.encoding
    if isinstance(encoding, Cuts):
        return {"cuts": encoding.cuts.tolist(), "single": not encoding.integer}
    if isinstance(encoding, Grid):
        steps = {"step": encoding.step, "first": encoding.first, "count": encoding.count}
        return steps | {"single": not encoding.integer}
    assert not isinstance(encoding, Intervals)
    if isinstance(encoding, Integers):
        return {"low": encoding.low, "high": encoding.high, "single": encoding.is_single}
    if all(isinstance(state, int | float) and not isinstance(state, bool) for state in variable.states):
        return {"values": [float(state) for state in variable.states]}
    return {"states": list(map(str, variable.states)), "bools": all(isinstance(s, bool) for s in variable.states)}


def _tables(plan: TablePlan) -> dict[str, Any]:
    """Describe tables as rows of codes; a forest of features has what missing values need."""
    terms, rule, floats = plan.terms, plan.arithmetic, plan.values is None
    start = plan.worth(terms.constant).astype(np.float64).sum(axis=0)
    body: dict[str, Any] = {
        "kind": "tables",
        "floats": floats,
        "levels": None if plan.values is None or not len(plan.values) else plan.values.tolist(),
        "shift": plan.shift,
        "fraction": plan.fraction,
        "start": packed(start, "f4") if floats else start.astype(np.int64).tolist(),
        "terms": _terms(terms.terms),
        "codes": packed(terms.rows, "f4" if floats else None),
        "lowest": None if rule is None else rule.lowest,
    }
    if terms.has_common:
        shared = float(plan.worth(terms.common_constant).sum())
        codes = packed(terms.entries, "f4" if floats else None)
        body["common"] = {"terms": _terms(terms.common), "codes": codes, "start": shared}
    if plan.features.gaps:
        body["forest"] = [list(branch) for branch in branches(plan)]
    if rule is not None:
        body |= {"log": rule.table.tolist(), "precise": PRECISE}
    return body


def _terms(terms: tuple[Term, ...]) -> list[Any]:
    return [[term.first, [list(step) for step in term.steps]] for term in terms]


def _net(plan: NetPlan) -> dict[str, Any]:
    inputs, layers = plan.net.inputs, []
    for layer, shape in zip(plan.net.layers, plan.net.shapes, strict=True):
        described = {
            "codes": packed(layer.codes),
            "bits": int(layer.bits),
            "units": layer.units,
            "bias": layer.bias.tolist(),
            "activation": layer.activation,
            "multiplier": None if layer.multiplier is None else layer.multiplier.tolist(),
            "before": layer.before,
            "after": layer.after,
            "image": list(shape) if layer.convolution else None,
        }
        layers.append(described)
    columns = zip(*(a.tolist() for a in (inputs.feature, inputs.state, inputs.multiplier, inputs.center)), strict=True)
    return {"kind": "net", "columns": [list(column) for column in columns], "layers": layers}


def _trees(plan: TreePlan) -> dict[str, Any]:
    trees, model = plan.net.trees, plan.net
    sets = zip(np.flatnonzero(trees.is_set).tolist(), trees.members, strict=True)
    arrays = {name: packed(getattr(trees, name), "i4") for name in ("feature", "threshold", "child", "root", "output")}
    return {
        "kind": "trees",
        **arrays,
        "missing": packed(trees.missing.astype(np.uint8)),
        "sets": {str(node): "".join("01"[int(member)] for member in members) for node, members in sets},
        "values": packed(model.values, "i4"),
        "width": model.values.shape[1],
        "start": model.start.tolist(),
    }


def _circuit(circuit: Circuit, query: str | None) -> dict[str, Any]:
    plan = make_circuit_plan(circuit, "none", query=query)
    steps, pairs = plan.steps, [encode(float(value)) for value in plan.steps.parameters]
    return _top(plan.variables, plan.target) | {
        "kind": "circuit",
        "query": plan.query,
        "mantissa": packed(np.array([m for m, _ in pairs]), "u4"),
        "exponent": [e for _, e in pairs],
        "begin": packed(steps.begin),
        "operand": packed(steps.operand),
        "product": "".join("01"[int(product)] for product in steps.product),
        "slot": packed(steps.slot),
        "root": steps.root,
    }


def packed(numbers: np.ndarray, kind: str | None = None) -> dict[str, str]:
    """Write numbers in base64; without a type as the narrowest unsigned integers."""
    flat = np.ascontiguousarray(numbers).reshape(-1)
    largest = int(flat.max()) if kind is None and flat.size else 0
    kind = kind or next(name for name, limit in TYPES if largest < limit)
    return {"type": kind, "data": base64.b64encode(flat.astype(f"<{kind}").tobytes()).decode("ascii")}
