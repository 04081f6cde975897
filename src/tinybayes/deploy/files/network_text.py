"""The common part of the network formats: reading and writing text, names, exact decimals, checks of a network.

A position in a file is an integer ``at``: an offset into the text, or a line number if the format's parser gives lines.
Errors turn it into ``path:line``.

Log-parameters are written as the shortest decimal that reads back to the same number, so a round trip changes no bit.
"""

import gzip
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from io import BufferedIOBase, TextIOWrapper
from itertools import islice
from pathlib import Path

import numpy as np

from tinybayes.errors import FileError, TinybayesError, error, warn
from tinybayes.files import atomic_path, named
from tinybayes.model import CPD, BayesNet, Cuts, DecisionTree, Encoding, Float, Grid, State, Variable, with_target
from tinybayes.model.encoding import Intervals
from tinybayes.model.layout import strides

MAX_BYTES = 2**26  # of text that is read, after decompression: a few hundred bytes can decompress to gigabytes
MANY_ENTRIES = 2**20  # of which the user is told before
MAX_ENTRIES = 2**24  # probabilities of a network, read or written: a line of text can ask for a table of any size
TOLERANCE = 1e-3 + 1e-9  # of the sum of a row, since files round; the 1e-9 lets 1.001 pass in any order of summation
UNITS = 4  # in the last place, that NumPy's exponentials and logarithms are off together, at most
LEAST = sys.float_info.min  # the smallest number of which a double has all digits
HELD = f"zero, or a number from {LEAST:.3g} to {sys.float_info.max:.3g}, which doubles hold"
Where = Callable[[int], str]
Fail = Callable[[int, str, object], TinybayesError]


@dataclass(frozen=True)
class Source:
    """The text of a file, for readers that point into it by offset."""

    path: str
    text: str

    @property
    def end(self) -> int:
        """The position after the last word."""
        return len(self.text.rstrip())

    def where(self, at: int) -> str:
        """Return ``path:line`` of an offset."""
        return f"{self.path}:{self.text.count(chr(10), 0, at) + 1}"

    def error(self, at: int, expected: str, got: object, remedy: str = "") -> TinybayesError:
        """Make the error for the text at an offset."""
        return error(expected, got, where=self.where(at), remedy=remedy, kind=FileError)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file, decompressed if it is a gzip, and refuse one that cannot be a network."""
    try:
        with open(path, "rb", opener=named) as file:
            packed = Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == b"\x1f\x8b"
            raw = _read_bounded(gzip.GzipFile(fileobj=file) if packed else file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise error("a gzip file", problem, where=f"{path}", remedy="is it complete?", kind=FileError) from problem
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error("a file that can be read", reason, where=f"{path}", kind=FileError) from problem
    if len(raw) > MAX_BYTES:
        raise error(f"at most {MAX_BYTES >> 20} MiB of text", "more", where=f"{path}", kind=FileError)
    if not raw.strip():
        raise error("a network", "an empty file", where=f"{path}:1", kind=FileError)
    return raw


def _read_bounded(file: BufferedIOBase) -> bytes:
    """Read slightly more than the limit at most; in pieces, since one large read allocates all memory at once."""
    content = bytearray()
    while len(content) <= MAX_BYTES and (piece := file.read(2**20)):
        content += piece
    return bytes(content)


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a file of UTF-8 text."""
    raw = read_bytes(path)
    try:
        return Source(f"{path}", raw.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        remedy = "convert the file to UTF-8, or check that it is a text file"
        got, where = f"the byte {raw[problem.start]:#04x}", f"{path}:{line}"
        raise error("text in UTF-8", got, where=where, remedy=remedy, kind=FileError) from problem


def write_text(path: str | os.PathLike[str], parts: Iterable[str]) -> None:
    """Write pieces of text in UTF-8, compressed when the name ends in ``.gz``, all or nothing."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        # No name and no time in the header of a gzip: the same network gives the same bytes.
        packed = Path(path).suffix.lower() == ".gz"
        stream = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if packed else file
        with TextIOWrapper(stream, "utf-8", newline="\n") as text:
            text.writelines(parts)


_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r'\\(?:(["\\nrt])|u([0-9a-fA-F]{4}))')
_WORD = re.compile(r"\S+")
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


def quote(text: str) -> str:
    r"""Put a name in double quotes; ``\" \\ \n \r \t`` and ``\uXXXX`` escape the characters that would break it."""
    back = {value: f"\\{letter}" for letter, value in _ESCAPES.items()}
    body = _UNSAFE.sub(lambda match: back.get(match[0]) or f"\\u{ord(match[0]):04x}", text)
    return f'"{body}"'


def unquote(token: str) -> str:
    """Return the name of a token, in quotes or not; other backslashes are kept."""
    if not token.startswith('"'):
        return token
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]] if match[1] else chr(int(match[2], 16)), token[1:-1])


def state_text(state: State) -> str:
    """Return a state as the formats write it."""
    if isinstance(state, str):
        return str(state)
    return repr(state if isinstance(state, bool) else float(state) if isinstance(state, float) else int(state))


_KINDS: dict[str, Callable[[str], State]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": {"True": True, "False": False}.__getitem__,
}


def variable_properties(variable: Variable) -> list[str]:
    """Return the properties ``name = value`` that hold all that the formats have no field for.

    ``states = KIND`` when the states are not all strings, with KIND one of str, int, float, bool, once for
    all states or once for each; ``cuts = CUT CUT ...`` or ``grid = START STEP COUNT`` when the states are intervals,
    with ``integer`` behind it when raw values are integers.
    """
    kinds = [
        next(kind.__name__ for kind in (bool, int, float, str) if isinstance(state, kind)) for state in variable.states
    ]
    properties = []
    if set(kinds) != {"str"}:
        properties.append(f"states = {kinds[0] if len(set(kinds)) == 1 else ' '.join(kinds)}")
    encoding = variable.encoding
    if isinstance(encoding, Intervals):
        numbers = encoding.points if isinstance(encoding, Cuts) else (encoding.start, encoding.step, encoding.count)
        words = [type(encoding).__name__.lower(), "=", *map(repr, numbers), *(["integer"] if encoding.integer else [])]
        properties.append(" ".join(words))
    return properties


def split_property(text: str) -> tuple[str, str]:
    """Split ``name = value``."""
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def make_variable(name: str, texts: Sequence[str], properties: dict[str, str], where: str) -> Variable:
    """Make the variable that a file describes; the inverse of `state_text` and `variable_properties`."""
    kinds = properties.get("states", "str").split()
    kinds = kinds * len(texts) if len(kinds) == 1 else kinds
    try:
        states = tuple(_KINDS[kind](text) for kind, text in zip(kinds, texts, strict=True))
        encoding = _encoding(properties)
    except TinybayesError as problem:
        raise FileError(f"{where}: {problem}") from problem
    except (KeyError, ValueError) as problem:
        expected = "property 'states' with str, int, float or bool, properties 'cuts' and 'grid' with numbers"
        got, remedy = f"{problem} for {name!r}", "correct or remove the property"
        raise error(expected, got, where=where, remedy=remedy, kind=FileError) from problem
    try:
        return Variable(name, states, encoding)  # type: ignore[arg-type]
    except TinybayesError as problem:
        raise FileError(f"{where}: {problem}") from problem


def _encoding(properties: dict[str, str]) -> Encoding | None:
    """Read the properties ``cuts`` and ``grid``."""
    for name in ("cuts", "grid"):
        if name in properties:
            words = properties[name].split()
            integer = words[-1:] == ["integer"]
            words = words[:-1] if integer else words
            if name == "cuts":
                return Cuts([float(word) for word in words], integer)
            start, step, count = words
            return Grid(float(start), float(step), int(count), integer)
    return None


def split_words(text: str, count: int, fail: Callable[[str, str], TinybayesError]) -> list[str]:
    """Split the text of `count` probabilities; `fail` makes the error of another number of words."""
    words = text.split(None, count)  # no more pieces than can be right: this bounds the memory
    if len(words) != count:
        raise fail(f"{count} probabilities", f"{len(words)}" if len(words) < count else "more")
    return words


def parse_numbers(words: Sequence[str], where: Where) -> np.ndarray:
    """Convert words to numbers; `where` gives the ``path:line`` of the i-th."""
    # Python's float also takes digits of other scripts and underscores; the formats do not.
    bad = None if (together := "".join(words)).isascii() and "_" not in together else _bad(words)
    try:
        values = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        bad = _bad(words)
    if bad is not None:
        raise error("a number", shorten(words[bad]), where=where(bad), kind=FileError)
    lost = next((i for i in np.flatnonzero(np.abs(values) < LEAST).tolist() if not is_held(words[i])), None)
    if lost is not None:
        raise error(HELD, shorten(words[lost]), where=where(lost), kind=FileError)
    return values


def _bad(words: Sequence[str]) -> int:
    return next(index for index, word in enumerate(words) if not _is_number(word))


def is_held(word: str) -> bool:
    """Return whether a double has all digits of a number: a smaller one than `LEAST` loses some of them, or all."""
    return abs(float(word)) >= LEAST or not word.lower().partition("e")[0].strip("+-.0")


def check_held(logs: np.ndarray) -> np.ndarray:
    """Return the logarithms of numbers that are to be written, unless doubles do not hold one of them."""
    possible = logs[logs > -np.inf]
    if possible.size and not math.log(LEAST) <= possible.min() <= possible.max() <= math.log(sys.float_info.max):
        worst = possible[np.abs(possible).argmax()]
        remedy = "this format has no logarithms: save the model in the package's own format"
        raise error(HELD, f"exp({worst:.6g})", remedy=remedy)
    return logs


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return word.isascii() and "_" not in word


def shorten(text: str) -> str:
    """Return a piece of a file for a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def unnamed_variables(cards: Sequence[int]) -> tuple[Variable, ...]:
    """Return variables ``x0, x1, ...`` with the states ``0, 1, ...``, for formats without names."""
    return tuple(Variable(f"x{index}", tuple(range(card))) for index, card in enumerate(cards))


class Tokens:
    """Reads the words of a text one after another, from an offset on, and knows their lines."""

    def __init__(self, source: Source, start: int = 0) -> None:
        self.source = source
        self.at = self._stop = start
        self._words = _WORD.finditer(source.text, start)

    def word(self, what: str) -> str:
        """Return the next word, which begins at `at`; `what` describes it for messages."""
        match = next(self._words, None)
        if match is None:
            raise self._ended(what)
        self.at, self._stop = match.span()
        return match[0]

    def rest_of_line(self) -> list[str]:
        """Return the words between the last one and the end of its line."""
        start, end = self._stop, self.source.text.find("\n", self._stop)
        self._stop = len(self.source.text) if end < 0 else end
        self._words = _WORD.finditer(self.source.text, self._stop)
        return self.source.text[start : self._stop].split()

    def integer(self, what: str, low: int, high: int) -> int:
        """Return the next word as an integer from `low` to `high`."""
        word = self.word(what)
        # Nothing allowed here has more than 18 digits, and int() is slow on very long ones.
        if not re.fullmatch(r"[0-9]{1,18}", word) or not low <= int(word) <= high:
            allowed = f"from {low} to {high}" if low < high else f"{low}"
            raise self.source.error(self.at, f"{what}, {allowed}", shorten(word))
        return int(word)

    def numbers(self, count: int, what: str) -> tuple[np.ndarray, Callable[[int], int]]:
        """Return the next `count` words as numbers, and the function that gives the offset of one."""
        start = self._stop
        words: list[str] = []
        for match in islice(self._words, count):
            words.append(match[0])
            self._stop = match.end()
        if len(words) < count:
            raise self._ended(f"{count} {what}")

        def position(index: int) -> int:
            return next(islice(_WORD.finditer(self.source.text, start), index, None)).start()

        return parse_numbers(words, lambda index: self.source.where(position(index))), position

    def end(self) -> None:
        """Raise unless all words were read."""
        if (match := next(self._words, None)) is not None:
            raise self.source.error(match.start(), "the end of the file", shorten(match[0]))

    def _ended(self, what: str) -> TinybayesError:
        return self.source.error(self.source.end, what, "the end of the file", "is the file complete?")


def log_probabilities(values: np.ndarray) -> np.ndarray:
    """Return natural logarithms; `decimals` relies on the readers using the same ones."""
    with np.errstate(divide="ignore"):
        return np.log(np.ascontiguousarray(values, dtype=np.float64))


def decimals(logs: np.ndarray) -> np.ndarray:
    """Return for each log-probability the shortest decimal that has this logarithm.

    Every logarithm of a double has one, so a round trip gives the same bits. A value that is
    no such logarithm (learned ones close to 0) gets the decimal of its exponential instead.
    """
    distinct, inverse = np.unique(logs, return_inverse=True)
    values = np.exp(distinct)
    for bound in (0.0, 2.0):  # the exponential and the logarithm are off by some units in the last place, either way
        near, wrong = values, log_probabilities(values) != distinct
        for _ in range(UNITS if wrong.any() else 0):
            near = np.nextafter(near, bound)
            values = np.where(wrong & (log_probabilities(near) == distinct), near, values)
            wrong = log_probabilities(values) != distinct
    texts = np.array([repr(value) for value in values.tolist()], dtype=object)
    left = np.arange(len(values))
    for digits in range(12, 18):  # all doubles of one logarithm agree to 12 digits, and 17 tell any two apart
        tried = [f"{value:.{digits}g}" for value in values[left].tolist()]
        exact = log_probabilities(np.array([float(text) for text in tried])) == distinct[left]
        texts[left[exact]] = np.array(tried, dtype=object)[exact]
        left = left[~exact]
    return texts[inverse.reshape(logs.shape)]


def network_decimals(net: BayesNet, normalize: bool) -> list[np.ndarray]:
    """Return the full table of each node as decimals, one row for each assignment of the parents."""
    if not net.nodes:
        raise error("a network with variables", "none")
    cardinality = [node.cardinality for node in net.nodes]
    families = [[cardinality[parent] for parent in cpd.parents] for cpd in net.cpds]
    sizes = [math.prod(family) * own for family, own in zip(families, cardinality, strict=True)]
    if sum(sizes) > MAX_ENTRIES:
        largest = sizes.index(max(sizes))
        got = f"more: {net.nodes[largest].name!r} has {len(families[largest])} parents"
        remedy = "network files hold full tables only: save the model in the package's own format"
        raise error(f"at most {MAX_ENTRIES:,} probabilities in full tables", got, remedy=remedy)
    tell_of_size(sum(sizes), "network")
    tables = []
    for node, cpd, family in zip(net.nodes, net.cpds, families, strict=True):
        logs = _distributions(cpd.log_parameters, node.name, normalize)
        tables.append(logs if cpd.tree is None else logs[tree_rows(cpd.tree, cpd.parents, family)])
    flat = decimals(check_held(np.concatenate([table.ravel() for table in tables])))
    pieces = np.split(flat, np.cumsum(sizes)[:-1])
    return [piece.reshape(table.shape) for piece, table in zip(pieces, tables, strict=True)]


def _distributions(logs: np.ndarray, name: str, normalize: bool) -> np.ndarray:
    """Return the logarithms of rows that must sum to one, or with `normalize` are made to."""
    if normalize:
        highest = logs.max(axis=1, keepdims=True)
        if np.isfinite(highest).all():
            logs = logs - highest
            logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        sums = np.exp(logs).sum(axis=1)
    off = ~(np.abs(sums - 1) <= TOLERANCE)
    if off.any():
        got = f"{sums[np.argmax(off)]:.6g} in row {np.argmax(off) + 1} of {len(logs)}"
        remedy = (
            "quantised tables are not normalised: write with normalize=True (--normalize), which changes the "
            "model, or save it in the package's own format"
        )
        raise error("rows that sum to one", got, where=f"distribution of {name!r}", remedy=remedy)
    return np.minimum(logs, 0)  # a row of rounded values may slightly exceed one


def tell_of_size(entries: int, where: str) -> None:
    """Warn before many numbers are written, which takes its time and room."""
    if entries > MANY_ENTRIES:
        warn(f"{where}: {entries:,} numbers are written out in full tables, which takes a while and much room")


def tree_rows(tree: DecisionTree, parents: Sequence[int], cardinality: Sequence[int]) -> np.ndarray:
    """Return the table row of every assignment of the parents, the last parent running fastest."""
    rows = np.arange(math.prod(cardinality))
    steps = strides(cardinality)
    node = np.zeros(len(rows), dtype=np.int64)
    while (tested := np.setdiff1d(tree.split[node], [-1])).size:
        split = tree.split[node]
        for parent, step, states in zip(parents, steps, cardinality, strict=True):
            if parent in tested:
                here = np.flatnonzero(split == parent)
                value = rows[here] // step % states
                node[here] = tree.children[tree.first[node[here]] + value]
    return tree.row[node]


class NetworkBuilder:
    """Collects the distributions of a file, checks each one, and builds the network.

    `error` makes the error for a position. `names` and `cardinalities` are those of the variables, in the order of the
    file. The variables themselves come last: their states, which a line of text can ask for without a bound, are made
    when all tables are known to be there.
    """

    def __init__(self, error: Fail, names: Sequence[str], cardinalities: Sequence[int]) -> None:
        self._error = error
        self._names = names
        self._cardinalities = cardinalities
        self._index = {name: node for node, name in enumerate(self._names)}
        self._cpds: dict[int, tuple[CPD, int]] = {}
        self._entries = 0

    def node(self, name: str, at: int, expected: str = "a variable of the file") -> int:
        """Return the index of a variable."""
        if name not in self._index:
            raise self._error(at, expected, shorten(name))
        return self._index[name]

    def shape(self, child: int, parents: Sequence[int], at: int) -> tuple[int, int]:
        """Return the shape of a table that may come: (assignments of the parents, states of the child)."""
        name = shorten(self._names[child])
        if child in self._cpds:
            raise self._error(at, f"one distribution of {name}", "a second one")
        if len({child, *parents}) != len(parents) + 1:
            got = shorten(", ".join(self._names[parent] for parent in parents))
            raise self._error(at, f"distinct parents of {name}, not itself", got)
        states = entries = self._cardinalities[child]
        for parent in parents:
            if entries > MAX_ENTRIES:
                break  # the product of thousands of parents would be a number of thousands of digits
            entries *= self._cardinalities[parent]
        self._entries += entries
        if self._entries > MAX_ENTRIES:
            got = f"more with the table of {name}, which has {len(parents)} parents"
            raise self._error(at, f"at most {MAX_ENTRIES:,} probabilities", got)
        return entries // states, states

    def add(self, child: int, parents: Sequence[int], table: np.ndarray, at: int, row_at: Callable[[int], int]) -> None:
        """Take the probabilities ``table[row, state]`` of a node; `row_at` gives the position of a row."""
        name = shorten(self._names[child])
        wrong = ~((table >= 0) & (table <= 1)).all(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            value = next(value for value in table[row].tolist() if not 0 <= value <= 1)
            raise self._error(row_at(row), f"probabilities of {name} between 0 and 1", value)
        off = np.abs(table.sum(axis=1) - 1) > TOLERANCE
        if off.any():
            row = int(np.argmax(off))
            got = f"{table[row].sum():.6g} in row {row + 1} of {len(table)}"
            raise self._error(row_at(row), f"probabilities of {name} that sum to one", got)
        number_format = Float(64)
        codes = number_format.encode(log_probabilities(table))
        self._cpds[child] = CPD(tuple(parents), codes, number_format), at

    def build(self, variables: Iterable[Variable], end: int, target: str | None = None, target_at: int = 0) -> BayesNet:
        """Make the network; the class, if there is one, becomes the last node. `end` is the position of the end."""
        if target is not None:
            self.node(target, target_at, "a variable of the file as property 'target'")
        if not self._names:
            raise self._error(end, "at least one variable", "none in the whole file")
        for node, name in enumerate(self._names):
            if node not in self._cpds:
                raise self._error(end, f"a distribution of {shorten(name)}", "none in the whole file")
        try:
            TopologicalSorter({node: cpd.parents for node, (cpd, _) in self._cpds.items()}).prepare()
        except CycleError as problem:
            cycle: list[int] = problem.args[1]
            names = " -> ".join(shorten(self._names[node]) for node in cycle[:10])
            got = f"the cycle {names}{' -> ...' if len(cycle) > 10 else ''}"
            raise self._error(self._cpds[cycle[0]][1], "a graph without cycles", got) from None
        cpds = [self._cpds[node][0] for node in range(len(self._names))]
        return with_target(BayesNet(tuple(variables), None, tuple(cpds)), target)
