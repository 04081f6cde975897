"""The few exceptions of the package and the one style of its messages.

Every message names the expected and the received value, the position, and a remedy. The command line
prints it as one line; nothing else is caught there, so a traceback always means a defect of ours.
"""

import re
import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PACKAGE = str(Path(__file__).parent)


class TinybayesError(ValueError):
    """Any invalid input: a table, an option, a model or a file."""


class FileError(TinybayesError):
    """A file that is damaged, hostile, of another format, or too new; the message names the position in it."""


class LimitError(TinybayesError):
    """Limits that no model keeps; the command line ends with exit code 3."""


class TinybayesWarning(UserWarning):
    """A table that can be learned from, but probably does not mean what the user thinks."""


def warn(text: str) -> None:
    """Warn, naming the line outside of the package that led here; the command line prints the text alone."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, TinybayesWarning, stacklevel=level)


def error(
    expected: str, got: object, *, where: str = "", remedy: str = "", kind: type[TinybayesError] = TinybayesError
) -> TinybayesError:
    """Build an error in the one style; `where` is a column, an option, or a file with its line.

    Examples
    --------
    >>> raise error("at least 2 classes", 1, where="target 'y'", remedy="choose another column")
    Traceback (most recent call last):
    ...
    tinybayes.errors.TinybayesError: target 'y': expected at least 2 classes, got 1; choose another column
    """
    position, advice = f"{where}: " if where else "", f"; {remedy}" if remedy else ""
    return kind(f"{position}expected {expected}, got {got}{advice}")


def visible(text: object) -> str:
    r"""Return text in which control characters are shown as escapes, so that a name cannot steer a terminal.

    Line ends and tabs stay. Half characters and marks that turn the direction of writing are shown, too.

    Examples
    --------
    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def near(name: object, names: Iterable[object]) -> str:
    """Suggest the closest of the names, if one is close to the given one; a remedy for `error`.

    Examples
    --------
    >>> near("specis", ["species", "petal"])
    "did you mean 'species'?"
    >>> near("zz", ["species", "petal"])
    ''
    """
    known = {str(one).casefold(): str(one) for one in names}
    close = get_close_matches(str(name).casefold(), known, n=1)
    return f"did you mean {known[close[0]]!r}?" if close else ""
