"""Models as graphs: positions, labels and edges in plain lists."""

from collections import deque
from typing import Any

import numpy as np

from tinybayes.model import BayesNet, Circuit, NeuralNet, TreeEnsemble
from tinybayes.model.circuit import INDICATOR, PARAMETER, SUM
from tinybayes.report.layout import CHARACTER, GAP, HIGH, LONGEST, ROW, Layout, layout
from tinybayes.report.trees import tree_nodes, tree_size

CIRCUIT_NODES = 120  # of a circuit that are drawn, from the root down
FAN = 5  # children of a node that are drawn
NODES = 1500  # of a network
CLASS = 70.0  # width reserved for the class, left of the features


def bayes_net_graph(net: BayesNet) -> dict[str, Any]:
    """Draw a network: features from left to right below their feature parents, the class before all of them.

    Edges from the class are listed separately, so that the page can hide them: nearly every feature has one. Labels
    are omitted: they are the names of the variables, which all models share.
    """
    features = min(len(net.variables), NODES)
    target = len(net.variables) if net.target is not None else -1
    families = [[p for p in cpd.parents if p != target and p < features] for cpd in net.cpds[:features]]
    labels = [variable.name for variable in net.variables[:features]]
    drawing = layout(families, labels)
    edges = [[parent, node] for node, family in enumerate(families) for parent in family]
    depends = [target in cpd.parents for cpd in net.cpds[:features]]
    kinds = ["feature" if known else "apart" for known in depends] if net.target else ["feature"] * features
    graph = _graph(drawing, labels, kinds, edges)
    if net.target is not None:
        _add_class(graph, net.target.name, [node for node, known in enumerate(depends) if known])
    del graph["labels"]
    if features < len(net.variables):
        graph["note"] = f"The first {features:,} of {len(net.variables):,} variables are drawn."
    return graph


def _add_class(graph: dict[str, Any], name: str, below: list[int]) -> None:
    """Put the class left of everything else, at half of the height of small graphs and at the top of others."""
    room = CLASS + CHARACTER * min(len(name), LONGEST)
    graph["x"] = [round(x + room, 1) for x in graph["x"]]
    graph["x"].append(0.0)
    graph["y"].append(round((graph["height"] - ROW) / 2, 1) if graph["height"] <= HIGH * ROW else 0.0)
    graph["class_edges"] = [[len(graph["kinds"]), node] for node in below]
    graph["kinds"].append("class")
    graph["width"] = round(graph["width"] + room, 1)


def circuit_graph(circuit: Circuit) -> dict[str, Any]:
    """Draw the upper part of a circuit, level by level from the root."""
    chosen: dict[int, int] = {circuit.n_nodes - 1: 0}
    queue = deque(chosen)
    edges: list[list[int]] = []
    cut: set[int] = set()
    while queue:
        node = queue.popleft()
        fan = 0
        for child in circuit.children[circuit.offsets[node] : circuit.offsets[node + 1]].tolist():
            if child not in chosen:
                fan += 1
                if fan > FAN or len(chosen) >= CIRCUIT_NODES:
                    cut.add(chosen[node])
                    continue
                chosen[child] = len(chosen)
                queue.append(child)
            edges.append([chosen[node], chosen[child]])
    families: list[list[int]] = [[] for _ in chosen]
    for parent, child in edges:
        families[child].append(parent)
    labels = [_circuit_label(circuit, node) for node in chosen]
    kinds = [("parameter", "indicator", "sum", "product")[circuit.kind[node]] for node in chosen]
    graph = _graph(layout([sorted(set(f)) for f in families], labels), labels, kinds, edges)
    graph["cut"] = sorted(cut)
    if len(chosen) < circuit.n_nodes:
        graph["note"] = f"Of {circuit.n_nodes:,} nodes {len(chosen):,} near the root are drawn."
    return graph


def _circuit_label(circuit: Circuit, node: int) -> str:
    kind, leaf = circuit.kind[node], int(circuit.leaf[node])
    if kind == PARAMETER:
        return f"{np.exp(circuit.log_parameters[leaf]):.3g}"
    if kind == INDICATOR:
        variable = int(np.searchsorted(circuit.first_state, leaf, side="right")) - 1
        chosen = circuit.nodes[variable]
        return f"{chosen.name} = {chosen.states[leaf - int(circuit.first_state[variable])]}"
    return "+" if kind == SUM else "×"


def neural_net_graph(net: NeuralNet) -> dict[str, Any]:
    """Draw a neural net as the chain of its layers."""
    labels = [f"{len(net.variables):,} features", f"{len(net.inputs):,} inputs"]
    for layer in net.layers:
        units = f"{layer.units:,} {'channels' if layer.convolution else 'units'}"
        after = "" if layer.activation == "none" else f", {layer.activation}"
        labels.append(f"{'3x3, ' if layer.convolution else ''}{units}{after}")
    labels[-1] = f"{net.layers[-1].units} classes"
    drawing = layout([[], *([i] for i in range(len(labels) - 1))], labels)
    kinds = ["feature", "feature", *["layer"] * (len(net.layers) - 1), "class"]
    return _graph(drawing, labels, kinds, [[i, i + 1] for i in range(len(labels) - 1)])


def tree_graph(model: TreeEnsemble, tree: int = 0) -> dict[str, Any]:
    """Draw one of the trees; of two children the upper one is that of the answer yes."""
    nodes = tree_nodes(model, tree)
    labels = [node.short(LONGEST) for node in nodes]
    parents = [[node.parent] if node.parent >= 0 else [] for node in nodes]
    kinds = ["leaf" if node.is_leaf else "feature" for node in nodes]
    edges = [[node.parent, i] for i, node in enumerate(nodes) if node.parent >= 0]
    graph = _graph(layout(parents, labels), labels, kinds, edges)
    graph |= {"cut": [i for i, node in enumerate(nodes) if node.is_cut], "titles": [node.text for node in nodes]}
    notes = [f"The first of {model.trees.count:,} trees."] if model.trees.count > 1 and tree == 0 else []
    if (size := tree_size(model, tree)) > len(nodes):
        notes.append(f"Of {size:,} nodes {len(nodes):,} near the root are drawn.")
    return graph | ({"note": " ".join(notes)} if notes else {})


def _graph(drawing: Layout, labels: list[str], kinds: list[str], edges: list[list[int]]) -> dict[str, Any]:
    return {
        "x": [round(x, 1) for x in drawing.x],
        "y": [round(y, 1) for y in drawing.y],
        "width": round(drawing.width - GAP, 1),
        "height": round(drawing.height, 1),
        "labels": labels,
        "kinds": kinds,
        "edges": edges,
        "class_edges": [],
    }
