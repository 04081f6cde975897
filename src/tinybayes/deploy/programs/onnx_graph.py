"""An ONNX graph in the making."""

from typing import Any

import numpy as np

from tinybayes.deploy.programs.encoding import Features

_TYPES: dict[type, int] = {np.float32: 1, np.int32: 6, np.int64: 7}  # numbers of the standard, TensorProto.DataType


class Graph:
    """An ONNX graph in the making: nodes and constants; values are known by their names.

    A graph inside another one has the other one's constants, and a prefix that makes the names of its values unique.
    """

    def __init__(self, prefix: str = "", outer: "Graph | None" = None) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {} if outer is None else outer.constants
        self.prefix = prefix

    def add(self, operation: str, *inputs: str, named: str = "", **options: Any) -> str:
        """Add a node, and return the name of its result."""
        named = named or f"{self.prefix}{operation.lower()}_{len(self.nodes)}"
        self.nodes.append((operation, list(inputs), named, options))
        return named

    def cast(self, values: str, kind: type) -> str:
        """Convert the type of values."""
        return self.add("Cast", values, to=_TYPES[kind])

    def type_of(self, kind: type) -> int:
        """Return the standard's number of a type."""
        return _TYPES[kind]

    def constant(self, name: str, values: Any, kind: type = np.int64) -> str:
        """Keep an array, and return its name."""
        self.constants[name] = np.asarray(values, dtype=kind, order="C")
        return name

    def total(self, values: str, *axes: int, keep: bool = False) -> str:
        """Sum over axes."""
        return self.add("ReduceSum", values, self.axes(*axes), keepdims=int(keep))

    def axes(self, *axes: int) -> str:
        """Return a list of axes."""
        return self.constant(f"axis_{'_'.join(map(str, axes))}", axes)


def known_codes(graph: Graph, features: Features, x: str) -> str:
    """Tell which codes are states; others are missing."""
    states = graph.constant("states", [v.cardinality for v in features.variables])
    above = graph.add("GreaterOrEqual", x, graph.constant("nought", 0))
    return graph.add("And", above, graph.add("Less", x, states))
