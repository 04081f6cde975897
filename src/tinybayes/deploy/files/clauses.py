"""Weighted clauses as text: a small format for log-linear models over logical features.

A line is a comment (after ``#``), a variable, a named weight, or a clause::

    variable weather sunny rainy snow      # a variable and its states; others are binary, with the states 0 and 1
    u = 0.5                                # a named weight: the clauses that use it are tied
    u: a | b                               # a feature that is true where a or b is 1
    u: b | !c                              # !c: c is 0
    -1.25: !a | weather=rainy              # a weight of its own
    hard: weather!=snow | a                # must be true

A bare name and ``!`` are for binary variables, ``=`` and ``!=`` for any. Variables come in the order of their
first use.
"""

import os
import re
from dataclasses import dataclass, field

import numpy as np

from tinybayes.deploy.files.network_text import Source, read_source, shorten
from tinybayes.errors import TinybayesError
from tinybayes.model import DecisionTree, Factor, LogLinear, Variable
from tinybayes.model.log_linear import NONE

_NAME = re.compile(r"[^\W\d][\w.\-\[\]]*")
_STATE = re.compile(r"[^\s=!|:#]+")
_LITERAL = re.compile(r"(!?)\s*([^\s=!]+)\s*(?:(!?=)\s*([^\s=!]+))?")
_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?")  # possessive: no backtracking on long words
_RESERVED = ("hard", "variable")


def read_clauses(path: str | os.PathLike[str]) -> LogLinear:
    """Read a log-linear model from a file of weighted clauses.

    Raises
    ------
    FileError
        When the file is not such a file; the message starts with ``path:line``.
    """
    return _Parser(read_source(path)).run()


def parse_clauses(text: str) -> LogLinear:
    r"""Make a log-linear model from the text of weighted clauses.

    Examples
    --------
    >>> parse_clauses("u = 0.5\nu: a | b\nu: b | c\n1.2: a | c").class_counts([[0, 1, 1]]).tolist()
    [2.0, 1.0]
    """
    return _Parser(Source("clauses", text)).run()


@dataclass
class _Parser:
    """The content that has been read so far."""

    source: Source
    variables: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)  # the classes of named weights
    weights: list[float] = field(default_factory=list)
    ties: list[int] = field(default_factory=list)
    clauses: list[tuple[dict[str, set[int]], bool]] = field(default_factory=list)
    at: int = 0

    def run(self) -> LogLinear:
        for line in self.source.text.splitlines(keepends=True):
            self._line(line.split("#")[0].strip())
            self.at += len(line)
        if not self.clauses:
            raise self._error("a clause", "none", "write for example: 0.5: a | b")
        names = list(self.variables)
        variables = tuple(Variable(name, states) for name, states in self.variables.items())
        cards = [variable.cardinality for variable in variables]
        factors = [
            _factor({names.index(name): true for name, true in clause.items()}, cards, feature, hard)
            for feature, (clause, hard) in enumerate(self.clauses)
        ]
        return LogLinear(variables, tuple(factors), np.array(self.weights), np.array(self.ties))

    def _error(self, expected: str, got: object, remedy: str = "") -> TinybayesError:
        return self.source.error(min(self.at, self.source.end), expected, got, remedy)

    def _line(self, line: str) -> None:
        if not line:
            return
        words = line.split()
        if words[0] == "variable" and ":" not in line and "=" not in line:
            self._variable(words[1:])
        elif ":" in line:
            self._clause(*line.split(":", 1))
        elif "=" in line:
            self._named(*line.split("=", 1))
        else:
            remedy = "write 'WEIGHT: a | b', 'NAME = WEIGHT' or 'variable NAME STATES'"
            raise self._error("a clause, a named weight or a variable", shorten(line), remedy)

    def _variable(self, words: list[str]) -> None:
        if len(words) < 2 or not _NAME.fullmatch(words[0]) or not all(_STATE.fullmatch(word) for word in words[1:]):
            raise self._error("'variable NAME STATE ...'", shorten(" ".join(words)))
        if words[0] in self.variables:
            raise self._error(f"variable {words[0]!r} once, before it is used", "it again")
        if len(set(words[1:])) < len(words) - 1:
            raise self._error("distinct states", shorten(" ".join(words[1:])))
        self.variables[words[0]] = tuple(words[1:])

    def _named(self, name: str, number: str) -> None:
        name = name.strip()
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise self._error("the name of a weight", shorten(name))
        if name in self.named:
            raise self._error(f"weight {name!r} once", "it again")
        self.named[name] = len(self.weights)
        self.weights.append(self._number(number.strip()))

    def _number(self, text: str) -> float:
        if not _NUMBER.fullmatch(text) or not np.isfinite(float(text)):
            raise self._error("a finite number", shorten(text), "for a clause that must hold write 'hard: ...'")
        return float(text)

    def _clause(self, weight: str, text: str) -> None:
        weight = weight.strip()
        if weight in self.named:
            self.ties.append(self.named[weight])
        else:
            if weight != "hard" and _NAME.fullmatch(weight):
                known = ", ".join(list(self.named)[:10]) or "none so far"
                raise self._error(f"a number, 'hard' or a named weight ({known})", shorten(weight))
            self.ties.append(len(self.weights))
            self.weights.append(-np.inf if weight == "hard" else self._number(weight))
        clause: dict[str, set[int]] = {}
        for literal in text.split("|"):
            name, true = self._literal(literal.strip())
            clause.setdefault(name, set()).update(true)
        always = [name for name, true in clause.items() if len(true) == len(self.variables[name])]
        if always:
            raise self._error("a clause that can be false", f"one that names every state of {always[0]!r}")
        self.clauses.append((clause, weight == "hard"))

    def _literal(self, text: str) -> tuple[str, set[int]]:
        """Return the variable of a literal, and the states for which it is true."""
        match = _LITERAL.fullmatch(text)
        if match is None or not _NAME.fullmatch(match[2]) or (match[1] and match[3]):
            raise self._error("a literal: a, !a, a=state or a!=state", shorten(text))
        negated, name, relation, state = match.groups()
        states = self.variables.setdefault(name, (0, 1))
        if relation is None:
            if len(states) != 2:
                remedy = f"write {name}=STATE"
                raise self._error(f"a state of {name!r}, which has {len(states)}", shorten(text), remedy)
            return name, {0 if negated else 1}
        texts = list(map(str, states))
        if state not in texts:
            raise self._error(f"a state of {name!r} ({', '.join(texts[:10])})", shorten(state))
        chosen = {texts.index(state)}
        return name, chosen if relation == "=" else set(range(len(states))) - chosen


def _factor(clause: dict[int, set[int]], cards: list[int], feature: int, hard: bool) -> Factor:
    """Return the factor of a clause: a chain of tests that stops at the first true literal.

    The feature of a hard clause is its negation, which is forbidden.
    """
    scope = list(clause)
    true, false = len(scope), len(scope) + 1
    first: list[int] = []
    children: list[int] = []
    for depth, v in enumerate(scope):
        first.append(len(children))
        otherwise = depth + 1 if depth + 1 < len(scope) else false
        children += [true if state in clause[v] else otherwise for state in range(cards[v])]
    tree = DecisionTree(
        np.array([*scope, -1, -1]), np.array([*first, 0, 0]), np.array(children), np.array([0] * len(scope) + [0, 1])
    )
    return Factor(tuple(scope), np.array([NONE, feature] if hard else [feature, NONE]), tree)
