"""The part of the report page about one model: its graph, its tables, the parts of its price, and its code."""

import json
import math
from typing import Any

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import table_bytes
from tinybayes.deploy.programs.javascript import described_encoding, described_program
from tinybayes.errors import TinybayesError
from tinybayes.model import BayesNet, Circuit, Classifier, NeuralNet, TreeEnsemble, Variable
from tinybayes.report.console import bytes_text, describe_circuit
from tinybayes.report.graphs import bayes_net_graph, circuit_graph, neural_net_graph, tree_graph
from tinybayes.report.snippet import EDGES, c_snippet
from tinybayes.report.tables import cpd_table, layer_weights, level_use, use_of
from tinybayes.report.trees import describe_trees

SHARE = 400_000  # bytes of a card
STATES = 60  # of a variable whose names are kept


def nodes_of(model: Classifier) -> tuple[Variable, ...]:
    """Return all variables of a model; the class, if there is one, is the last."""
    return model.variables if model.target is None else (*model.variables, model.target)


def model_card(model: Classifier, *, share: int = SHARE) -> dict[str, Any]:
    """Return the content of the page about a model in at most `share` bytes; tables that do not fit are counted."""
    nodes = nodes_of(model)
    card: dict[str, Any] = {
        "kind": {BayesNet: "network", Circuit: "circuit", NeuralNet: "net", TreeEnsemble: "trees"}[type(model)],
        "nodes": _described(nodes, share // 4),
        "sizes": [node.cardinality for node in nodes],
        "target": len(nodes) - 1 if model.target is not None else None,
        "breakdown": breakdown(model),
        "code": c_snippet(model, share // 4),
        "program": page_program(model, share // 4),
    }
    if isinstance(model, Circuit):
        use = use_of(model.table, model.format)
        return card | {"graph": circuit_graph(model), "facts": _circuit_facts(model), "levels": use}
    if isinstance(model, NeuralNet):
        weights = layer_weights(model, share // 2)
        return card | {"graph": neural_net_graph(model), "facts": _net_facts(model), "weights": weights}
    if isinstance(model, TreeEnsemble):
        return card | {"graph": tree_graph(model), "facts": _tree_facts(model)}
    card |= {"graph": bayes_net_graph(model), "facts": _network_facts(model), "levels": level_use(model)}
    tables, card["worths"], left_out = _tables(model, share - len(json.dumps(card)))
    # The table whose rows differ most is shown first; tables of border pixels carry no information.
    spread = [float(np.exp(model.cpds[table["node"]].log_parameters).std(axis=0).sum()) for table in tables]
    return card | {"tables": tables, "left_out": left_out, "shown": int(np.argmax(spread)) if tables else 0}


def _described(nodes: tuple[Variable, ...], room: int) -> list[dict[str, Any]]:
    """Describe variables: names, the first states, and how raw values are encoded, where there is room for all."""
    described = [{"name": node.name, "states": [str(s) for s in node.states[:STATES]]} for node in nodes]
    encodings = [described_encoding(node) for node in nodes]
    if len(json.dumps(encodings)) > room:
        return described
    # States that are all listed stand there once.
    short = [
        e | {"states": True} if "states" in e and n.cardinality <= STATES else e
        for e, n in zip(encodings, nodes, strict=True)
    ]
    return [d | {"encoding": e} for d, e in zip(described, short, strict=True)]


def page_program(model: Classifier, room: int) -> dict[str, Any] | None:
    """Return the model as the page runs it; None without a class, and where it takes more than `room` bytes."""
    if model.target is None or (isinstance(model, Circuit) and model.n_edges > EDGES):
        return None
    try:
        program = described_program(model)
    except TinybayesError:
        return None
    program = {name: part for name, part in program.items() if name not in ("features", "encodings", "labels")}
    return program if len(json.dumps(program)) <= room else None


def _tables(net: BayesNet, room: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Describe the tables, the class prior first, while there is room; tables share the lists of code values."""
    order = [*range(len(net.variables), len(net.nodes)), *range(len(net.variables))]
    shown_tables: list[dict[str, Any]] = []
    worths: list[dict[str, Any]] = []
    for node in order:
        if net.cpds[node].table.size * 4 / 3 > room:  # at one byte per entry
            continue
        table = cpd_table(node, net.cpds[node], net.nodes)
        worth = table["worth"]
        table["worth"] = worths.index(worth) if worth in worths else len(worths)
        new = [worth] if table["worth"] == len(worths) else []
        room -= len(json.dumps([table, *new])) + 40  # also an entry of the list of tables
        if room >= 0:
            shown_tables.append(table)
            worths += new
    return shown_tables, worths, len(order) - len(shown_tables)


def breakdown(model: Classifier) -> list[list[Any]]:
    """Return ``[part, bits, operations]``, which add up to the price of the whole; a table is named by its node."""
    if isinstance(model, Circuit):
        cost = model_cost(model)
        shared = model.format.shared_bits
        return _parts(
            ("parameters", cost.bits - shared, 0),
            ("levels", shared, 0),
            ("sums", 0, cost.additions),
            ("products", 0, cost.multiplications),
        )
    if isinstance(model, TreeEnsemble):
        cost, tables = model_cost(model), 8 * table_bytes(model)
        return _parts(("tests and values", tables, 0), ("trees", cost.bits - tables, cost.operations))
    return _net_parts(model) if isinstance(model, NeuralNet) else _network_parts(model)


def _parts(*parts: tuple[str | int, int, int]) -> list[list[Any]]:
    return [[name, int(bits), int(work)] for name, bits, work in parts if bits or work]


def _network_parts(net: BayesNet) -> list[list[Any]]:
    target = len(net.variables)
    answers = 1 if net.target is None else net.target.cardinality
    parts: list[tuple[str | int, int, int]] = []
    first = True
    for node in sorted(range(len(net.nodes)), key=lambda n: n != target):  # n terms need n - 1 additions
        cpd = net.cpds[node]
        used = net.target is None or node == target or target in cpd.parents
        parts.append((node, cpd.table.size * cpd.format.bits, 0 if first or not used else answers))
        first = first and not used
    shared = sum(f.shared_bits for f in {cpd.format for cpd in net.cpds})
    return _parts(*parts, ("levels", shared, 0))


def _net_parts(net: NeuralNet) -> list[list[Any]]:
    """Return the weights by layer; shared and small parts (biases, multipliers, inputs) are one entry."""
    cost = model_cost(net)
    parts: list[tuple[str | int, int, int]] = []
    for number, (layer, shape) in enumerate(zip(net.layers, net.shapes, strict=True)):
        if layer.convolution:
            work = shape[0] * shape[1] * layer.codes.size
        elif number == 0:
            states = len(np.unique(net.inputs.feature[net.inputs.state >= 0]))
            work = (int((net.inputs.state < 0).sum()) + states) * layer.units
        else:
            work = math.prod(shape) * layer.units
        parts.append((f"layer {number + 1}, weights", layer.codes.size * layer.bits, work))
    bits, work = cost.bits - sum(p[1] for p in parts), cost.operations - sum(p[2] for p in parts)
    return _parts(*parts, ("biases and scales", bits, work))


def _network_facts(net: BayesNet) -> list[list[str]]:
    target = len(net.variables) if net.target is not None else -1
    edges = sum(p != target for cpd in net.cpds for p in cpd.parents)
    facts = [["features", f"{len(net.variables):,}"], ["edges between features", f"{edges:,}"]]
    apart = sum(target not in cpd.parents for cpd in net.cpds[: len(net.variables)])
    if net.target is not None:
        facts.insert(1, ["classes", f"{net.target.cardinality:,}"])
        facts.append(["features apart from the class", f"{apart:,}"])
    formats = sorted({str(cpd.format) for cpd in net.cpds})
    if not net.nodes:
        return facts
    node, cpd = max(zip(net.nodes, net.cpds, strict=True), key=lambda pair: pair[1].table.size)
    largest = f"{node.name}, {bytes_text(cpd.table.size * cpd.format.bits)}"
    return [*facts, ["number format", ", ".join(formats)], ["largest table", largest]]


def _circuit_facts(circuit: Circuit) -> list[list[str]]:
    facts = describe_circuit(circuit)
    yes = [name for name, holds in facts["properties"].items() if holds]
    return [
        ["variables", f"{len(circuit.nodes):,}"],
        ["edges", f"{facts['edges']:,}"],
        ["sums", f"{facts['sums']:,}"],
        ["products", f"{facts['products']:,}"],
        ["number format", facts["format"]],
        ["properties", ", ".join(yes) or "none"],
    ]


def _net_facts(net: NeuralNet) -> list[list[str]]:
    bits = sorted({int(layer.bits) for layer in net.layers})
    return [
        ["features", f"{len(net.variables):,}"],
        ["classes", f"{net.target.cardinality:,}"],
        ["layers", f"{len(net.layers):,}"],
        ["bits of a weight", ", ".join(map(str, bits))],
        ["largest sum", f"{math.log2(max(net.reach) + 1) + 1:.1f} bits"],
    ]


def _tree_facts(model: TreeEnsemble) -> list[list[str]]:
    sizes = describe_trees(model)
    return [
        ["features in use", f"{sizes['used_features']:,} of {len(model.variables):,}"],
        ["classes", f"{model.target.cardinality:,}"],
        ["trees", f"{sizes['trees']:,}"],
        ["leaves", f"{sizes['leaves']:,}"],
        ["depth", f"{sizes['depth']:,}"],
        ["different tests", f"{sizes['different_tests']:,}"],
        ["values of leaves", f"{sizes['values']:,}"],
    ]
