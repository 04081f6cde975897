"""Tensors of a model file: each holds the parts of many tables one after another, packed to the bit."""

from typing import Any, NamedTuple

import numpy as np

from tinybayes.deploy.bits import pack_bits, unpack_bits
from tinybayes.deploy.files._native.fields import short
from tinybayes.errors import FileError, error

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
        """Return the next entries, as a view; `user` names in the message what needs them."""
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
