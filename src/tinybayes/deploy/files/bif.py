"""BIF, the Interchange Format for Bayesian Networks (version 0.15), as the public repositories write it.

Reading: the blocks ``network``, ``variable`` and ``probability`` in any order after the first; comments
``//`` and ``/* */``; commas and bars as white space; names bare (``Asy/Patch``, ``<5``, ``12+``) or in double
quotes; in a distribution rows ``(state, state) p, p;``, ``default p, p;`` for the rows not given, or
``table p, p, ...;``. A ``table`` of a variable with parents runs through the child's states slowest and the
last parent fastest: the order of the format's own examples, and of pyAgrum and pgmpy; the bnlearn repository
has tables only where there are no parents. The sum of a row may differ from one by 1e-3, since
files round; the numbers are kept as they are.

Writing: a ``table`` for a variable without parents, else one row for each assignment. Properties, which other
programs skip, keep what the format has no field for: in the network block ``target = NAME`` names the class;
in a variable ``states = KIND`` says that the states are int, float or bool (one word for each state when they
differ), and ``edges = CUT CUT ...`` gives the cut points of a discretised variable. All other properties are
skipped.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from tinybayes.deploy.files import network_text as common
from tinybayes.errors import TinybayesError, error
from tinybayes.model import BayesNet, Variable

_MARKS = "{}()[];"
_LETTER = r'[^\s{}()\[\];,|"/]'
# A bound on the slashes: the memory that a repeated group takes while it is matched grows with each round.
_BARE = rf"(?:{_LETTER}|/(?![/*])){_LETTER}*(?:/(?![/*]){_LETTER}*){{0,999}}"
_TOKEN = re.compile(rf'[\s,|]*({_BARE}|//|/\*|[{{}}()\[\];"]|\Z)')
_NUMBERS = re.compile(r'([^{}()\[\];"/]*);')
_STRING = re.compile(r'\\[^\r\n]|["\r\n]')
_COMMENT_END = {"//": re.compile(r"[\r\n]|\Z"), "/*": re.compile(r"\*/")}
_KEYWORDS = ("network", "variable", "probability", "property", "type", "discrete", "default", "table")


def read_bif(path: str | os.PathLike[str]) -> BayesNet:
    """Read a network from a BIF file; it has a class only if the file names one."""
    source = common.read_source(path)
    file = _parse(_Scanner(source))
    codes = [{state: code for code, state in enumerate(states)} for states in file.states]
    builder = common.NetworkBuilder(source.error, list(file.variables), [len(states) for states in file.states])
    for block in file.distributions:
        child, *parents = (builder.node(name, block.at) for name in block.names)
        shape = builder.shape(child, parents, block.at)
        table, row_at = _table(source, block, shape, [codes[parent] for parent in parents])
        builder.add(child, parents, table, block.at, row_at)
    return builder.build(file.variables.values(), source.end, file.target, file.target_at)


def write_bif(net: BayesNet, path: str | os.PathLike[str], *, normalize: bool = False) -> None:
    """Write a network, whose rows must sum to one, to a BIF file; decision trees become full tables.

    A network that was read and is written again gives an equal one, bit for bit.
    """
    tables = common.network_decimals(net, normalize)
    states = [[_name(common.state_text(state)) for state in node.states] for node in net.nodes]
    for node, texts in zip(net.nodes, states, strict=True):
        if len(set(texts)) != len(texts):
            where = f"variable {node.name!r}"
            raise error("states that are distinct as text", list(node.states)[:10], where=where)
    common.write_text(path, _format(net, states, tables))


class _Scanner:
    """Walks over the tokens of a text; `word` begins at `at`, and the next one is searched from `stop` on."""

    def __init__(self, source: common.Source) -> None:
        self.source = source
        self.word, self.at, self.stop = "", 0, 0
        self.advance()

    def advance(self) -> str:
        """Go to the next token, which is empty at the end, and return the one left behind."""
        left, text = self.word, self.source.text
        while True:
            token = _TOKEN.match(text, self.stop)
            assert token is not None  # the pattern takes any text
            self.word, self.at, self.stop = token[1], token.start(1), token.end()
            if self.word == '"':
                self.stop = self._closing_quote(self.at)
                self.word = text[self.at : self.stop]
            if self.word not in _COMMENT_END:
                return left
            end = _COMMENT_END[self.word].search(text, self.stop)
            if end is None:
                raise self.source.error(self.at, "the '*/' of this comment", "none")
            self.stop = end.end()

    def _closing_quote(self, start: int) -> int:
        for match in _STRING.finditer(self.source.text, start + 1):
            if match[0] == '"':
                return match.end()
            if match[0] in "\r\n":
                break
        raise self.source.error(start, "a second quote on the line", "none")

    def error(self, expected: str) -> TinybayesError:
        """Make the error for the current token."""
        if not self.word:
            return self.source.error(self.source.end, expected, "the end of the file", "is the file complete?")
        return self.source.error(self.at, expected, common.shorten(self.word))

    def take(self, token: str) -> None:
        """Step over a token that must be the current one."""
        if self.word != token:
            raise self.error(repr(token))
        self.advance()

    def name(self, what: str) -> str:
        """Step over a name, and return it without its quotes."""
        if self.word in _MARKS:
            raise self.error(what)
        return common.unquote(self.advance())

    def names(self, what: str, close: str) -> list[str]:
        """Step over names, one at least, up to the bracket that closes them."""
        names = [self.name(what)]
        while self.word != close:
            names.append(self.name(f"{what} or {close!r}"))
        return names

    def numbers(self) -> str:
        """Step over the numbers after the current token and their semicolon, and return their text."""
        match = _NUMBERS.match(self.source.text, self.stop)
        if match is not None:
            self.stop = match.end()
            self.advance()
            return match[1]
        # There is a comment among them, or something is wrong: look at each token.
        self.advance()
        words = self.names("a number", ";")
        self.advance()
        return " ".join(words)

    def property(self) -> tuple[str, str]:
        """Step over a property up to its semicolon, and return its name and value."""
        start, self.stop = self.stop, self.source.text.find(";", self.stop)
        if self.stop < 0:
            raise self.source.error(self.at, "a semicolon after this property", "none")
        text = self.source.text[start : self.stop]
        self.advance()
        self.advance()
        return common.split_property(text)


@dataclass(slots=True)
class _Entry:
    """A line of a distribution: a keyword or the parents' states, and the text of its numbers."""

    at: int
    key: str | list[str]
    numbers: str


@dataclass
class _Distribution:
    at: int
    names: list[str]
    entries: list[_Entry] = field(default_factory=list)


@dataclass
class _File:
    """The content of a file before names are looked up, since blocks may come in any order."""

    target: str | None = None
    target_at: int = 0
    variables: dict[str, Variable] = field(default_factory=dict)
    states: list[list[str]] = field(default_factory=list)
    distributions: list[_Distribution] = field(default_factory=list)


def _parse(scan: _Scanner) -> _File:
    file = _File()
    scan.take("network")
    if scan.word != "{":
        scan.name("the name of the network")
    scan.take("{")
    while scan.word == "property":
        at, (name, value) = scan.at, scan.property()
        if name == "target":
            file.target, file.target_at = common.unquote(value), at
    scan.take("}")
    while scan.word:
        if scan.word == "variable":
            _parse_variable(scan, file)
        elif scan.word == "probability":
            file.distributions.append(_parse_distribution(scan))
        else:
            raise scan.error("'variable' or 'probability'")
    return file


def _parse_variable(scan: _Scanner, file: _File) -> None:
    scan.advance()
    at = scan.at
    name = scan.name("the name of a variable")
    if name in file.variables:
        raise scan.source.error(at, "variables of distinct names", f"{common.shorten(name)} again")
    scan.take("{")
    states: list[str] = []
    properties: dict[str, str] = {}
    while scan.word != "}":
        if scan.word == "property":
            properties.update([scan.property()])
        elif scan.word == "type" and not states:
            states = _parse_states(scan)
        else:
            raise scan.error("'property' or '}'" if states else "'type', 'property' or '}'")
    if not states:
        raise scan.error(f"the states of {name!r}, as 'type discrete [ 2 ] {{ no, yes }};'")
    scan.advance()
    file.states.append(states)
    file.variables[name] = common.make_variable(name, states, properties, scan.source.where(at))


def _parse_states(scan: _Scanner) -> list[str]:
    scan.advance()
    for token in ("discrete", "["):
        scan.take(token)
    at, count = scan.at, scan.name("the number of states")
    scan.take("]")
    scan.take("{")
    states = scan.names("a state", "}")
    scan.advance()
    scan.take(";")
    if count != str(len(states)):
        raise scan.source.error(at, f"{len(states)}, the number of the states listed", common.shorten(count))
    if len(set(states)) != len(states):
        raise scan.source.error(at, "distinct states", common.shorten(", ".join(states)))
    return states


def _parse_distribution(scan: _Scanner) -> _Distribution:
    scan.advance()
    scan.take("(")
    block = _Distribution(scan.at, scan.names("the name of a variable", ")"))
    scan.advance()
    scan.take("{")
    while scan.word != "}":
        at = scan.at
        key: str | list[str] = scan.word
        if key == "property":
            scan.property()
            continue
        if key == "(":
            scan.advance()
            key = scan.names("a state", ")")
        elif key not in ("table", "default"):
            raise scan.error("'table', 'default', a row '(state, ...)' or '}'")
        block.entries.append(_Entry(at, key, scan.numbers()))
    scan.advance()
    return block


def _table(
    source: common.Source, block: _Distribution, shape: tuple[int, int], codes: Sequence[dict[str, int]]
) -> tuple[np.ndarray, Callable[[int], int]]:
    """Return the table of a distribution, and the function that gives the position of a row."""
    rows, states = shape
    name = common.shorten(block.names[0])
    keyed: dict[str, _Entry] = {}
    given: dict[int, _Entry] = {}
    for entry in block.entries:
        if isinstance(entry.key, str):
            if entry.key in keyed or (entry.key == "table" and given):
                raise source.error(entry.at, f"each row of {name} once", f"{entry.key!r} besides")
            keyed[entry.key] = entry
            continue
        row = _row(source, block, entry, codes)
        if row in given or "table" in keyed:
            raise source.error(entry.at, f"each row of {name} once", f"{common.shorten(', '.join(entry.key))} again")
        given[row] = entry
    if whole := keyed.get("table"):
        values = _numbers(source, [whole], rows * states)
        return values.reshape(states, rows).T, lambda row: whole.at
    default = keyed.get("default")
    if default is None and len(given) < rows:
        missing = next(key for row, key in enumerate(product(*codes)) if row not in given)
        got = f"none for {common.shorten(', '.join(missing))}"
        raise source.error(block.at, f"a row of {name} for each assignment of its parents", got)
    table = np.empty(shape)
    if default is not None:
        table[:] = _numbers(source, [default], states)
    if given:
        table[list(given)] = _numbers(source, list(given.values()), states).reshape(-1, states)
    return table, lambda row: given.get(row, default or block).at


def _row(source: common.Source, block: _Distribution, entry: _Entry, codes: Sequence[dict[str, int]]) -> int:
    """Return the number of the row for the states of the parents."""
    if len(entry.key) != len(codes):
        raise source.error(entry.at, f"{len(codes)} states, one for each parent", len(entry.key))
    row = 0
    for parent, code, state in zip(block.names[1:], codes, entry.key, strict=True):
        if state not in code:
            raise source.error(entry.at, f"a state of {common.shorten(parent)}", common.shorten(state))
        row = row * len(code) + code[state]
    return row


def _numbers(source: common.Source, entries: Sequence[_Entry], count: int) -> np.ndarray:
    """Return the numbers of the entries, `count` in each."""
    words: list[str] = []
    for entry in entries:
        words += common.split_words(entry.numbers.replace(",", " "), count, partial(source.error, entry.at))
    return common.parse_numbers(words, lambda index: source.where(entries[index // count].at))


def _name(text: str) -> str:
    """Return a name as it is written: bare, as in the public repositories, if that can be read back; else quoted."""
    bare = text.isascii() and text.isprintable() and text not in _KEYWORDS
    return text if bare and re.fullmatch(_BARE, text) else common.quote(text)


def _format(net: BayesNet, states: Sequence[Sequence[str]], tables: Sequence[np.ndarray]) -> Iterator[str]:
    names = [_name(node.name) for node in net.nodes]
    yield "network unknown {\n"
    if net.target is not None:
        # A property ends at the first semicolon, even in quotes.
        yield f"  property target = {names[-1].replace(';', chr(92) + 'u003b')} ;\n"
    yield "}\n"
    for node, name, texts in zip(net.nodes, names, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {len(texts)} ] {{ {', '.join(texts)} }};\n"
        for text in common.variable_properties(node):
            yield f"  property {text} ;\n"
        yield "}\n"
    for cpd, name, table in zip(net.cpds, names, tables, strict=True):
        given = f" | {', '.join(names[parent] for parent in cpd.parents)}" if cpd.parents else ""
        yield f"probability ( {name}{given} ) {{\n"
        for key, row in zip(product(*(states[parent] for parent in cpd.parents)), table, strict=True):
            yield f"  {'(' + ', '.join(key) + ')' if key else 'table'} {', '.join(row)};\n"
        yield "}\n"
