"""Strict JSON; an error names the field that is wrong."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from reprlib import repr as short
from typing import Any, TypeVar

from tinybayes.errors import FileError, TinybayesError, error

__all__ = ["JSON", "dumps", "each", "get", "integer", "parse", "short", "sound", "values"]

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
T = TypeVar("T")


def dumps(value: object, where: str) -> str:
    """Write JSON that reads back as the same value; the same value gives the same text."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=True)
        if json.loads(text) != value:
            raise TypeError("a tuple, or a key that is not a string")
    except (TypeError, ValueError, RecursionError) as problem:
        raise error("content that JSON can hold", f"{problem}", where=where) from problem
    return text


def parse(text: str | bytes, where: str, remedy: str = "") -> dict[str, Any]:
    """Parse a JSON object: no key twice, no number beyond the doubles."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as problem:
        raise error("JSON", f"{problem}", where=where, remedy=remedy, kind=FileError) from problem
    if not isinstance(value, dict):
        raise error("a JSON object", short(value), where=where, kind=FileError)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    holder = dict(pairs)
    if len(holder) < len(pairs):
        raise ValueError(f"a key twice among {short([key for key, _ in pairs])}")
    return holder


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{short(text)} where a finite number should be")
    return number


def get(holder: dict[str, Any], key: str, kind: type[T], where: str) -> T:
    """Return a field of exactly this type; a boolean is no integer here."""
    value = holder.get(key)
    if type(value) is not kind:
        got = short(value) if key in holder else "nothing"
        raise error(f"a value of type {kind.__name__}", got, where=f"{where}.{key}", kind=FileError)
    return value


def integer(holder: dict[str, Any], key: str, where: str, low: float, high: float = math.inf) -> int:
    """Return a field that is an integer in a range, both ends included."""
    value = get(holder, key, int, where)
    if not low <= value <= high:
        expected = f"an integer from {low}" + ("" if high == math.inf else f" to {high}")
        raise error(expected, short(value), where=f"{where}.{key}", kind=FileError)
    return value


def values(holder: dict[str, Any], key: str, kinds: tuple[type, ...], where: str) -> list[Any]:
    """Return a list whose elements all have exactly one of these types."""
    elements = get(holder, key, list, where)
    for index, element in enumerate(elements):
        if type(element) not in kinds:
            expected = f"a value of type {' or '.join(kind.__name__ for kind in kinds)}"
            raise error(expected, short(element), where=f"{where}.{key}[{index}]", kind=FileError)
    return elements


def each(holder: dict[str, Any], key: str, where: str, unpack: Callable[[dict[str, Any], str], T]) -> tuple[T, ...]:
    """Unpack every object of a list; `unpack` gets the object and its path for messages."""
    objects = enumerate(values(holder, key, (dict,), where))
    return tuple(unpack(content, f"{where}.{key}[{index}]") for index, content in objects)


@contextmanager
def sound(what: str, where: str) -> Iterator[None]:
    """Turn the error of a constructor into a `FileError` that says where in the file."""
    try:
        yield
    except FileError:
        raise  # it says where already
    except TinybayesError as problem:
        reason = str(problem)[:1000]  # it may quote a name, and a name may be long
        raise error(f"a valid {what}", f"an invalid one ({reason})", where=where, kind=FileError) from problem
