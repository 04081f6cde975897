"""Programs of the C family as records: tables, functions, constants.

The makers (`tables`, `net`, `circuit`, `encoding`, `classifier`) build a program once. A `Dialect` answers what the
languages write differently inside functions; `c`, `cpp` and `arduino` lay out the files.
"""

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

WIDTH = 110


@dataclass(frozen=True)
class Dialect:
    """How a language of the C family writes tables and functions."""

    name: str  # the name of the program
    prefix: str  # begins the names of public functions
    table: str = "const"  # the qualifier of tables, and of pointers into them
    helper: str = "static"  # how functions that are not public are declared
    # Lines that set ``bits`` to those of the float ``value``.
    float_bits: tuple[str, ...] = (
        "union { float number; uint32_t bits; } same;",
        "uint32_t bits;",
        "same.number = value;",
        "bits = same.bits;",
    )
    local_tables: bool = False  # whether a table is declared inside the function that reads it, instead of before it

    def pointer(self, kind: str) -> str:
        """Write the type of a pointer into a table whose entries are of this type; a name follows."""
        return f"{self.table} {kind} *"

    def macro(self, word: str) -> str:
        """Write the name of a macro of this program."""
        return f"{self.name}_{word}".upper()


@dataclass(frozen=True, eq=False)
class Array:
    """A table of constants with one or two axes; the type of its entries is that of `values`, a structured one too."""

    name: str
    values: np.ndarray

    @property
    def type(self) -> str:
        """The C type of an entry."""
        dtype = self.values.dtype
        if dtype.names is None:
            return type_name(dtype)
        groups = groupby(dtype.names, key=lambda field: type_name(dtype[field]))
        fields = " ".join(f"{kind} {', '.join(names)};" for kind, names in groups)
        return f"struct {{ {fields} }}"

    @property
    def shape(self) -> str:
        """The number of entries of each axis, as it follows the name."""
        return "".join(f"[{n}]" for n in self.values.shape)

    def text(self, dialect: Dialect) -> str:
        """Write the definition."""
        return self._definition(dialect, self.type)

    def shared(self, dialect: Dialect) -> str:
        """Write the definition of a table that several functions read.

        Where tables are inside functions, one function has it and returns it: all files share one copy.
        """
        if not dialect.local_tables:
            return self.text(dialect)
        kind, before = self.type, ""
        if self.values.dtype.names is not None:
            kind, before = f"{self.name}_type", f"{self.type.replace('struct', f'struct {self.name}_type')};\n\n"
        lines = indent([*self._definition(dialect, kind).splitlines(), f"return {self.name};"])
        head = f"{dialect.helper} {dialect.table} {kind} (&{self.name}_table()){self.shape}"
        return f"{before}{head}\n{{\n" + "".join(f"{line}\n" for line in lines) + "}\n"

    def _definition(self, dialect: Dialect, kind: str) -> str:
        if self.values.ndim == 1:
            entries = _entries(self.values)
        else:
            entries = ",\n".join(f"    {{\n{_entries(row)}\n    }}" for row in self.values)
        return f"static {dialect.table} {kind} {self.name}{self.shape} = {{\n{entries}\n}};\n"


@dataclass(frozen=True)
class Function:
    """A function."""

    name: str  # without the dialect's prefix of public functions
    returns: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]  # its lines, indented relative to the function
    doc: str = ""  # what it does; the comment of a public function stands at its declaration
    arrays: tuple[Array, ...] = ()  # the tables that only this function reads
    public: bool = False  # whether users call it
    noinline: bool = False  # whether it must not be inlined
    small: bool = False  # whether it takes less code than a call, so that compilers inline it everywhere
    prices: str = ""  # begins the kinds of its operations where these cost other than those of other functions

    def head(self, dialect: Dialect, *, declared: bool = False) -> str:
        """Write everything before the body; `declared` in a header, which has no macro for inlining."""
        noinline = f"{dialect.macro('noinline')} " if self.noinline and not declared else ""
        kind = "" if self.public and dialect.prefix else f"{dialect.helper} "
        prefix = dialect.prefix if self.public else ""
        returns = self.returns if self.returns.endswith("*") else f"{self.returns} "
        return f"{kind}{noinline}{returns}{prefix}{self.name}({', '.join(self.parameters)})"

    def text(self, dialect: Dialect, shared: Iterable[Array] = ()) -> str:
        """Write the definition, with its tables; it may read the `shared` ones, too."""
        tables = "".join(array.text(dialect) for array in self.arrays)
        doc = comment(self.doc) if self.doc and not self.public else ""
        before, inside = ("", indent(tables.splitlines())) if dialect.local_tables else (tables, [])
        if dialect.local_tables:
            words = set(re.findall(r"\w+", " ".join(self.body)))
            inside = indent(f"const auto &{a.name} = {a.name}_table();" for a in shared if a.name in words) + inside
        lines = "".join(f"{line}\n" for line in [*inside, *indent(self.body)])
        gap = "\n" if before else ""
        return f"{before}{gap}{doc}{self.head(dialect)}\n{{\n{lines}}}\n"


@dataclass(frozen=True)
class Enumeration:
    """Names for consecutive integers from 0 on."""

    name: str
    members: tuple[str, ...]
    doc: str
    notes: tuple[str, ...] = ()  # a comment behind each member, or none at all

    def text(self) -> str:
        """Write the definition."""
        lines = ""
        for i, member in enumerate(self.members):
            note = f" {comment(self.notes[i])}" if self.notes else "\n"
            lines += f"    {member} = {i}{',' if i < len(self.members) - 1 else ''}{note}"
        return f"{comment(self.doc)}enum {self.name} {{\n{lines}}};\n\n"


@dataclass(frozen=True)
class Constant:
    """A number with a name, a macro in C."""

    name: str
    value: int | str
    doc: str = ""
    kind: str = "std::size_t"  # its type in C++


@dataclass(frozen=True)
class Sums:
    """Functions that compute the score of every class."""

    functions: tuple[Function, ...]  # one is ``add_up(x, sum)``, from states to sums, unless `predict` is given
    type: str  # the C type of a sum
    smallest: bool = False  # whether the smallest sum wins, instead of the largest
    shared: str = ""  # an expression that is added to the scores of all classes, if there is one
    tables: tuple[Array, ...] = ()  # those that several functions read
    # Whether ``add_up`` returns zero for rows with missing values, whose sums ``add_up_gaps(x, sum)`` makes.
    gaps: bool = False
    shift: int = 0  # the bits by which sums of complete rows are shifted up to scores
    # Where no sums are needed: functions whose bodies return the label, and set ``scores``.
    predict: Function | None = None
    scores: Function | None = None


@dataclass(frozen=True)
class Program:
    """A model as code."""

    facts: tuple[str, ...]  # lines about the model, for the comment at the top
    functions: tuple[Function, ...]  # a function comes after those that it calls
    enumerations: tuple[Enumeration, ...]  # names of features, classes and states
    constants: tuple[Constant, ...]  # sizes
    public_types: str = ""  # definitions of types that users need
    types: str = ""  # definitions of types that only the functions need
    tables: tuple[Array, ...] = ()  # those that several functions read
    # Functions that no prediction needs: the linker leaves them out of a program that does not call them.
    optional: tuple[Function, ...] = ()

    @property
    def public(self) -> tuple[Function, ...]:
        """The functions that users call."""
        return tuple(function for function in (*self.functions, *self.optional) if function.public)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All tables of predictions."""
        return (*self.tables, *(array for function in self.functions for array in function.arrays))

    @property
    def optional_arrays(self) -> tuple[Array, ...]:
        """The tables of the other functions."""
        return tuple(array for function in self.optional for array in function.arrays)

    @property
    def infinities(self) -> bool:
        """Whether a table holds minus infinity, or a number that is none."""
        arrays = [a.values for a in (*self.arrays, *self.optional_arrays) if a.values.dtype.kind == "f"]
        return any(bool((np.isneginf(values) | np.isnan(values)).any()) for values in arrays)

    @property
    def noinline(self) -> bool:
        """Whether some function must not be inlined."""
        return any(function.noinline for function in self.functions)


def type_name(dtype: np.dtype) -> str:
    """Return the C type of a NumPy type."""
    return "float" if dtype.kind == "f" else f"{dtype.name}_t"


def narrow(values: Iterable[int] | np.ndarray, *, signed: bool = False, limit: int = 0) -> np.ndarray:
    """Convert integers to the narrowest type that holds all of them, and `limit`."""
    array = np.asarray(values, dtype=np.int64)
    low, high = int(array.min(initial=0)), int(array.max(initial=limit))
    return array.astype(narrowest(low, high, ("int8", "int16", "int32") if signed else ("uint8", "uint16", "uint32")))


def records(
    name: str, index: str, numbers: Mapping[str, Sequence[int]], signed: Container[str] = ()
) -> tuple[dict[str, str], list[Array]]:
    """Return expressions of the numbers that belong to an index, and the tables that these read.

    Equal numbers are a constant, unsigned except for the `signed` ones. The others are fields of one structure, whose
    address a function loads once, unless there would be bytes between them.
    """
    text = {field: f"{values[0]}{'' if field in signed else 'U'}" for field, values in numbers.items()}
    tables = {field: _compared(np.array(values)) for field, values in numbers.items() if len(set(values)) > 1}
    wide = sorted(tables, key=lambda field: -tables[field].itemsize)
    if len(tables) < 2 or sum(tables[field].itemsize for field in wide) % tables[wide[0]].itemsize:
        text |= {field: f"{name}_{field}[{index}]" for field in tables}
        return text, [Array(f"{name}_{field}", values) for field, values in tables.items()]
    rows = np.empty(len(tables[wide[0]]), [(field, tables[field].dtype) for field in wide])
    for field in wide:
        rows[field] = tables[field]
    return text | {field: f"{name}[{index}].{field}" for field in tables}, [Array(name, rows)]


def _compared(values: np.ndarray) -> np.ndarray:
    """Convert integers to the narrowest type that can be compared with a signed integer of 32 bits."""
    return narrow(values, signed=bool(values.min() < 0 or values.max() >= 2**16))


def narrowest(low: int, high: int, kinds: Iterable[str]) -> np.dtype:
    """Return the first of these types that holds a range of integers, or the last one."""
    for kind in kinds:
        dtype = np.dtype(kind)
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            break
    return dtype


def unsigned(limit: int) -> str:
    """Return the narrowest unsigned C type that holds integers up to `limit`."""
    return type_name(narrowest(0, limit, ("uint8", "uint16", "uint32")))


def number(value: float) -> str:
    """Write a float32 so that every compiler reads back the same bits."""
    if value == -math.inf:
        return "-INFINITY"
    if math.isnan(value):
        return "(INFINITY * 0.0F)"
    text = f"{value:.9g}"
    return f"{text}F" if "." in text or "e" in text else f"{text}.0F"


def _entries(values: np.ndarray) -> str:
    """Write the entries of a table in lines of equal length."""
    if values.dtype.names:
        words = [f"{{{', '.join(map(str, entry))}}}" for entry in values.tolist()]
    elif values.dtype.kind == "f":
        words = [number(v) for v in values.tolist()]
    elif values.dtype == np.uint32:
        words = [f"0x{v:X}U" for v in values.tolist()]
    else:  # the number after the minus sign must be one of 32 bits, too
        words = [str(v) if v > -(2**31) else "(-2147483647 - 1)" for v in values.tolist()]
    each = max(1, (WIDTH - 4) // (max(map(len, words), default=1) + 2))
    return ",\n".join("    " + ", ".join(words[i : i + each]) for i in range(0, len(words), each))


def comment(*lines: str) -> str:
    """Write a comment; no text in it can end it early."""
    safe = [line.replace("*/", "* /").replace("\\", "/").replace("??", "? ?") for line in lines]
    return "/* " + "\n * ".join(safe) + " */\n"


def indent(lines: Iterable[str]) -> list[str]:
    """Move lines to the right by one level."""
    return [f"    {line}" for line in lines]


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Write lines in braces after a head such as that of a loop or a condition."""
    return [f"{head} {{" if head else "{", *indent(lines), "}"]


def loop(counter: str, count: int, lines: Iterable[str], *, start: int = 0) -> list[str]:
    """Write a loop over consecutive integers."""
    return block(f"for ({counter} = {start}; {counter} < {count}U; ++{counter})", lines)
