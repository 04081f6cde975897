"""Where to draw the nodes of a graph: trees and layered graphs from left to right, packed side by side.

Layouts are made once in Python, so that the page only draws them, and they are the same on every machine.
"""

import math
from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

ROW = 26.0  # from one node to the one below it
CHARACTER = 6.6  # approximate width at the size of labels
GAP = 46.0  # between the label of one column and the nodes of the next
LONGEST = 18  # characters of a label that are drawn
SWEEPS = 8  # of the ordering within layers
HIGH = 40  # rows; in higher trees a node is drawn beside its first child, to keep edges short


class Layout(NamedTuple):
    """Positions of the nodes within a rectangle."""

    x: list[float]
    y: list[float]
    width: float
    height: float


def layout(parents: Sequence[Sequence[int]], labels: Sequence[str], aspect: float = 1.7) -> Layout:
    """Place the nodes of an acyclic graph, parents left of their children, about `aspect` times as wide as high.

    Labels are drawn right of the nodes; their lengths set the distances between columns.
    """
    n = len(parents)
    x, y = [0.0] * n, [0.0] * n
    parts = components(parents)
    lonely = [part[0] for part in parts if len(part) == 1]
    boxes = [_place(part, parents, labels, x, y) for part in parts if len(part) > 1]
    groups = [part for part in parts if len(part) > 1]
    if lonely:
        groups.append(lonely)
        boxes.append(_grid(lonely, labels, x, y, aspect))
    width, height = _pack(groups, boxes, x, y, aspect)
    return Layout(x, y, width, height)


def components(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the weakly connected parts, each in the order of the nodes."""
    part = list(range(len(parents)))  # each node leads to the first one of its part, step by step

    def first(node: int) -> int:
        while part[node] != node:
            part[node] = node = part[part[node]]
        return node

    for node, family in enumerate(parents):
        for parent in family:
            low, high = sorted((first(node), first(parent)))
            part[high] = low
    members: dict[int, list[int]] = {}
    for node in range(len(parents)):
        members.setdefault(first(node), []).append(node)
    return list(members.values())


def _label_width(labels: Sequence[str], nodes: Sequence[int]) -> float:
    return CHARACTER * max(min(len(labels[node]), LONGEST) for node in nodes)


def _place(
    part: list[int], parents: Sequence[Sequence[int]], labels: Sequence[str], x: list[float], y: list[float]
) -> tuple[float, float]:
    """Place one connected part at the origin; return its size."""
    children: dict[int, list[int]] = {node: [] for node in part}
    for node in part:
        for parent in parents[node]:
            children[parent].append(node)
    layers = _layers(part, parents)
    left = 0.0
    for layer in layers:
        for node in layer:
            x[node] = left
        left += _label_width(labels, layer) + GAP
    if all(len(parents[node]) <= 1 for node in part):
        return left, _tidy(layers[0][0], children, y)
    return left, _sweep(layers, parents, children, y)


def _layers(part: list[int], parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sort nodes by the longest path that leads to them."""
    depth: dict[int, int] = {}
    for node in TopologicalSorter({node: parents[node] for node in part}).static_order():
        depth[node] = max((depth[parent] + 1 for parent in parents[node]), default=0)
    layers: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in part:
        layers[depth[node]].append(node)
    return layers


def _tidy(root: int, children: dict[int, list[int]], y: list[float]) -> float:
    """Assign a row to each leaf, and to every other node a row among its children; return the height.

    In small trees a node is centred on its children. In high trees it is beside the first child, with the smallest
    subtrees first: the view then starts at the root, and edges are short.
    """
    order = [root]
    for node in order:  # grows during the loop: parents before children
        order += children[node]
    leaves = dict.fromkeys(order, 1)
    for node in reversed(order):
        if children[node]:
            leaves[node] = sum(leaves[child] for child in children[node])
    high = leaves[root] > HIGH
    below = {node: sorted(children[node], key=leaves.__getitem__) if high else children[node] for node in order}
    start = {root: 0}
    for node in order:
        row = start[node]
        for child in below[node]:
            start[child] = row
            row += leaves[child]
    for node in reversed(order):
        middle = below[node] and not high
        y[node] = (y[below[node][0]] + y[below[node][-1]]) / 2 if middle else start[node] * ROW
    return leaves[root] * ROW


def _sweep(
    layers: list[list[int]], parents: Sequence[Sequence[int]], children: dict[int, list[int]], y: list[float]
) -> float:
    """Order each layer by the mean position of its neighbours, in sweeps both ways, and centre all layers."""
    rank = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers[1:] if forward else layers[-2::-1]:

            def mean(node: int, forward: bool = forward) -> float:
                near = parents[node] if forward else children[node]
                return sum(rank[other] for other in near) / len(near) if near else rank[node]

            layer.sort(key=mean)
            for i, node in enumerate(layer):
                rank[node] = i - len(layer) / 2
    rows = max(map(len, layers))
    for layer in layers:
        pitch = rows / len(layer)
        for i, node in enumerate(layer):
            y[node] = (i + 0.5) * pitch * ROW - ROW / 2
    return rows * ROW


def _grid(
    nodes: list[int], labels: Sequence[str], x: list[float], y: list[float], aspect: float
) -> tuple[float, float]:
    """Place nodes without neighbours column by column."""
    pitch = _label_width(labels, nodes) + GAP
    columns = max(1, round(math.sqrt(len(nodes) * ROW * aspect / pitch)))
    rows = -(-len(nodes) // columns)
    for i, node in enumerate(nodes):
        x[node], y[node] = (i // rows) * pitch, (i % rows) * ROW
    return -(-len(nodes) // rows) * pitch, rows * ROW


def _pack(
    groups: list[list[int]], boxes: list[tuple[float, float]], x: list[float], y: list[float], aspect: float
) -> tuple[float, float]:
    """Pack the parts onto shelves, the highest first; return the total size."""
    area = sum(width * height for width, height in boxes)
    limit = max([math.sqrt(area * aspect), *(width for width, _ in boxes)])
    left = top = shelf = right = 0.0
    for number in sorted(range(len(boxes)), key=lambda i: -boxes[i][1]):
        width, height = boxes[number]
        if left and left + width > limit:
            left, top, shelf = 0.0, top + shelf + ROW, 0.0
        for node in groups[number]:
            x[node] += left
            y[node] += top
        left, shelf = left + width, max(shelf, height)
        right = max(right, left)
    return right, top + shelf
