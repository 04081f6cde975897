"""ONNX graphs in the making."""

from typing import Any

import numpy as np

_TYPES: dict[type, int] = {np.float32: 1, np.int32: 6, np.int64: 7}  # numbers of the standard, TensorProto.DataType


class Graph:
    """Nodes and constants; values are known by their names."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, operation: str, *inputs: str, named: str = "", **options: Any) -> str:
        """Add a node, and return the name of what it gives."""
        named = named or f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append((operation, list(inputs), named, options))
        return named

    def cast(self, values: str, kind: type) -> str:
        """Convert the type of values."""
        return self.add("Cast", values, to=_TYPES[kind])

    def constant(self, name: str, values: Any, kind: type = np.int64) -> str:
        """Keep an array, and return its name."""
        self.constants[name] = np.ascontiguousarray(values, dtype=kind)
        return name

    def total(self, values: str, axis: int, *, keep: bool = False) -> str:
        """Sum over an axis."""
        return self.add("ReduceSum", values, self.constant(f"axis_{axis}", [axis]), keepdims=int(keep))
