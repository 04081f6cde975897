"""What a paper claims, held against our results: claims are questions, and every table of verdicts comes from them.

A claim is asked of each data set, network or model that was run. It holds if all answers are yes, partly if some are.
The numbers behind the answers stand beside the verdict, so that the pages change with the results.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from experiments.markdown import line

R = TypeVar("R")
Answer = tuple[bool, str]  # whether a claim holds in one case, and the numbers behind it
HEAD = """
| section | claim | verdict | what we measured | figure |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Claim(Generic[R]):
    """A claim of a paper.

    Parameters
    ----------
    section
        Where the paper makes it.
    text
        What it says; where it is vague, with the threshold that we ask for.
    ask
        The question to the results of a paper.
    figure
        Where our numbers are shown: a name, and the heading on the page.
    """

    section: str
    text: str
    ask: Callable[[R], Iterable[Answer]]
    figure: tuple[str, str]


def verdict(answers: Sequence[Answer]) -> str:
    """Return the verdict in words."""
    yes = sum(holds for holds, _ in answers)
    if not answers:
        return "not run"
    return "holds" if yes == len(answers) else "holds partly" if yes else "does not hold"


def table(claims: Iterable[Claim[R]], results: R) -> str:
    """Return the table of all claims with their verdicts; cases where a claim fails are marked."""
    lines = [HEAD]
    for claim in claims:
        answers = list(claim.ask(results))
        mixed = len({holds for holds, _ in answers}) > 1
        numbers = "; ".join(f"{'' if holds or not mixed else '**no:** '}{why}" for holds, why in answers)
        name, anchor = claim.figure
        lines.append(line(claim.section, claim.text, f"**{verdict(answers)}**", numbers, f"[{name}](#{anchor})"))
    return "".join(lines)


def counted(parts: Iterable[tuple[Iterable[Claim[Any]], Any]]) -> str:
    """Say how many claims hold, of claims with the results that they are asked of."""
    found = [verdict(list(claim.ask(results))) for claims, results in parts for claim in claims]
    plural = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold", "not run": "were not run"}
    single = {"not run": "was not run"}
    counts = [
        f"{found.count(word)} {words if found.count(word) > 1 else single.get(word, word)}"
        for word, words in plural.items()
        if word in found
    ]
    return f"Of {len(found)} claims {', '.join(counts)}."
