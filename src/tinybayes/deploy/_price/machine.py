"""Generated C run in Python, and a count of how often each block runs.

A block is a list of statements without branches. While it is made, its operations are tallied by kind; so one pass
over the code gives what a block costs, and a run how often it is paid. Integers wrap as in C.
"""

from collections import Counter
from typing import Any

from tinybayes.deploy._price.functions import Maker
from tinybayes.deploy._price.syntax import Node, parse_body, walk
from tinybayes.deploy._price.values import Code, kind_of, number_value
from tinybayes.deploy.programs.program import Array, Dialect, Program
from tinybayes.errors import error

LIMITS = {"INT32_MIN": -(2**31), "INT32_MAX": 2**31 - 1, "UINT32_MAX": 2**32 - 1, "INT16_MIN": -(2**15)}


class Machine:
    """A program that runs in Python; `tallies` and `hits` are the operations and the runs of each block."""

    def __init__(self, program: Program, dialect: Dialect) -> None:
        self.functions = {(dialect.prefix if f.public else "") + f.name: f for f in program.functions}
        self.bodies = {name: parse_body(f.body) for name, f in self.functions.items()}
        self.constants: dict[str, int | str] = {dialect.macro(c.name): c.value for c in program.constants}
        self.constants |= LIMITS
        self.structs: dict[str, dict[str, tuple[int, str]]] = {}
        self.shared = {array.name: array for array in program.tables}
        called = Counter(n.text for body in self.bodies.values() for n in walk(body) if n.kind == "call")
        self.once = {
            name
            for name, f in self.functions.items()
            if f.small or (called[name] == 1 and not f.public and not f.noinline)
        }
        self.given = self._given()
        self.tallies: list[Counter[str]] = []
        self.hits: list[int] = []
        self.codes: dict[str, Code] = {}
        self.tables: dict[str, Array] = {}  # those that are read

    def _given(self) -> dict[tuple[str, int], int]:
        """Return the parameters for which all calls have the same number."""
        calls: dict[tuple[str, int], set[Node]] = {}
        for body in self.bodies.values():
            for node in walk(body):
                for i, argument in enumerate(node.parts if node.kind == "call" else ()):
                    calls.setdefault((node.text, i), set()).add(argument)
        single = {key: next(iter(nodes)) for key, nodes in calls.items() if len(nodes) == 1}
        return {key: int(number_value(node).constant or 0) for key, node in single.items() if node.kind == "number"}

    def code(self, name: str) -> Code:
        """Return a function, made when it is first asked for."""
        if name not in self.codes:
            if name not in self.functions:
                raise error("a function of the program", repr(name), where="generated C")
            self.codes[name] = Maker(self, name, self.functions[name]).make(self.bodies[name])
        return self.codes[name]

    def call(self, name: str, arguments: list[Any]) -> Any:
        """Run a function."""
        code = self.code(name)
        frame: list[Any] = [None] * code.size[0]
        for slot, argument in zip(code.slots, arguments, strict=True):
            frame[slot] = argument
        code.run(frame)
        return frame[0]

    def table(self, array: Array) -> tuple[str, list[Any]]:
        """Return the type and the entries of a table."""
        self.tables[array.name] = array
        dtype, values = array.values.dtype, array.values
        if dtype.names is not None:
            fields = {field: (i, kind_of(dtype[field])) for i, field in enumerate(dtype.names)}
            self.structs[array.name] = fields
            return f"*struct:{array.name}", values.tolist()
        kind = kind_of(dtype)
        if values.ndim == 2:
            return f"*[{values.shape[1]}]{kind}", values.reshape(-1).tolist()
        return f"*{kind}", values.tolist()
