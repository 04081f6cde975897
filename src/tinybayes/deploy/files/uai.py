"""UAI, the plain text of the inference competitions: ``BAYES`` and ``MARKOV`` networks, and evidence.

A file has the word ``BAYES``, the number of variables, their numbers of states, the number of functions, for
each function its scope (how many variables, then their indices: the parents, and last the child), and then
for each function how many numbers it has and these numbers, the child's states running fastest and the first
parent slowest. There are no names: variables are read as ``x0, x1, ...`` with the states ``0, 1, ...``;
writing a network loses its names, class and cut points. Functions may come in any order, one for each
variable. The sum of a row may differ from one by 1e-3, since files round; the numbers are kept as they are.

A ``MARKOV`` network has the same form, but any number of functions with any numbers from zero up, and no child in a
scope: it is a `LogLinear` model with a feature for each number.
"""

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from tinybayes.deploy.files import network_text as common
from tinybayes.model import BayesNet, Factor, LogLinear

_MAX_STATES = 2**20  # of a Markov network: its variables need not be in a table, whose size would bound them


def _read(path: str | os.PathLike[str]) -> common.Source:
    """Read a file with its comments blanked out, so that offsets into the text stay."""
    source = common.read_source(path)
    return common.Source(source.path, re.sub(r"#.*", lambda comment: " " * len(comment[0]), source.text))


def read_uai(path: str | os.PathLike[str]) -> BayesNet:
    """Read a Bayesian network, without a class, from a UAI file."""
    tokens = common.Tokens(_read(path))
    source = tokens.source
    kind = tokens.word("'BAYES'")
    if kind == "MARKOV":
        got = "'MARKOV', a Markov network, which is not a Bayesian network"
        raise source.error(tokens.at, "'BAYES'", got, "its factors have no parents and children: read_uai_factors")
    if kind != "BAYES":
        raise source.error(tokens.at, "'BAYES', the first word of a UAI file", common.shorten(kind))
    return _bayes(tokens)


def read_uai_factors(path: str | os.PathLike[str]) -> LogLinear:
    """Read a UAI file, ``BAYES`` or ``MARKOV``, as a log-linear model with a feature for each number of its tables.

    Parameters
    ----------
    path
        The file; a gzip is decompressed.

    Raises
    ------
    FileError
        When the file is not a UAI file or does not describe a network; the message starts with ``path:line``.
    """
    tokens = common.Tokens(_read(path))
    kind = tokens.word("'BAYES' or 'MARKOV'")
    if kind == "BAYES":
        return LogLinear.from_bayes_net(_bayes(tokens))
    if kind != "MARKOV":
        raise tokens.source.error(tokens.at, "'BAYES' or 'MARKOV', the first word of a UAI file", common.shorten(kind))
    cards = _cards(tokens)
    if sum(cards) > _MAX_STATES:
        raise tokens.source.error(tokens.at, f"at most {_MAX_STATES:,} states of all variables", f"{sum(cards):,}")
    functions = tokens.integer("the number of functions", 0, common.MAX_ENTRIES)
    scopes = [_scope(tokens, len(cards), 0) for _ in range(functions)]
    factors: list[Factor] = []
    weights: list[np.ndarray] = []
    total = 0
    for scope, at in scopes:
        if len(set(scope)) != len(scope):
            raise tokens.source.error(at, "each variable once in a scope", " ".join(map(str, scope[:10])))
        weights.append(_values(tokens, [cards[v] for v in scope], len(factors), common.MAX_ENTRIES - total))
        factors.append(Factor(tuple(scope), np.arange(total, total + len(weights[-1]))))
        total += len(weights[-1])
    tokens.end()
    return LogLinear(common.unnamed_variables(cards), tuple(factors), np.concatenate([np.empty(0), *weights]))


def _bayes(tokens: common.Tokens) -> BayesNet:
    """Read the rest of a file after the word ``BAYES``."""
    source = tokens.source
    cards = _cards(tokens)
    count = len(cards)
    functions = tokens.integer("the number of functions, one for each variable", count, count)
    scopes = [_scope(tokens, count) for _ in range(functions)]
    builder = common.NetworkBuilder(source.error, [f"x{index}" for index in range(count)], cards)
    for scope, at in scopes:
        _table(tokens, builder, scope, at)
    tokens.end()
    return builder.build(common.unnamed_variables(cards), source.end)


def _cards(tokens: common.Tokens) -> list[int]:
    count = tokens.integer("the number of variables", 1, common.MAX_ENTRIES)
    return [tokens.integer("a number of states", 1, common.MAX_ENTRIES) for _ in range(count)]


def _scope(tokens: common.Tokens, count: int, least: int = 1) -> tuple[list[int], int]:
    size = tokens.integer("the size of a scope", least, count)
    at = tokens.at
    return [tokens.integer("the index of a variable", 0, count - 1) for _ in range(size)], at


def _table(tokens: common.Tokens, builder: common.NetworkBuilder, scope: Sequence[int], at: int) -> None:
    *parents, child = scope
    rows, states = builder.shape(child, parents, at)
    tokens.integer(f"the number of probabilities of 'x{child}'", rows * states, rows * states)
    values, position = tokens.numbers(rows * states, f"probabilities of 'x{child}'")
    builder.add(child, parents, values.reshape(rows, states), at, lambda row: position(row * states))


def _values(tokens: common.Tokens, cards: Sequence[int], number: int, most: int) -> np.ndarray:
    """Return the logarithms of a factor's table."""
    size = 1
    for card in cards:
        size *= card
        if size > most:
            expected = f"at most {common.MAX_ENTRIES:,} numbers in all tables"
            raise tokens.source.error(tokens.at, expected, f"more with function {number}, over {len(cards)} variables")
    tokens.integer(f"the number of entries of function {number}", size, size)
    values, position = tokens.numbers(size, f"entries of function {number}")
    wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if wrong.size:
        raise tokens.source.error(position(int(wrong[0])), "a finite number that is not negative", values[wrong[0]])
    return common.log_probabilities(values)


def write_uai(net: BayesNet, path: str | os.PathLike[str], *, normalize: bool = False) -> None:
    """Write a network, as `write_bif` does, to a ``BAYES`` file; names, class and cut points are lost.

    The class, if there is one, is the last variable.
    """
    common.write_text(path, _format(net, common.network_decimals(net, normalize)))


def _format(net: BayesNet, tables: Sequence[np.ndarray]) -> Iterator[str]:
    yield f"BAYES\n{len(net.nodes)}\n"
    yield " ".join(str(node.cardinality) for node in net.nodes)
    yield f"\n{len(net.nodes)}\n"
    for family in net.structure.families:
        yield f"{len(family)} {' '.join(map(str, family))}\n"
    for table in tables:
        yield f"\n{table.size}\n"
        for row in table:
            yield f" {' '.join(row)}\n"


def read_evidence(path: str | os.PathLike[str]) -> list[dict[int, int]]:
    """Read a UAI evidence file: for each case the observed variables with their states, by index.

    The file has the number of observed variables, then pairs of variable and state: one case. Where that
    does not fit its length, it is read as the older form: the number of cases first, then these.

    Parameters
    ----------
    path
        The file; a gzip is decompressed.

    Returns
    -------
    list of dict
        One dictionary for each case.

    Raises
    ------
    FileError
        When the file is not an evidence file; the message starts with ``path:line``.
    """
    source = _read(path)
    first = common.Tokens(source).integer("the number of observed variables", 0, common.MAX_ENTRIES)
    length = len(source.text.split())
    tokens = common.Tokens(source)
    cases = 1 if length == 1 + 2 * first else tokens.integer("the number of cases", 1, common.MAX_ENTRIES)
    evidence = [_case(tokens) for _ in range(cases)]
    tokens.end()
    return evidence


def _case(tokens: common.Tokens) -> dict[int, int]:
    case: dict[int, int] = {}
    for _ in range(tokens.integer("the number of observed variables", 0, common.MAX_ENTRIES)):
        variable = tokens.integer("the index of a variable", 0, common.MAX_ENTRIES)
        if variable in case:
            raise tokens.source.error(tokens.at, "each variable once", f"{variable} again")
        case[variable] = tokens.integer("the index of a state", 0, common.MAX_ENTRIES)
    return case
