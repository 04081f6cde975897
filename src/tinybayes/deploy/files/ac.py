"""Circuits as text, in the form of the Libra toolkit's ``.ac`` files.

The format: the first line holds the numbers of states of all variables, as ``(2 2 3)``; then
follows one node on each line, children before their parents, the root last:

- ``n VALUE``: a constant, the probability itself and not its logarithm;
- ``v VARIABLE STATE``: an indicator, both counted from zero;
- ``+ CHILD CHILD ...`` and ``* CHILD CHILD ...``: nodes by their line, counted from zero after the first;

and last a line ``EOF``. There are no names: variables are read as ``x0, x1, ...`` with the states ``0, 1, ...``.
"""

import os
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tinybayes.deploy.files import network_text as common
from tinybayes.errors import FileError, error
from tinybayes.infer.circuit_properties import is_decomposable
from tinybayes.model import Circuit, Float

_SHAPE = re.compile(r"\(\s*([0-9]{1,9}(?:[\s,]+[0-9]{1,9})*)\s*\)\s*")
_INTEGER = re.compile(r"[0-9]{1,9}")
_KINDS = {"n": 0, "v": 1, "+": 2, "*": 3}


def read_ac(path: str | os.PathLike[str]) -> Circuit:
    """Read a decomposable circuit, without a class, from an ``.ac`` file; each line ``n`` is a parameter."""
    source = common.read_source(path)
    shape = _SHAPE.match(source.text)
    if shape is None:
        raise source.error(0, "numbers of states in brackets, as (2 2 3)", common.shorten(source.text[:30]))
    cards = [int(word) for word in shape[1].replace(",", " ").split()]
    if min(cards) < 1 or sum(cards) > common.MAX_ENTRIES:
        raise source.error(0, f"one state or more each, {common.MAX_ENTRIES} in all", f"{min(cards)} to {max(cards)}")
    nodes, tokens = _Nodes(source, cards), common.Tokens(source, shape.end())
    while (kind := tokens.word("'EOF' after the last node")) != "EOF":
        nodes.add(kind, tokens.rest_of_line(), tokens.at)
    circuit = nodes.circuit()
    if not (answer := is_decomposable(circuit)):
        raise error("a decomposable circuit", answer.reason, where=f"{path}", kind=FileError)
    return circuit


class _Nodes:
    """The nodes read so far."""

    def __init__(self, source: common.Source, cards: list[int]) -> None:
        self.source, self.cards = source, cards
        self.first_state = np.cumsum([0, *cards])
        self.kind: list[int] = []
        self.leaf: list[int] = []
        self.offsets, self.children = [0], list[int]()
        self.values: list[float] = []

    def add(self, kind: str, rest: list[str], at: int) -> None:
        if kind not in _KINDS:
            raise self.source.error(at, "a node 'n', 'v', '+' or '*', or 'EOF'", common.shorten(kind))
        leaf = -1
        if kind == "n":
            leaf = len(self.values)
            self.values.append(self._value(rest, at))
        elif kind == "v":
            variable, state = self._integers(rest, at, 2)
            if variable >= len(self.cards) or state >= self.cards[variable]:
                raise self.source.error(at, "a state of one of the variables", common.shorten(" ".join(rest)))
            leaf = int(self.first_state[variable]) + state
        else:
            below = self._integers(rest, at, None)
            if max(below) >= len(self.kind):
                raise self.source.error(at, "children on lines before", f"{max(below)} on line {len(self.kind)}")
            self.children += below
        self.kind.append(_KINDS[kind])
        self.leaf.append(leaf)
        self.offsets.append(len(self.children))

    def _value(self, words: list[str], at: int) -> float:
        try:
            (value,) = map(float, words)
        except ValueError:
            value = -1.0
        if not 0 <= value < np.inf:
            raise self.source.error(at, "a constant that is not negative", common.shorten(" ".join(words)))
        if not common.is_held(words[0]):
            raise self.source.error(at, common.HELD, common.shorten(words[0]))
        return value

    def _integers(self, words: list[str], at: int, count: int | None) -> list[int]:
        if not words or len(words) != (count or len(words)) or not all(map(_INTEGER.fullmatch, words)):
            expected = f"{count or 'one or more'} integers"
            raise self.source.error(at, expected, common.shorten(" ".join(words) or "nothing"))
        return [int(word) for word in words]

    def circuit(self) -> Circuit:
        if not self.kind:
            raise self.source.error(self.source.end, "one node or more", "none")
        with np.errstate(divide="ignore"):
            table = np.log(np.array(self.values, dtype=np.float64))
        children = np.array(self.children, dtype=np.int32)
        arrays = (np.array(self.kind), np.array(self.offsets), children, np.array(self.leaf))
        return Circuit(common.unnamed_variables(self.cards), None, *arrays, table, Float(64))


def write_ac(circuit: Circuit, path: str | os.PathLike[str]) -> None:
    """Write a circuit to an ``.ac`` file; names, class, cut points and the format of the numbers are lost.

    The class, if there is one, is the last variable.
    """
    common.write_text(path, _format(circuit))


def _format(circuit: Circuit) -> Iterator[str]:
    cards = np.diff(circuit.first_state)
    variable = np.repeat(np.arange(len(cards)), cards)
    yield f"({' '.join(map(str, cards))})\n"
    values = np.exp(common.check_held(circuit.log_parameters))
    spans = pairwise(circuit.offsets.tolist())
    for kind, leaf, (start, stop) in zip(circuit.kind.tolist(), circuit.leaf.tolist(), spans, strict=True):
        if kind == 0:
            yield f"n {float(values[leaf])!r}\n"
        elif kind == 1:
            yield f"v {variable[leaf]} {leaf - circuit.first_state[variable[leaf]]}\n"
        else:
            yield f"{'+*'[kind - 2]} {' '.join(map(str, circuit.children[start:stop].tolist()))}\n"
    yield "EOF\n"
