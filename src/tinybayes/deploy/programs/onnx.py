"""Classifiers as ONNX: gathers of table rows, a sum and an arg max; integers where the model has them."""

import importlib
import json
from typing import Any

import numpy as np

from tinybayes.deploy.programs._c.cut_points import float_cuts, integer_cuts, raw_kind
from tinybayes.deploy.programs._names import check_name
from tinybayes.deploy.programs._net_plan import NetPlan, net_fingerprint, net_plan
from tinybayes.deploy.programs._onnx_graph import Graph
from tinybayes.deploy.programs._onnx_net import net_graph
from tinybayes.deploy.programs._plan import Plan, fingerprint, plan
from tinybayes.deploy.programs._terms import Term
from tinybayes.errors import error
from tinybayes.model import BayesNet, Fixed, NeuralNet

OPSET, IR = 13, 8  # old enough for every runtime of the last years
LARGEST = 2**31 - 2**16  # bytes of a file: a limit of protocol buffers, less some room for what is around tables


def to_onnx(net: BayesNet | NeuralNet, *, name: str = "model", raw: str = "float", note: str = "") -> dict[str, bytes]:
    """Write a classifier as an ONNX model; needs the package ``onnx``.

    The model ``NAME.onnx`` takes states, ``x`` of shape (rows, features) and type int64, and gives ``label`` (int64,
    the first of equally probable classes) and ``scores``. Those of a network in one `Fixed` format or one `Codebook`
    are the 32-bit integers of `tinybayes.infer.integer_log_joint`, and those of a neural net the integers of
    `tinybayes.infer.neural_net.net_scores`; those of floats are 32-bit floats, whose error the model's description
    bounds. When features have cut points, ``NAME_raw.onnx`` takes measurements, ``value``.

    Parameters
    ----------
    net
        The classifier, or the neural net.
    name
        The name of the graph and of the files.
    raw
        What ``value`` is: ``"float"`` (32 bits), ``"int"`` (32 bits), or ``"none"`` for no second model.
    note
        A line for the description, such as the measured error.

    Returns
    -------
    dict of bytes
        The contents by file name.
    """
    check_name(name)
    raw = raw_kind(net.variables, raw)
    found: Plan | NetPlan = net_plan(net) if isinstance(net, NeuralNet) else plan(net)
    entries = sum(s.codes.size for s in found.stages) if isinstance(found, NetPlan) else found.terms.rows.size
    if (size := entries * 4) > LARGEST:
        remedy = "export to C, or use a smaller structure"
        raise error(f"tables of at most {LARGEST:,} bytes", f"{size:,}", where="onnx", remedy=remedy)
    files = {f"{name}.onnx": _model(found, name, "none", note)}
    if raw != "none":
        files[f"{name}_raw.onnx"] = _model(found, name, raw, note)
    return files


def _package() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as problem:
        remedy = "pip install 'tinybayes[onnx]'"
        raise error("the package onnx", "none installed", where="onnx", remedy=remedy) from problem


def _model(found: Plan | NetPlan, name: str, raw: str, note: str) -> bytes:
    package, graph = _package(), Graph()
    helper, types = package.helper, package.TensorProto
    score = types.FLOAT if found.score == "float" else types.INT32
    x = "x" if raw == "none" else _encoded(graph, found, raw)
    kind = {"none": types.INT64, "float": types.FLOAT, "int": types.INT32}[raw]
    if isinstance(found, NetPlan):
        net_graph(graph, found.net, x)
    else:
        _scores(graph, found, x)
    graph.add("ArgMax", "scores", named="label", axis=1, keepdims=0, select_last_index=0)
    given = helper.make_tensor_value_info("x" if raw == "none" else "value", kind, ["rows", len(found.variables)])
    results = [
        helper.make_tensor_value_info("label", types.INT64, ["rows"]),
        helper.make_tensor_value_info("scores", score, ["rows", found.target.cardinality]),
    ]
    constants = [package.numpy_helper.from_array(array, key) for key, array in graph.constants.items()]
    nodes = [helper.make_node(op, inputs, [made], **options) for op, inputs, made, options in graph.nodes]
    built = helper.make_graph(nodes, name, [given], results, constants)
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    model.producer_name, model.doc_string = "tinybayes", "\n".join(found.facts(note))
    helper.set_model_props(model, _facts(found))
    package.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _facts(found: Plan | NetPlan) -> dict[str, str]:
    """Return what a program needs to know to use the model, as texts."""
    facts = {
        "features": json.dumps([v.name for v in found.variables]),
        "classes": json.dumps([str(s) for s in found.target.states]),
        "model": fingerprint(found.net) if isinstance(found, Plan) else net_fingerprint(found.net),
    }
    if isinstance(found, NetPlan):
        return {**facts, "scale": repr(float(found.net.scale))}
    return facts if found.values is None else {**facts, "fraction": str(found.fraction)}


def _scores(graph: Graph, found: Plan, x: str) -> None:
    """Add up the tables that depend on the class, then those that do not."""
    terms, worth = found.terms, found.worth
    kind = np.float32 if found.values is None else np.int32
    start = worth(terms.constant).astype(np.float64).sum(axis=0) + worth(terms.common_constant).astype(np.float64).sum()
    parts = [graph.constant("start", start.reshape(1, -1), kind)]
    if terms.terms:
        parts.append(_sum(graph, found, "table", terms.terms, terms.rows, x))
    if terms.common:
        parts.append(_sum(graph, found, "common", terms.common, terms.entries, x))
    if not terms.terms:  # the number of rows is to be that of x
        zero = graph.total(graph.add("Mul", x, graph.constant("zero", 0)), 1, keep=True)
        parts.append(graph.cast(zero, kind))
    total = parts[0]
    for part in parts[1:-1]:
        total = graph.add("Add", total, part)
    graph.add("Add", total, parts[-1], named="scores")


def _rows(graph: Graph, terms: tuple[Term, ...], features: int, x: str, name: str) -> str:
    """Find the row of every table: its first one, and the strides times the codes of its features."""
    widest = max(len(t.steps) for t in terms)
    steps = np.array([[*t.steps, *[(0, 0)] * (widest - len(t.steps))] for t in terms])  # no stride: adds nothing
    feature, stride = steps[..., 0], steps[..., 1]
    first = graph.constant(f"{name}_first", [t.first for t in terms])
    if widest == 1 and feature[:, 0].tolist() == list(range(features)):
        return graph.add("Add", x, first)
    codes = graph.add("Gather", x, graph.constant(f"{name}_feature", feature), axis=1)
    moves = graph.add("Mul", codes, graph.constant(f"{name}_stride", stride))
    return graph.add("Add", graph.total(moves, 2), first)


def _sum(graph: Graph, found: Plan, name: str, terms: tuple[Term, ...], codes: np.ndarray, x: str) -> str:
    """Gather the rows of all tables, and add up what their codes are worth; without the class, in one column."""
    rows, keep = _rows(graph, terms, found.features, x, name), codes.ndim == 1
    if found.values is None:
        entries = graph.add("Gather", graph.constant(name, codes, np.float32), rows, axis=0)
        return graph.total(entries, 1, keep=keep)
    numbers = graph.cast(graph.add("Gather", graph.constant(name, codes, codes.dtype.type), rows, axis=0), np.int32)
    if isinstance(found.form, Fixed):
        return graph.add("Neg", graph.total(numbers, 1, keep=keep))
    levels = graph.add("Gather", graph.constant("level", found.values, np.int32), numbers, axis=0)
    return graph.total(levels, 1, keep=keep)


def _encoded(graph: Graph, found: Plan | NetPlan, raw: str) -> str:
    """Count the cut points not above a value; features without them take the state itself."""
    variables = found.variables
    kind, cuts_of = (np.float32, float_cuts) if raw == "float" else (np.int64, integer_cuts)
    cuts = [cuts_of(v) for v in variables]
    widest = max(map(len, cuts))
    padded = np.zeros((len(cuts), widest), dtype=kind)
    for row, some in zip(padded, cuts, strict=True):
        row[: len(some)] = some
    real = np.arange(widest) < np.array([len(some) for some in cuts])[:, None]
    value = graph.cast("value", kind)
    wide = graph.add("Unsqueeze", value, graph.constant("axis_2", [2]))
    above = graph.add("GreaterOrEqual", wide, graph.constant("cuts", padded, kind))
    counted = graph.add("And", above, graph.constant("is_cut", real, np.bool_))
    states = graph.total(graph.cast(counted, np.int64), 2)
    coded = graph.constant("is_state", [v.edges is None for v in variables], np.bool_)
    return graph.add("Where", coded, graph.cast("value", np.int64), states)
