"""Values of generated C in Python: types, numbers that wrap, and how an expression is computed.

A type is written as ``u8``, ``i32`` or ``f32``; ``*u8`` is a pointer, ``*[4]u8`` a pointer to rows of four, and
``struct:term`` an entry of the table ``term``. A pointer is a pair of a list and an offset.
"""

import operator
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinybayes.deploy._price.syntax import Node

Run = Callable[[list[Any]], Any]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _quotient(a: Any, b: Any) -> Any:
    """Divide; integers are rounded towards zero."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return a // b if (a < 0) == (b < 0) else -(-a // b)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
}


class Value(NamedTuple):
    """An expression: its type, how it is computed from the frame of a function, and its number if it is constant."""

    kind: str
    run: Run
    constant: int | float | None = None


class Pointer(NamedTuple):
    """A place in memory: the type of its entry, and how the list and the offset are found."""

    kind: str
    run: Run


class Code(NamedTuple):
    """A function that can run."""

    name: str
    blocks: tuple[int, ...]  # the numbers of its blocks; it begins with the first one
    slots: tuple[int, ...]  # where its frame has the parameters
    size: list[int]  # of its frame, in one entry
    run: Run
    arrays: int  # bytes of its local arrays
    names: frozenset[str]  # its variables, tables and large constants
    pressure: int  # the most variables that one of its loops uses
    calls: frozenset[str]
    inlined: bool  # whether the compiler writes it into its only caller


class Scope:
    """A loop, or a whole function: the names in its own statements and in all, loops in it included."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.direct: set[str] = set()
        self.all: set[str] = set()


def kind_of(dtype: np.dtype) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"


def bits_of(kind: str) -> int:
    return 32 if kind[0] == "*" or kind in ("union", "void") else int(kind[1:])


def is_integer(kind: str) -> bool:
    return kind[0] in "ui" and kind != "union"


def promoted(kind: str) -> str:
    return "i32" if is_integer(kind) and bits_of(kind) < 32 else kind


def common(a: str, b: str) -> str:
    """Return the type in which two numbers are computed."""
    a, b = promoted(a), promoted(b)
    if "f32" in (a, b):
        return "f32"
    bits = max(bits_of(a), bits_of(b))
    return f"u{bits}" if f"u{bits}" in (a, b) else f"i{bits}"


def wrap(run: Run, source: str, target: str) -> Run:
    """Convert a number to a type; nothing is done where the type holds all numbers of the source."""
    if not (is_integer(source) and is_integer(target)):
        return (lambda f: int(run(f))) if is_integer(target) and source == "f32" else run
    bits, wider = bits_of(target), bits_of(source)
    if source == target or (source[0] == "u" and wider < bits) or (source[0] == target[0] and wider <= bits):
        return run
    mask = 2**bits - 1
    if target[0] == "u":
        return lambda f: run(f) & mask
    half = 2 ** (bits - 1)
    return lambda f: ((run(f) & mask) ^ half) - half


def float_bits(number: float) -> int:
    """Return the bits of a 32-bit float."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def constant_value(kind: str, number: int | float) -> Value:
    return Value(kind, lambda f: number, number)


def number_value(node: Node) -> Value:
    text = node.text.lower()
    if not text.startswith("0x") and ("." in text or "e" in text or text.endswith("f")):
        real = float(text.rstrip("fl"))
        return constant_value("f32", real)
    number = int(text.rstrip("ul"), 0)
    kind = "u32" if "u" in text or number >= 2**31 else "i32"
    return constant_value(kind, number)


def columns_of(kind: str) -> int:
    """Return how many entries of the list a step of a pointer is; 0 for numbers."""
    if kind[0] != "*":
        return 0
    return int(kind[2:].split("]")[0]) if kind[1] == "[" else 1


def pointed(kind: str) -> str:
    return kind[1:]


def entry_of(kind: str) -> str:
    """Return the type of the numbers that a pointer leads to; those of structures are taken for words."""
    inner = kind.lstrip("*").split("]")[-1]
    return "u32" if inner.startswith("struct") else inner


def access(how: str, kind: str) -> str:
    bits = bits_of(kind)
    return f"{how}_signed" if how == "load" and kind[0] == "i" and bits < 32 else f"{how}{bits}"


def store(slot: int, value: Run) -> Run:
    def run(f: list[Any]) -> Any:
        f[slot] = stored = value(f)
        return stored

    return run


def silent(run: Run) -> Run:
    def quiet(f: list[Any]) -> None:
        run(f)

    return quiet


def sequence(runs: list[Run]) -> Run:
    def run(f: list[Any]) -> None:
        for each in runs:
            each(f)

    return run
