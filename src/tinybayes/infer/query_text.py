"""Questions as people write them: ``A=1, B=yes | C=0``."""

from collections.abc import Sequence

import numpy as np

from tinybayes.errors import TinybayesError, error, near
from tinybayes.model import Variable
from tinybayes.model.variable import interval_codes

_WHERE = "query"


def parse_query(text: str, nodes: Sequence[Variable]) -> tuple[np.ndarray, np.ndarray]:
    """Read a question: what is asked for, then after a bar what is known.

    Parameters
    ----------
    text
        ``NAME=STATE`` with commas between them; either side of the bar may be empty. For a variable that was cut from
        numbers, a number stands for the interval it falls in.
    nodes
        The variables.

    Returns
    -------
    query, evidence
        A row of codes each, -1 for variables that are not in it.

    Raises
    ------
    TinybayesError
        For an unknown variable or state, and for a variable with two states.
    """
    sides = text.split("|")
    if len(sides) > 2:
        raise error("one bar between what is asked and what is known", f"{len(sides) - 1}", where=_WHERE)
    rows = [np.full(len(nodes), -1, dtype=np.int32) for _ in range(2)]
    given: dict[int, int] = {}
    for row, side in zip(rows, sides, strict=False):
        for part in filter(None, map(str.strip, side.split(","))):
            node, code = _assignment(part, nodes)
            if given.setdefault(node, code) != code:
                states = f"{nodes[node].states[given[node]]} and {nodes[node].states[code]}"
                raise error(f"one state for {nodes[node].name!r}", states, where=_WHERE)
            row[node] = code
    return rows[0], rows[1]


def _assignment(part: str, nodes: Sequence[Variable]) -> tuple[int, int]:
    index = {node.name: place for place, node in enumerate(nodes)}
    # Names may hold an equals sign themselves: the first one that ends a name counts.
    for at in (at for at, letter in enumerate(part) if letter == "="):
        name = part[:at].strip()
        if name in index:
            return index[name], state_code(nodes[index[name]], part[at + 1 :].strip())
    if "=" not in part:
        raise error("NAME=STATE", repr(part), where=_WHERE, remedy='write for example "A=1, B=yes | C=0"')
    raise _unknown("one of the variables", part.split("=")[0].strip(), list(index))


def state_code(variable: Variable, text: str) -> int:
    """Return the code of a state by its text, or by a number that equals it or falls into its interval."""
    texts = [str(state) for state in variable.states]
    if text in texts:
        return texts.index(text)
    number = _number(text)
    if number is not None:
        if variable.edges is not None:
            return int(interval_codes(variable.edges, np.array(number)))
        for code, state in enumerate(variable.states):
            if _number(str(state)) == number:
                return code
    lowered = [word.lower() for word in texts]
    if lowered.count(text.lower()) == 1:  # true for True
        return lowered.index(text.lower())
    raise _unknown(f"a state of {variable.name!r}", text, texts)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _unknown(expected: str, got: str, known: list[str]) -> TinybayesError:
    listing = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return error(f"{expected} ({listing})", repr(got), where=_WHERE, remedy=near(got, known))
