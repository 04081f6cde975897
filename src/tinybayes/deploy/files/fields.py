"""The parts of a native model file: strict JSON, and tensors packed to the bit; an error names the wrong one."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from reprlib import repr as short
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tinybayes.deploy.bits import pack_bits, unpack_bits
from tinybayes.errors import FileError, TinybayesError, error

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
T = TypeVar("T")
DEEPEST = 64


def dumps(value: object, where: str) -> str:
    """Write JSON that reads back as the same value; the same value gives the same text."""
    try:
        if is_deep(value):
            raise TypeError(f"lists or objects in each other, more than {DEEPEST} deep")
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
    if is_deep(value):
        raise error(f"lists and objects up to {DEEPEST} deep", "deeper ones", where=where, kind=FileError)
    if not isinstance(value, dict):
        raise error("a JSON object", short(value), where=where, kind=FileError)
    return value


def is_deep(value: object) -> bool:
    """Return whether lists and objects lie in each other deeper than code that follows them can go."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[object] = []
        for one in level:
            inner.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ())
        level = [one for one in inner if isinstance(one, dict | list | tuple)]
        if not level:
            return False
    return True


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


INTEGERS = ("int8", "int16", "int32")
_SHORT_NAMES = {"float64": "F64", "float32": "F32", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8"}


class Storage(NamedTuple):
    """A tensor's name, the types it may have from narrow to wide, and the bits of a code where those are packed."""

    name: str
    dtypes: tuple[str, ...]
    bits: int = 0

    def pack(self, parts: list[np.ndarray]) -> np.ndarray:
        """Join the parts into the tensor that is stored."""
        joined = np.concatenate(parts)
        if self.bits:
            return pack_bits(joined, self.bits)
        for dtype in self.dtypes[:-1]:
            if np.iinfo(dtype).min <= joined.min() and joined.max() <= np.iinfo(dtype).max:
                return joined.astype(dtype)
        return joined.astype(self.dtypes[-1], copy=False)


def pack_parts(parts: dict[Storage, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the tensors of a file by their names; there are no empty ones."""
    return {storage.name: storage.pack(some) for storage, some in parts.items() if any(map(len, some))}


class Tensors:
    """The tensors of a file, each read once from its start to its end; `entries` are those of safetensors."""

    def __init__(self, entries: list[tuple[str, dict[str, Any]]], path: str) -> None:
        self.path = path
        self._packed = dict(entries)
        self._whole: dict[Storage, np.ndarray] = {}
        self._used: dict[Storage, int] = {}

    def left(self, storage: Storage) -> int:
        """Return how many entries have not been taken yet."""
        if storage.name not in self._packed:
            return 0
        if storage not in self._whole:
            self._whole[storage] = self._open(storage)
            self._used[storage] = 0
        return len(self._whole[storage]) - self._used[storage]

    def take(self, storage: Storage, count: int, user: str) -> np.ndarray:
        """Return the next entries, as a view; `user` names their owner in the message."""
        left = self.left(storage)
        if count > left:
            expected = f"{short(count)} more entries for {user.removeprefix(self.path + ', ')}"
            raise error(expected, left, where=self._where(storage.name), kind=FileError)
        if count == 0:
            return np.empty(0, storage.dtypes[0])
        start = self._used[storage]
        self._used[storage] = start + count
        return self._whole[storage][start : start + count]

    def finish(self) -> None:
        """Raise unless every tensor was used up."""
        sizes = {s.name: -(-used * s.bits // 8) if s.bits else used for s, used in self._used.items()}
        for name, entry in self._packed.items():
            if name not in sizes or entry["shape"] != [sizes[name]]:
                expected = f"{sizes[name]} entries" if name in sizes else "no such tensor"
                got = f"the shape {short(entry['shape'])}"
                raise error(expected, got, where=self._where(name), kind=FileError)

    def _open(self, storage: Storage) -> np.ndarray:
        entry = self._packed[storage.name]
        dtypes = {_SHORT_NAMES[dtype]: dtype for dtype in storage.dtypes}
        if entry["dtype"] not in dtypes or len(entry["shape"]) != 1:
            expected = f"one axis of {' or '.join(dtypes)}"
            got = f"{entry['dtype']} with the shape {short(entry['shape'])}"
            raise error(expected, got, where=self._where(storage.name), kind=FileError)
        dtype = np.dtype(dtypes[entry["dtype"]])
        array = np.frombuffer(entry["data"], dtype.newbyteorder("<")).astype(dtype, copy=False)
        return unpack_bits(array, storage.bits) if storage.bits else array

    def _where(self, name: str) -> str:
        return f"{self.path}, tensor {short(name)}"
