"""Plain text of words and numbers: the common part of the UAI and Libra formats."""

import re
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from tinybayes.deploy.files.network_text import Source, parse_numbers, shorten
from tinybayes.errors import TinybayesError
from tinybayes.model import Variable

_WORD = re.compile(r"\S+")


def unnamed_variables(cards: Sequence[int]) -> tuple[Variable, ...]:
    """Return variables ``x0, x1, ...`` with the states ``0, 1, ...``, for formats without names."""
    return tuple(Variable(f"x{index}", tuple(range(card))) for index, card in enumerate(cards))


class Tokens:
    """Reads the words of a text one after another, and knows their lines.

    Parameters
    ----------
    source
        The text with its path.
    start
        The offset to begin at.
    """

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
