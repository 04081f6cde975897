"""Marginals as text in the format of the UAI inference competitions.

The word ``MAR``, the number of variables, then for each variable its number of states and their probabilities.
"""

import os
import re
from collections.abc import Sequence

import numpy as np

from tinybayes.deploy.files.network_text import MAX_ENTRIES, Tokens, read_source, shorten, write_text


def format_marginals(probabilities: Sequence[np.ndarray]) -> str:
    """Return the text of marginals; numbers are the shortest that read back exactly."""
    words = [str(len(probabilities))]
    for part in probabilities:
        words += [str(len(part)), *(repr(float(p)) for p in part)]
    return f"MAR\n{' '.join(words)}\n"


def write_marginals(probabilities: Sequence[np.ndarray], path: str | os.PathLike[str]) -> None:
    """Write marginals to a file; compressed when the name ends in ``.gz``."""
    write_text(path, [format_marginals(probabilities)])


def read_marginals(path: str | os.PathLike[str]) -> tuple[np.ndarray, ...]:
    """Read marginals from a file; the older form, with the number of cases (one) first, is read as well.

    Raises
    ------
    FileError
        When the file is not such a file; the message starts with ``path:line``.
    """
    source = read_source(path)
    tokens = Tokens(source)
    if (word := tokens.word("'MAR'")) != "MAR":
        raise source.error(tokens.at, "'MAR', the first word of a file of marginals", shorten(word))
    words = source.text.split()
    if words[1:2] == ["1"] and not _fits(words[1:]) and _fits(words[2:]):
        tokens.integer("the number of cases", 1, 1)
    marginals = []
    for _ in range(tokens.integer("the number of variables", 1, MAX_ENTRIES)):
        states = tokens.integer("a number of states", 1, MAX_ENTRIES)
        values, position = tokens.numbers(states, "probabilities")
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1 + 1e-6)))
        if wrong.size:
            raise source.error(position(int(wrong[0])), "a probability", values[wrong[0]])
        if abs(values.sum() - 1) > 1e-3:
            raise source.error(position(0), "probabilities that sum to one", f"{values.sum():.6g}")
        marginals.append(values)
    tokens.end()
    return tuple(marginals)


def _fits(words: list[str]) -> bool:
    """Tell whether numbers of states and of variables agree with the number of words."""
    at, left = 1, _count(words, 0)
    while left > 0 and (states := _count(words, at)) >= 0:
        at, left = at + 1 + states, left - 1
    return left == 0 and at == len(words)


def _count(words: list[str], at: int) -> int:
    """Return the integer at an index; -1 if there is none that can be right."""
    return int(words[at]) if at < len(words) and re.fullmatch("[0-9]{1,9}", words[at]) else -1
