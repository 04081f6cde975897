"""Compact tables for the page: codes in base64, and the value of each code."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybayes.model import CPD, BayesNet, Codebook, DecisionTree, Fixed, NeuralNet, NumberFormat, Variable

STEP = 1 / 1024  # in which floats are shown: 0.05 % of a probability
LAST = 2**16 - 1
PATH = 90  # characters of a path through a decision tree
LEVELS = 256  # more are not drawn one by one


def packed(codes: np.ndarray) -> dict[str, Any]:
    """Encode small integers as base64, with the bytes per integer."""
    width = 1 if not codes.size or int(codes.max()) < 256 else 2
    data = np.ascontiguousarray(codes, dtype="<u2" if width == 2 else "u1").tobytes()
    return {"width": width, "data": base64.b64encode(data).decode("ascii")}


def shown_codes(table: np.ndarray, number_format: NumberFormat) -> tuple[np.ndarray, dict[str, Any]]:
    """Return codes of at most 16 bits and their values: a list, or ``offset - step * code``.

    Fixed point and codebooks keep their codes; floats and wider formats are rounded for display, and the last code
    stands for all smaller values.
    """
    if isinstance(number_format, Codebook) and len(number_format.values) <= 2**16:
        values = [value if np.isfinite(value) else None for value in number_format.values]
        return table, {"values": values, "exact": True}
    if isinstance(number_format, Fixed) and number_format.bits <= 16:
        return table, {"offset": 0.0, "step": 2.0**-number_format.fraction, "exact": True}
    logs = number_format.decode(table)
    offset = max(0.0, float(logs.max()))
    with np.errstate(invalid="ignore"):
        codes = np.minimum(np.rint((offset - logs) / STEP), LAST)
    return codes.astype(np.uint16), {"offset": offset, "step": STEP, "last": LAST, "exact": False}


def cpd_table(node: int, cpd: CPD, nodes: Sequence[Variable]) -> dict[str, Any]:
    """Describe one table; rows enumerate the parents' states, or are named by the paths of a decision tree."""
    codes, worth = shown_codes(cpd.table, cpd.format)
    card = {"node": node, "parents": list(cpd.parents), "rows": len(codes), **packed(codes), "worth": worth}
    if cpd.tree is not None:
        card["names"] = row_names(cpd.tree, len(codes), nodes)
    return card


def row_names(tree: DecisionTree, rows: int, nodes: Sequence[Variable]) -> list[str]:
    """Name each row of a table by the first path of the decision tree that leads to it."""
    names = [""] * rows
    stack: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    seen: set[int] = set()
    while stack:
        node, path = stack.pop()
        if node in seen:  # in a decision graph one path is enough
            continue
        seen.add(node)
        parent = int(tree.split[node])
        if parent < 0:
            text = ", ".join(path) or "always"
            names[int(tree.row[node])] = text if len(text) <= PATH else f"{text[: PATH - 1]}…"
            continue
        variable, first = nodes[parent], int(tree.first[node])
        below = tree.children[first : first + variable.cardinality].tolist()
        for child in sorted(set(below), reverse=True):
            states = [str(s) for s, c in zip(variable.states, below, strict=True) if c == child]
            some = " or ".join(states[:3]) + (f" or {len(states) - 3} more" if len(states) > 3 else "")
            stack.append((child, (*path, f"{variable.name} = {some}")))
    return names


def level_use(model: BayesNet) -> dict[str, Any] | None:
    """Count how often each level of a quantised network is used; None for floats, and where formats differ."""
    formats = {cpd.format for cpd in model.cpds}
    if not formats:
        return None
    only = formats.pop()
    if formats or not isinstance(only, Fixed | Codebook) or only.bits > 8:
        return None
    return use_of(np.concatenate([cpd.table.reshape(-1) for cpd in model.cpds]), only)


def use_of(codes: np.ndarray, number_format: NumberFormat) -> dict[str, Any] | None:
    """Count the codes of a table in a format of few levels."""
    size = len(number_format.values) if isinstance(number_format, Codebook) else 2**number_format.bits
    if not isinstance(number_format, Fixed | Codebook) or size > LEVELS:
        return None
    values = number_format.decode(np.arange(size))
    counts = np.bincount(codes.reshape(-1), minlength=size)
    return {"values": [v if np.isfinite(v) else None for v in values.tolist()], "counts": counts.tolist()}


def layer_weights(net: NeuralNet, limit: int) -> list[dict[str, Any]]:
    """Describe the weights of each layer: how often each level is used, and all codes where they are few."""
    described = []
    for number, layer in enumerate(net.layers):
        size, top = 2**layer.bits, 2**layer.bits - 1
        codes = layer.codes.reshape(-1, layer.units)
        layer_card: dict[str, Any] = {
            "name": f"layer {number + 1}: {'convolution' if layer.convolution else 'dense'}",
            "shape": list(codes.shape),
            "bits": int(layer.bits),
            "values": [(2 * k - top) / top for k in range(size)],
            "counts": np.bincount(codes.reshape(-1), minlength=size).tolist(),
        }
        if codes.size <= limit:
            limit -= codes.size
            layer_card |= packed(codes)
        described.append(layer_card)
    return described
