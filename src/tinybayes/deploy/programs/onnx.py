"""Classifiers as ONNX: gathers of table rows, a sum and an arg max; integers where the model has them."""

import importlib
import json
from collections import defaultdict
from typing import Any

import numpy as np

from tinybayes.deploy.programs.encoding import Features
from tinybayes.deploy.programs.forest import Branch, branches
from tinybayes.deploy.programs.names import check_name
from tinybayes.deploy.programs.onnx_graph import Graph, known_codes
from tinybayes.deploy.programs.onnx_trees import DOMAIN, VERSION, add_trees, takes_raw
from tinybayes.deploy.programs.plan import NetPlan, Plan, TablePlan, Term, make_plan
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.errors import error
from tinybayes.infer.integers import PRECISE, GapArithmetic
from tinybayes.model import (
    MISSING,
    BayesNet,
    Categories,
    Cuts,
    Fixed,
    Grid,
    Integers,
    NeuralNet,
    TreeEnsemble,
    Variable,
)
from tinybayes.model.encoding import LOWEST
from tinybayes.model.neural_net import PEAK, Layer

OPSET, IR = 13, 8  # old enough for every runtime of the last years
LARGEST = 2**31 - 2**16  # bytes of a file: the limit of protocol buffers, minus some room for everything but tables
MAX_NODES = 20_000  # of the part that sums out missing values
FAR = -(2**40)  # log-probability of a state that is ruled out: so low that adding it changes nothing


def to_onnx(
    net: BayesNet | NeuralNet | TreeEnsemble,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    gaps: bool = True,
) -> dict[str, bytes]:
    """Write a classifier as an ONNX model; needs the package ``onnx``.

    The model ``NAME.onnx`` takes states, ``x`` of shape (rows, features) and type int64, and gives ``label`` (int64,
    the first of equally probable classes) and ``scores``: the 32-bit integers of `to_c`, or 32-bit floats whose error
    the model's description bounds. ``NAME_raw.onnx`` takes raw values, ``value``. With `gaps` a code that is not a
    state, such as -1, is missing. Without, or where the features are no forest, rows must be complete.
    """
    check_name(name)
    plan = make_plan(net, raw, gaps=gaps)
    if (size := plan.entries * 4) > LARGEST:
        remedy = "export to C, or use a smaller structure"
        raise error(f"tables of at most {LARGEST:,} bytes", f"{size:,}", where="onnx", remedy=remedy)
    files = {f"{name}.onnx": _model(plan, name, "none", note)}
    if plan.features.value:
        files[f"{name}_raw.onnx"] = _model(plan, name, plan.features.raw, note)
    return files


def _package() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as problem:
        remedy = "pip install 'tinybayes[onnx]'"
        raise error("the package onnx", "none installed", where="onnx", remedy=remedy) from problem


def _model(plan: Plan, name: str, raw: str, note: str) -> bytes:
    package, graph = _package(), Graph()
    helper, types = package.helper, package.TensorProto
    given, kind = ("x", types.INT64) if raw == "none" else ("value", types.FLOAT if raw == "float" else types.INT32)
    _add_scores(graph, plan, raw)
    graph.add("ArgMax", "scores", named="label", axis=1, keepdims=0, select_last_index=0)
    result = (types.FLOAT if plan.score == "float" else types.INT32, ["rows", plan.classes])
    results = [
        helper.make_tensor_value_info("label", types.INT64, ["rows"]),
        helper.make_tensor_value_info("scores", *result),
    ]
    inputs = [helper.make_tensor_value_info(given, kind, ["rows", len(plan.variables)])]
    constants = [package.numpy_helper.from_array(array, key) for key, array in graph.constants.items()]
    built = helper.make_graph(_nodes(helper, graph, result), name, inputs, results, constants)
    domains = [helper.make_opsetid("", OPSET)]
    domains += [helper.make_opsetid(DOMAIN, VERSION)] if isinstance(plan, TreePlan) else []
    model = helper.make_model(built, opset_imports=domains, ir_version=IR)
    model.producer_name, model.doc_string = "tinybayes", "\n".join(plan.facts(note))
    properties = {
        "features": json.dumps([v.name for v in plan.variables]),
        "classes": json.dumps([str(s) for s in plan.target.states]),
        "model": plan.id,
        **plan.unit_property,
    }
    helper.set_model_props(model, properties)
    package.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _add_scores(graph: Graph, plan: Plan, raw: str) -> None:
    """Add everything from codes or raw values to ``scores``."""
    if isinstance(plan, TreePlan) and raw != "none" and takes_raw(plan):
        add_trees(graph, plan, "value", raw=True)
        return
    x = "x" if raw == "none" else encode_values(graph, plan.features)
    if isinstance(plan, TreePlan):
        add_trees(graph, plan, x, raw=False)
    elif isinstance(plan, NetPlan):
        _net_scores(graph, plan, x)
    else:
        _bayes_scores(graph, plan, x)


def _nodes(helper: Any, graph: Graph, result: Any) -> list[Any]:
    """Write the nodes of a graph, and the graphs inside it, which give the result under the name of their last node."""

    def written(option: Any) -> Any:
        if not isinstance(option, Graph):
            return option
        gives = helper.make_tensor_value_info(option.nodes[-1][2], *result)
        return helper.make_graph(_nodes(helper, option, result), option.prefix, [], [gives])

    return [
        helper.make_node(operation, taken, [made], **{key: written(option) for key, option in options.items()})
        for operation, taken, made, options in graph.nodes
    ]


def _bayes_scores(graph: Graph, plan: TablePlan, x: str) -> None:
    """Add everything from states `x` to ``scores``; the slower way for missing values is taken if there are some."""
    forest = branches(plan) if plan.features.gaps else ()
    if not forest:
        _table_scores(graph, plan, x, "scores")
        return
    missing = graph.constant("missing", MISSING)
    codes = graph.add("Where", known_codes(graph, plan.features, x), x, missing)
    count = graph.total(graph.cast(graph.add("Equal", codes, missing), np.int64), 0, 1)
    some = graph.add("Greater", count, graph.constant("nought", 0))
    complete, incomplete = Graph("complete_", graph), Graph("gaps_", graph)
    _table_scores(complete, plan, x, "complete_scores")
    _summed_out(incomplete, plan, forest, codes)
    if (size := len(incomplete.nodes)) > MAX_NODES:
        expected = f"at most {MAX_NODES:,} nodes that sum out missing values"
        raise error(expected, f"{size:,}", where="onnx", remedy="use gaps=False, and fill the gaps")
    graph.add("If", some, named="scores", then_branch=incomplete, else_branch=complete)


def _summed_out(graph: Graph, plan: TablePlan, forest: tuple[Branch, ...], codes: str) -> None:
    """Score rows with missing values: features send the sums over their values to their parents, leaves first.

    A message has the axes (rows, features of a group, values of the parent, classes).
    """
    kind: type = np.float32 if plan.values is None else np.int64
    total = _start(graph, plan, kind)
    inbox: dict[int, dict[str, list[int]]] = defaultdict(dict)  # of each feature: messages, and its children in them
    wide = graph.add("Unsqueeze", codes, graph.axes(2, 3))
    more = "" if plan.arithmetic is None else _log_table(graph, plan.arithmetic)
    for number, group in enumerate(_groups(forest)):
        below = _possible(graph, group, wide, kind, number)
        if inbox[group[0].feature]:
            below = graph.add("Add", below, _received(graph, [inbox[b.feature] for b in group]))
        entries = _entries(graph, plan, group, number)
        if plan.values is None:
            message = _log_sum(graph, entries, below)
        else:
            message = _integer_log_sum(graph, plan.fraction, entries, below, group[0].states, more)
        if group[0].parent < 0:
            total = graph.add("Add", total, graph.total(message, 1, 2))
        else:
            for position, branch in enumerate(group):
                inbox[branch.parent].setdefault(message, []).append(position)
    graph.cast(total, np.float32 if plan.values is None else np.int32)


def _groups(forest: tuple[Branch, ...]) -> list[list[Branch]]:
    """Group the features that are summed out together: equally far above the leaves, and of equal tables."""
    height: dict[int, int] = defaultdict(int)
    groups: dict[tuple[int, int, int], list[Branch]] = defaultdict(list)
    for branch in forest:
        groups[height[branch.feature], branch.states, branch.above].append(branch)
        height[branch.parent] = max(height[branch.parent], height[branch.feature] + 1)
    return [groups[key] for key in sorted(groups)]


def _possible(graph: Graph, group: list[Branch], codes: str, kind: type, number: int) -> str:
    """Return zero for the states that features may have, else a very low number: (states, rows, features, 1, 1)."""
    states, lowest = group[0].states, -np.inf if kind is np.float32 else FAR
    own = graph.add("Gather", codes, graph.constant(f"group_{number}", [b.feature for b in group]), axis=1)
    state = graph.constant(f"states_{states}", np.arange(states).reshape(-1, 1, 1, 1, 1))
    missing = graph.add("Equal", own, graph.constant("missing", MISSING))
    possible = graph.add("Or", graph.add("Equal", own, state), missing)
    return graph.add("Where", possible, graph.constant("possible", 0, kind), graph.constant("impossible", lowest, kind))


def _received(graph: Graph, inboxes: list[dict[str, list[int]]]) -> str:
    """Add up the messages of the children: (states, rows, features, 1, classes)."""
    sums = []
    for inbox in inboxes:
        parts = []
        for message, children in inbox.items():
            index = graph.constant(f"children_{len(graph.nodes)}", children)
            part = graph.add("Gather", message, index, axis=1)
            parts.append(part if len(children) == 1 else graph.total(part, 1, keep=True))
        total = parts[0]
        for part in parts[1:]:
            total = graph.add("Add", total, part)
        sums.append(total)
    joined = sums[0] if len(sums) == 1 else graph.add("Concat", *sums, axis=1)
    return graph.add("Unsqueeze", graph.add("Transpose", joined, perm=[2, 0, 1, 3]), graph.axes(3))


def _entries(graph: Graph, plan: TablePlan, group: list[Branch], number: int) -> str:
    """Gather the entries of tables: (states, 1, features, values of the parent, classes)."""
    states, above = group[0].states, np.arange(group[0].above)
    first = np.array([b.first + states * above for b in group])
    state = graph.constant(f"rows_{states}", np.arange(states).reshape(-1, 1, 1, 1))
    rows = graph.add("Add", graph.constant(f"group_{number}_first", first[None, None]), state)
    entries = _gathered(graph, plan, "table", plan.terms.rows, rows)
    if plan.values is None:
        return entries
    wide = graph.cast(entries, np.int64)
    return graph.add("Mul", wide, graph.constant("unit_64", -(2**plan.shift))) if isinstance(plan.form, Fixed) else wide


def _log_sum(graph: Graph, entries: str, below: str) -> str:
    """Sum probabilities in floats over the states."""
    terms = graph.add("Add", entries, below)
    top = graph.add("ReduceMax", terms, axes=[0], keepdims=0)
    top = graph.add("Max", top, graph.constant("finite", -1e30, np.float32))  # no difference of infinities
    parts = graph.add("Exp", graph.add("Sub", terms, top))
    return graph.add("Add", graph.add("Log", graph.total(parts, 0)), top)


def _integer_log_sum(graph: Graph, fraction: int, entries: str, below: str, states: int, more: str) -> str:
    """Sum probabilities in integers, one state after another, since the order matters to the last bit."""
    message = ""
    for state in range(states):
        index = graph.constant(f"state_{state}", state)
        term = graph.add("Add", *(graph.add("Gather", part, index, axis=0) for part in (entries, below)))
        message = _log_add(graph, fraction, message, term, more) if message else term
    return message


def _log_table(graph: Graph, arithmetic: GapArithmetic) -> str:
    """Tabulate ``log(1 + exp(-distance))`` for all distances that matter, in units of 2**-10 nats or coarser ones."""
    fraction, table = arithmetic.fraction, arithmetic.table
    # Below one unit a nat, nothing is added; and one power of two more than an integer has would be no step.
    distances = np.arange(0, 2**13, 2 ** max(0, PRECISE - fraction)) if fraction >= 0 else np.arange(0)
    i = distances >> 8
    values = np.append(table[i] - ((table[i] - table[i + 1]) * (distances & 255) >> 8), 0)
    graph.constant("farthest", len(values) - 1)
    return graph.cast(graph.constant("log_table", values, np.min_scalar_type(int(values.max())).type), np.int64)


def _log_add(graph: Graph, fraction: int, a: str, b: str, more: str) -> str:
    """Return the larger number, and what the table adds to it."""
    distance = graph.add("Abs", graph.add("Sub", a, b))
    if fraction > PRECISE:
        distance = graph.add("Div", distance, graph.constant("distance_unit", 2 ** (fraction - PRECISE)))
    nearest = graph.add("Min", distance, "farthest")
    return graph.add("Add", graph.add("Max", a, b), graph.add("Gather", more, nearest))


def _table_scores(graph: Graph, plan: TablePlan, x: str, named: str) -> None:
    """Add up the tables that depend on the class, then those that do not."""
    kind = np.float32 if plan.values is None else np.int32
    parts = [_start(graph, plan, kind)]
    terms = plan.terms
    if terms.terms:
        parts.append(_sum(graph, plan, "table", terms.terms, terms.rows, x))
    if terms.common:
        parts.append(_sum(graph, plan, "common", terms.common, terms.entries, x))
    if not terms.terms:  # the result must have the number of rows of x
        zero = graph.total(graph.add("Mul", x, graph.constant("zero", 0)), 1, keep=True)
        parts.append(graph.cast(zero, kind))
    total = parts[0]
    for part in parts[1:-1]:
        total = graph.add("Add", total, part)
    graph.add("Add", total, parts[-1], named=named)


def _start(graph: Graph, plan: TablePlan, kind: type) -> str:
    """Return what all rows begin with."""
    parts = [plan.worth(part).astype(np.float64) for part in (plan.terms.constant, plan.terms.common_constant)]
    start = (parts[0].sum(axis=0) + parts[1].sum()) * 2**plan.shift
    return graph.constant(f"{graph.prefix}start", start.reshape(1, -1), kind)


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


def _sum(graph: Graph, plan: TablePlan, name: str, terms: tuple[Term, ...], codes: np.ndarray, x: str) -> str:
    """Gather the rows of all tables, and add up the values of their codes; without the class, in one column."""
    rows, keep = _rows(graph, terms, len(plan.variables), x, name), codes.ndim == 1
    total = graph.total(_gathered(graph, plan, name, codes, rows), 1, keep=keep)
    return (
        graph.add("Mul", total, graph.constant("unit", -(2**plan.shift), np.int32))
        if isinstance(plan.form, Fixed)
        else total
    )


def _gathered(graph: Graph, plan: TablePlan, name: str, codes: np.ndarray, rows: str) -> str:
    """Gather rows of a table: floats, levels of a codebook, or codes of a fixed point."""
    if plan.values is None:
        return graph.add("Gather", graph.constant(name, codes, np.float32), rows, axis=0)
    numbers = graph.cast(graph.add("Gather", graph.constant(name, codes, codes.dtype.type), rows, axis=0), np.int32)
    if isinstance(plan.form, Fixed):
        return numbers
    return graph.add("Gather", graph.constant("level", plan.values, np.int32), numbers, axis=0)


def encode_values(graph: Graph, features: Features) -> str:
    """Turn raw values into codes: one branch for each kind of encoding."""
    number: type = np.float32 if features.raw == "float" else np.int64
    value = "value" if number is np.float32 else graph.cast("value", number)
    branches = [
        (features.of_kind(Integers, Categories), _state_codes),
        (features.of_kind(Grid), _grid_codes),
        (features.of_kind(Cuts), _cut_codes),
    ]
    parts = []
    for indices, branch in branches:
        if indices:
            own = graph.add("Gather", value, graph.constant(f"of_{branch.__name__}", indices), axis=1)
            parts.append(branch(graph, features, indices, own, number))
    if not parts:
        return graph.cast(value, np.int64)
    codes = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
    order = [i for indices, _ in branches for i in indices]
    if order != list(range(len(order))):
        codes = graph.add("Gather", codes, graph.constant("order", np.argsort(order)), axis=1)
    return codes


def _cut_codes(graph: Graph, features: Features, indices: list[int], value: str, number: type) -> str:
    """Count the cut points that are not above a value."""
    cuts = [_points(features.variables[i], number) for i in indices]
    widest = max(len(points) for points in cuts)
    padded: np.ndarray = np.array([[*points, *[0] * (widest - len(points))] for points in cuts], dtype=number)
    real = np.arange(widest) < np.array([len(points) for points in cuts])[:, None]
    wide = graph.add("Unsqueeze", value, graph.constant("axis_2", [2]))
    above = graph.add("GreaterOrEqual", wide, graph.constant("cuts", padded, number))
    counted = graph.add("And", above, graph.constant("is_cut", real, np.bool_))
    return _with_gaps(graph, features, value, number, graph.total(graph.cast(counted, np.int64), 2))


def _points(variable: Variable, number: type) -> list[float]:
    assert isinstance(variable.encoding, Cuts)
    cuts = variable.encoding.cuts
    return list((cuts if number is np.float32 else np.ceil(cuts)).tolist())


def _grid_codes(graph: Graph, features: Features, indices: list[int], value: str, number: type) -> str:
    """Count the steps from the start, and clip them; all of it is exact, since the steps are powers of two."""
    grids = [grid for _, grid in features.grids()]
    steps = np.array([grid.step for grid in grids])
    first, top = np.array([grid.first for grid in grids]), np.array([grid.count - 1 for grid in grids])
    if number is np.float32:
        small = np.where(steps < 2.0**-64, 2.0**64, 1)  # the factor in two parts, both within the range of floats
        scaled = graph.add("Mul", value, graph.constant("to_steps", 1 / (steps * small), number))
        scaled = graph.add("Mul", scaled, graph.constant("to_small_steps", small, number))
        minus, no = graph.constant("minus_one", -1, number), graph.constant("no_limit", np.inf, number)
        limit = graph.add("Where", graph.add("Less", value, graph.constant("nothing", 0, number)), minus, no)
        counted = graph.add("Min", graph.add("Floor", scaled), limit)  # a product may vanish, but not its sign
    else:
        down = graph.constant("steps", steps)
        remainder = graph.add("Mod", value, down)  # of the sign of the step, so that the division is exact
        counted = graph.add("Div", graph.add("Sub", value, remainder), down)
    low = graph.add("Max", counted, graph.constant("first", first, number))
    clipped = graph.add("Min", low, graph.constant("last", first + top, number))
    codes = graph.cast(graph.add("Sub", clipped, graph.constant("first", first, number)), np.int64)
    return _with_gaps(graph, features, value, number, codes)


def _state_codes(graph: Graph, features: Features, indices: list[int], value: str, number: type) -> str:
    """Subtract the value of code 0; other values are unknown."""
    lowest = np.array([features.lowest(i) for i in indices])
    highest = lowest + np.array([features.variables[i].cardinality - 1 for i in indices])
    low, high = graph.constant("lowest", lowest, number), graph.constant("highest", highest, number)
    known = graph.add("And", graph.add("GreaterOrEqual", value, low), graph.add("LessOrEqual", value, high))
    if number is np.float32:
        known = graph.add("And", known, graph.add("Equal", value, graph.add("Floor", value)))
    unknown = graph.constant("unknown", MISSING if features.gaps else 0)
    valid = graph.add("Where", known, value, low)  # no cast of what is no integer
    return graph.add("Where", known, graph.cast(graph.add("Sub", valid, low), np.int64), unknown)


def _with_gaps(graph: Graph, features: Features, value: str, number: type, codes: str) -> str:
    """Mark missing values; where there are none, NaN has a code, too."""
    if number is np.float32:
        missing = graph.add("IsNaN", value)
    elif features.gaps:
        missing = graph.add("Equal", value, graph.constant("missing_value", LOWEST))
    else:
        return codes
    return graph.add("Where", missing, graph.constant("missing", MISSING if features.gaps else 0), codes)


def _net_scores(graph: Graph, plan: NetPlan, x: str) -> None:
    """Add everything from states `x` to ``scores``, in 32-bit integers that hold every sum exactly."""
    net = plan.net
    values = _inputs(graph, plan, x)
    for number, (layer, shape) in enumerate(zip(net.layers, net.shapes, strict=True)):
        weights = graph.constant(f"weights_{number}", layer.weights.reshape(-1, layer.units), np.int32)
        if layer.convolution:
            values = _windows(graph, values, shape, number)
        sums = graph.add("MatMul", values, weights)
        if layer.convolution:
            sums = graph.add("ReduceMax", sums, axes=[2], keepdims=0)
        bias = graph.constant(f"bias_{number}", layer.bias, np.int32)
        last = number == len(net.layers) - 1
        values = graph.add("Add", sums, bias, named="scores" if last else "")
        if not last:
            values = _activated(graph, layer, values, number)
        if layer.convolution:
            values = graph.add("Reshape", values, graph.constant("flat", [0, -1]))


def _inputs(graph: Graph, plan: NetPlan, x: str) -> str:
    """Turn states into the inputs of the first layer; a missing value enters as zero."""
    inputs, feature = plan.net.inputs, graph.constant("feature", plan.net.inputs.feature)
    values = graph.add("Gather", x, feature, axis=1)
    if (inputs.state >= 0).any():
        seen = graph.cast(graph.add("Equal", values, graph.constant("state", inputs.state)), np.int64)
        is_state = graph.constant("is_indicator", inputs.state >= 0, np.bool_)
        values = graph.add("Where", is_state, seen, values)
    values = graph.add("Mul", values, graph.constant("multiplier", inputs.multiplier))
    values = graph.add("Sub", values, graph.constant("center", inputs.center))
    if plan.features.gaps:
        known = graph.add("Gather", known_codes(graph, plan.features, x), feature, axis=1)
        values = graph.add("Where", known, values, graph.constant("nought", 0))
    return graph.cast(values, np.int32)


def _windows(graph: Graph, values: str, shape: tuple[int, ...], number: int) -> str:
    """Gather the windows of a convolution: (rows, pooled pixels, 4 corners, 9 pixels with all channels)."""
    rows, columns, channels = shape
    pixels = np.pad(np.arange(rows * columns * channels).reshape(shape), ((1, 1), (1, 1), (0, 0)), constant_values=-1)
    pixels = np.where(pixels < 0, rows * columns * channels, pixels)  # a zero follows the last value
    seen = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)
    seen = seen[: rows // 2 * 2, : columns // 2 * 2].reshape(rows // 2, 2, columns // 2, 2, -1).transpose(0, 2, 1, 3, 4)
    index = graph.constant(f"window_{number}", seen.reshape(-1, 4, 9 * channels))
    padded = graph.add("Pad", values, graph.constant("one_zero", [0, 0, 0, 1]))
    return graph.add("Gather", padded, index, axis=1)


def _activated(graph: Graph, layer: Layer, sums: str, number: int) -> str:
    """Apply the activation; shifts of non-negative numbers are divisions."""
    zero = graph.constant("zero_32", 0, np.int32)
    if layer.activation == "sign":
        above = graph.add("GreaterOrEqual", sums, zero)
        one, minus = graph.constant("one_32", 1, np.int32), graph.constant("minus_32", -1, np.int32)
        return graph.add("Where", above, one, minus)
    assert layer.multiplier is not None
    value = graph.cast(graph.add("Max", sums, zero), np.int64)
    value = graph.add("Div", value, graph.constant(f"before_{number}", 2**layer.before))
    value = graph.add("Mul", value, graph.constant(f"multiplier_{number}", layer.multiplier))
    value = graph.add("Add", value, graph.constant(f"half_{number}", 2**layer.after // 2))
    value = graph.add("Div", value, graph.constant(f"after_{number}", 2**layer.after))
    return graph.cast(graph.add("Min", value, graph.constant("peak", PEAK)), np.int32)
