"""Expressions of generated C as closures; operations are tallied by kind while they are made."""

import operator
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinybayes.deploy._price.syntax import Declared, Node, parse_parameter, walk
from tinybayes.deploy._price.values import (
    ARITHMETIC,
    COMPARE,
    Pointer,
    Run,
    Scope,
    Value,
    access,
    bits_of,
    columns_of,
    common,
    constant_value,
    entry_of,
    float_bits,
    kind_of,
    number_value,
    pointed,
    promoted,
    store,
    wrap,
)
from tinybayes.deploy.programs.program import Array, Function
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.deploy._price.machine import Machine

AFFINE, NOT_AFFINE = {"number", "variable", "binary"}, {"/", "%", "&", "|", "^", "<<", ">>", "&&", "||", "<", ">"}
SIGNS: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "~": operator.invert, "+": operator.pos}
REGISTERS = (8, 12)  # of small and of large cores: more names than these in a loop are kept in memory


class Expressions:
    """Makes the expressions of one function."""

    def __init__(self, machine: "Machine", name: str, function: Function) -> None:
        self.machine, self.name, self.function = machine, name, function
        self.prices = f"{function.prices}_" if function.prices else ""
        self.scopes: list[dict[str, tuple[int, str]]] = [{}]
        self.known: dict[int, int | float] = {}  # the slots of constants, with their numbers
        self.arrays_of = {array.name: array for array in function.arrays}
        self.size = [1]  # the first slot of a frame is for the returned number
        self.arrays = 0  # bytes of local arrays
        self.pressure = 0  # the most variables that a loop uses
        self.blocks: list[int] = []
        self.block = -1  # the one that is made at present
        self.loops: list[Scope] = []
        self.weight = 1.0  # 0 while nothing is tallied
        self.addressing = False  # whether an index is made of sums and products of counters, which loops may step
        self.bases: set[str] = set()  # tables whose addresses are loaded
        self.wide: set[int | float] = set()  # constants that do not fit in an instruction
        self.calls: set[str] = set()
        self.loaded: set[Node] = set()  # entries of memory that were read in this block, and not written since

    def new_block(self) -> int:
        """Begin a block of the function; return its number."""
        self.machine.tallies.append(Counter())
        self.machine.hits.append(0)
        self.blocks.append(len(self.machine.hits) - 1)
        return self.blocks[-1]

    def tally(self, kind: str, count: float = 1.0) -> None:
        """Count operations of the present block."""
        self.machine.tallies[self.block][self.prices + kind] += count * self.weight  # type: ignore[assignment]

    def note(self, name: str) -> None:
        """Remember that a name is used in a loop, where it takes a register."""
        self.loops[-1].direct.add(name)
        for scope in self.loops:
            scope.all.add(name)

    def spill(self, scope: Scope) -> None:
        """Tally the names of a loop for which there are no registers."""
        for limit in REGISTERS:
            excess = max(0, min(len(scope.direct), len(scope.all) - limit))
            self.machine.tallies[scope.block][f"{self.prices}spill{limit}"] += excess

    def declare(self, declared: Declared) -> int:
        """Give a variable a slot of the frame."""
        kind = "*" * declared.stars + declared.base
        self.scopes[-1][declared.name] = self.size[0], kind
        self.size[0] += 1
        return self.size[0] - 1

    def find(self, name: str) -> tuple[int, str] | None:
        """Return the slot and the type of a variable."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def truth(self, node: Node) -> Run:
        """Make a condition."""
        self.tally("branch")
        return self.expression(node).run

    def expression(self, node: Node) -> Value:
        """Make an expression of any kind."""
        made: dict[str, Callable[[Node], Value]] = {
            "number": number_value,
            "variable": self.variable,
            "binary": self.binary,
            "unary": self.unary,
            "before": self.step,
            "after": self.step,
            "assign": self.assign,
            "choose": self.choose,
            "cast": self.cast,
            "index": self.memory,
            "member": self.member,
            "call": self.called,
            "comma": self.comma,
        }
        return made[node.kind](node)

    def comma(self, node: Node) -> Value:
        first, last = map(self.expression, node.parts)
        return Value(last.kind, lambda f: (first.run(f), last.run(f))[1])

    def variable(self, node: Node) -> Value:
        name = node.text
        if known := self.find(name):
            slot, kind = known
            if (constant := self.known.get(slot)) is not None:
                return constant_value(kind, constant)
            self.note(f"{name}@{slot}")
            return Value(kind, lambda f: f[slot])
        array = self.table_of(name)
        if array is not None:
            self.note(name)
            self.bases.add(name)
            kind, entries = self.machine.table(array)
            return Value(kind, lambda f: (entries, 0))
        if name not in self.machine.constants:
            raise error("a name of the program", repr(name), where=f"generated C, function {self.name}")
        number = int(str(self.machine.constants[name]).rstrip("uU"), 0)
        return constant_value("i32" if abs(number) < 2**31 + (number < 0) else "u32", number)

    def table_of(self, name: str) -> Array | None:
        return self.arrays_of.get(name) or self.machine.shared.get(name)

    def step(self, node: Node) -> Value:
        change = 1 if node.text == "++" else -1
        if node.parts[0].kind != "variable":
            return self.step_memory(node, change)
        self.tally("alu")
        slot, kind = self._slot(node.parts[0])
        self.note(f"{node.parts[0].text}@{slot}")
        columns = columns_of(kind)
        mask = 2 ** bits_of(kind) - 1 if kind[0] == "u" else None
        before = node.kind == "before"

        def run(f: list[Any]) -> Any:
            old = f[slot]
            if columns:
                new: Any = (old[0], old[1] + change * columns)
            else:
                new = old + change if mask is None else (old + change) & mask
            f[slot] = new
            return new if before else old

        return Value(kind, run)

    def step_memory(self, node: Node, change: int) -> Value:
        one = Node("number", "1")
        value = self.assign(Node("assign", "+" if change > 0 else "-", (node.parts[0], one)))
        if node.kind == "before":
            return value
        return Value(value.kind, wrap(lambda f: value.run(f) - change, "i64", value.kind))

    def _slot(self, node: Node) -> tuple[int, str]:
        known = self.find(node.text) if node.kind == "variable" else None
        if known is None:
            raise error("a variable", node.kind, where=f"generated C, function {self.name}")
        return known

    def choose(self, node: Node) -> Value:
        test = self.truth(node.parts[0])
        then, other = map(self.arm, node.parts[1:])
        kind = then.kind if then.kind[0] == "*" else common(then.kind, other.kind)
        a, b = wrap(then.run, then.kind, kind), wrap(other.run, other.kind, kind)
        return Value(kind, lambda f: a(f) if test(f) else b(f))

    def arm(self, node: Node) -> Value:
        """Make an expression that is not always computed: a block of its own."""
        block, before, hits = self.new_block(), self.block, self.machine.hits
        loaded, self.loaded, self.block = self.loaded, set(self.loaded), block
        value = self.expression(node)
        if value.constant is not None:
            self.tally("move")
        self.loaded, self.block = loaded, before

        def run(f: list[Any]) -> Any:
            hits[block] += 1
            return value.run(f)

        return Value(value.kind, run)

    def cast(self, node: Node) -> Value:
        base, stars = node.text.split()
        kind, value = "*" * int(stars) + base, self.expression(node.parts[0])
        if kind[0] == "*":
            return Value(kind, value.run)
        if value.constant is not None:
            constant = wrap(lambda f: value.constant, value.kind, kind)([])
            return constant_value(kind, constant)
        if (kind == "f32") != (value.kind == "f32"):
            self.tally("float_convert")
        elif bits_of(kind) < min(32, bits_of(value.kind)):
            self.tally("narrow")
        return Value(kind, wrap(value.run, value.kind, kind))

    def unary(self, node: Node) -> Value:
        if node.text == "*":
            return self.memory(node)
        if node.text == "&":
            pointer = self.place(node.parts[0])
            return Value(f"*{pointer.kind}", pointer.run)
        if node.text == "!":
            self.tally("compare")
            test = self.expression(node.parts[0]).run
            return Value("i32", lambda f: int(not test(f)))
        value = self.expression(node.parts[0])
        change = SIGNS[node.text]
        kind = promoted(value.kind)
        if value.constant is not None and node.text != "~":
            constant = wrap(lambda f: change(value.constant), "i64", kind)([])
            return constant_value(kind, constant)
        self.tally("float_sign" if kind == "f32" else "alu")
        return Value(kind, wrap(lambda f: change(value.run(f)), "i64" if kind == "u32" else kind, kind))

    def binary(self, node: Node) -> Value:
        sign = node.text
        if sign in ("&&", "||"):
            return self.logical(node)
        a, b = (self.operand(sign, part) for part in node.parts)
        return self.combine(sign, a, b)

    def operand(self, sign: str, node: Node) -> Value:
        """Make an operand; large cores shift one by a constant in the instruction that adds or masks it."""
        shift = node.kind == "binary" and node.text in ("<<", ">>") and node.parts[1].kind == "number"
        if not shift or sign not in ("+", "-", "&", "|", "^"):
            return self.expression(node)
        return self.combine(node.text, self.expression(node.parts[0]), self.expression(node.parts[1]), "shift")

    def logical(self, node: Node) -> Value:
        a = self.truth(node.parts[0])
        b = self.arm(node.parts[1]).run
        if node.text == "&&":
            return Value("i32", lambda f: int(bool(a(f)) and bool(b(f))))
        return Value("i32", lambda f: int(bool(a(f)) or bool(b(f))))

    def combine(self, sign: str, a: Value, b: Value, tallied: str = "alu") -> Value:
        """Apply an operator to two values."""
        if a.kind[0] == "*" or b.kind[0] == "*":
            return self.pointers(sign, a, b)
        kind = promoted(a.kind) if sign in ("<<", ">>") else common(a.kind, b.kind)
        left, right = wrap(a.run, a.kind, kind), b.run if sign in ("<<", ">>") else wrap(b.run, b.kind, kind)
        compare = COMPARE.get(sign)
        if a.constant is None or b.constant is None:
            self.operation(sign, kind, a, b, tallied)
        if compare is not None:
            return Value("i32", lambda f: int(compare(left(f), right(f))))
        apply = ARITHMETIC[sign]
        run: Run = lambda f: apply(left(f), right(f))  # noqa: E731
        if kind[0] == "u" and sign in ("+", "-", "*", "<<"):
            mask = 2 ** bits_of(kind) - 1
            run = lambda f: apply(left(f), right(f)) & mask  # noqa: E731
        if a.constant is not None and b.constant is not None:
            constant = run([])
            return constant_value(kind, constant)
        return Value(kind, run)

    def operation(self, sign: str, kind: str, a: Value, b: Value, tallied: str) -> None:
        """Tally an operator, and the constants that do not fit in its instruction."""
        constant = b.constant if b.constant is not None else a.constant
        if kind == "f32":
            self.tally("float_compare" if sign in COMPARE else "float_mul" if sign in "*/" else "float_add")
            return
        power = isinstance(constant, int) and constant > 0 and constant & (constant - 1) == 0
        if (constant == 0 and sign in "+-|^") or (constant == 1 and sign in "*/"):
            return
        if self.addressing:
            self.tally("address")
        elif sign in "*/%" and not power:
            self.tally("mul" if sign == "*" else "div")
        else:
            self.tally("compare" if sign in COMPARE else tallied)
        wide = constant is not None and sign not in ("<<", ">>") and not (power and sign in "*/")
        if wide and (abs(constant) > 255 or sign in "&|^*/%") and constant not in (255, 65535):  # type: ignore[arg-type]
            self.wide.add(constant)  # type: ignore[arg-type]
            if self.prices:
                self.tally("wide")
            self.note(f"#{constant}")

    def pointers(self, sign: str, a: Value, b: Value) -> Value:
        if sign in COMPARE:
            compare = COMPARE[sign]
            self.tally("compare")
            return Value("i32", lambda f: int(compare(a.run(f)[1], b.run(f)[1])))
        if a.kind[0] != "*":
            a, b = b, a
        self.tally("alu")
        columns, left, right = columns_of(a.kind), a.run, b.run
        if b.kind[0] == "*":
            return Value("i32", lambda f: (left(f)[1] - right(f)[1]) // columns)
        if b.constant is None and bits_of(entry_of(a.kind)) > 8:
            self.tally("scale")
        step = columns if sign == "+" else -columns

        def run(f: list[Any]) -> tuple[list[Any], int]:
            entries, offset = left(f)
            return entries, offset + step * right(f)

        return Value(a.kind, run)

    # Memory

    def place(self, node: Node) -> Pointer:
        """Return where an entry of an array is."""
        if node.kind == "unary":
            pointer = self.expression(node.parts[0])
            return Pointer(pointed(pointer.kind), pointer.run)
        base = self.expression(node.parts[0])
        self.addressing = all(part.kind in AFFINE and part.text not in NOT_AFFINE for part in walk(node.parts[1]))
        index = self.expression(node.parts[1])
        self.addressing = False
        kind, run, at, columns = pointed(base.kind), base.run, index.run, columns_of(base.kind)
        if index.constant is None and bits_of(entry_of(base.kind)) > 8:
            self.tally("scale")

        def locate(f: list[Any]) -> tuple[list[Any], int]:
            entries, offset = run(f)
            return entries, offset + columns * at(f)

        return Pointer(kind, locate)

    def fixed_entry(self, node: Node) -> Any:
        """Return an entry of a table whose indices are constant: the compiler knows it, too."""
        indices: list[Node] = []
        while node.kind == "index":
            node, index = node.parts
            indices.insert(0, index)
        array = self.table_of(node.text) if node.kind == "variable" and not self.find(node.text) else None
        if array is None or array.values.ndim != len(indices):
            return None
        state = self.weight, set(self.loaded)
        self.weight = 0.0
        known = [self.expression(index).constant for index in indices]
        self.weight, self.loaded = state
        if None in known:
            return None
        at = tuple(map(int, known))  # type: ignore[arg-type]
        inside = all(0 <= i < size for i, size in zip(at, array.values.shape, strict=True))
        return array.values[at] if inside else None  # outside in a branch that is not taken

    def memory(self, node: Node) -> Value:
        again = node in self.loaded
        if not any(part.kind in ("before", "after", "call") for part in walk(node)):
            self.loaded.add(node)
        weight, self.weight = self.weight, 0.0 if again else self.weight  # a number that was read is in a register
        value = self.load(node)
        self.weight = weight
        return value

    def load(self, node: Node) -> Value:
        entry = self.fixed_entry(node)
        if entry is not None and entry.dtype.names is None:
            return constant_value(kind_of(entry.dtype), entry.item())
        pointer = self.place(node)
        locate = pointer.run
        if pointer.kind[0] == "[":
            return Value(f"*{pointer.kind.split(']')[1]}", locate)
        if not pointer.kind.startswith("struct"):
            self.tally(access("load", pointer.kind))

        def run(f: list[Any]) -> Any:
            entries, offset = locate(f)
            return entries[offset]

        return Value(pointer.kind, run)

    def member(self, node: Node) -> Value:
        entry = self.fixed_entry(node.parts[0])
        if entry is not None:
            return constant_value(kind_of(entry[node.text].dtype), entry[node.text].item())
        whole = self.expression(node.parts[0])
        if whole.kind == "union":
            return Value("u32", whole.run)
        index, kind = self.machine.structs[whole.kind.removeprefix("struct:")][node.text]
        self.tally(access("load", kind))
        return Value(kind, lambda f: whole.run(f)[index])

    def assign(self, node: Node) -> Value:
        target, source = node.parts
        if target.kind == "member":  # the number of the union of a float and its bits
            slot, _ = self._slot(target.parts[0])
            value = self.expression(source)
            return Value("f32", store(slot, lambda f: float_bits(value.run(f))))
        if target.kind == "variable":
            slot, kind = self._slot(target)
            self.note(f"{target.text}@{slot}")
            value = self.operand(node.text, source)
            if node.text:
                value = self.combine(node.text, Value(kind, lambda f: f[slot]), value)
            elif value.constant is not None or source.kind == "variable":
                self.tally("move")
            return Value(kind, store(slot, wrap(value.run, value.kind, kind)))
        if source.kind == "cast" and not node.text and "*" not in source.text:
            value = self.expression(source.parts[0])  # a store cuts off what a cast would
        else:
            value = self.operand(node.text, source)
        return self.store(node, self.place(target), value)

    def store(self, node: Node, pointer: Pointer, value: Value) -> Value:
        kind, locate = pointer.kind, pointer.run
        self.tally(access("store", kind))
        self.loaded.clear()
        if value.constant is not None and not node.text:
            self.tally("move")
        if not node.text:
            number = wrap(value.run, value.kind, kind)
        else:
            self.tally(access("load", kind))
            held: list[Any] = [0]
            number_of = self.combine(node.text, Value(kind, lambda f: held[0]), value)
            number = wrap(number_of.run, number_of.kind, kind)

        def run(f: list[Any]) -> Any:
            entries, offset = locate(f)
            if node.text:
                held[0] = entries[offset]
            entries[offset] = stored = number(f)
            return stored

        return Value(kind, run)

    def called(self, node: Node) -> Value:
        code = self.machine.code(node.text)
        self.calls.add(node.text)
        arguments = [self.expression(part) for part in node.parts]
        if code.inlined:
            self.pressure = max(self.pressure, code.pressure)
            for name in code.names:
                self.note(f"{code.name}.{name}")
        else:
            self.tally("call")
            self.tally("argument", len(arguments))
            for register in range(4):
                self.note(f"r{register}")
        function = self.machine.functions[node.text]
        kinds = [(d.stars * "*" + d.base) for d in map(parse_parameter, function.parameters)]
        runs = [wrap(a.run, a.kind, kind) for a, kind in zip(arguments, kinds, strict=True)]
        slots, size, body = code.slots, code.size, code.run

        def run(f: list[Any]) -> Any:
            frame: list[Any] = [None] * size[0]
            for slot, argument in zip(slots, runs, strict=True):
                frame[slot] = argument(f)
            body(frame)
            return frame[0]

        returns = parse_parameter(function.returns)
        return Value("*" * returns.stars + returns.base, run)
