"""How a log-parameter is stored: the bits of an entry, and the way to and from its code.

A format never changes the type of a model, only the storage of its tables: a quantised network is the
same `BayesNet` in `Fixed`, a network with tied parameters the same in `Codebook`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinybayes.errors import error

LARGEST_LEVEL = 1e38  # of a codebook


def singles(values: np.ndarray) -> np.ndarray:
    """Return log-parameters as 32-bit floats hold them, which levels are; refuse those that are too large."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(values, dtype=np.float64).astype(np.float32).astype(np.float64)
    far = np.isfinite(values) & ~(np.abs(rounded) <= LARGEST_LEVEL)
    if far.any():
        remedy = "give its states a probability of zero, or scale the model"
        raise error(
            f"log-parameters of magnitudes up to {LARGEST_LEVEL:g}",
            f"{np.asarray(values)[far][0]:g}",
            where="model",
            remedy=remedy,
        )
    return rounded


@dataclass(frozen=True)
class Float:
    """IEEE floating point; 32 bits unless asked otherwise."""

    bits: int = 32
    shared_bits: ClassVar[int] = 0  # stored once for a model, beside its entries

    def __post_init__(self) -> None:
        if self.bits not in (32, 64):
            raise error("32 or 64 bits", self.bits, where="Float")

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of log-parameters."""
        with np.errstate(over="ignore"):  # numbers below the range of float32 become minus infinity
            return np.ascontiguousarray(values, dtype=np.float32 if self.bits == 32 else np.float64)

    def checked(self, codes: np.ndarray) -> np.ndarray:
        """Return codes as they are stored; raise when they do not fit this format."""
        if codes.dtype.kind != "f" or not (codes < np.inf).all():
            raise error("log-parameters below infinity", f"{codes.dtype} with others", where=str(self))
        return self.encode(codes)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the log-parameters that the codes stand for, in double precision."""
        return np.asarray(codes, dtype=np.float64)

    def __str__(self) -> str:
        return f"float{self.bits}"


@dataclass(frozen=True)
class Fixed:
    """Unsigned fixed point for values that are not positive, eq. 10-11 of resource_efficient_bn_classifiers.

    A code ``k`` stands for ``-k / 2**fraction``; `fraction` may be negative, as long as the sum of both is at
    least one bit.
    """

    integer: int
    fraction: int
    shared_bits: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if not all(isinstance(part, int | np.integer) for part in (self.integer, self.fraction)):
            raise error("integer numbers of bits", (self.integer, self.fraction), where="Fixed")
        if not (1 <= self.integer + self.fraction <= 32 and abs(self.fraction) <= 1000):
            expected, where = "1 to 32 bits in all and a fraction within 1000", f"Fixed{(self.integer, self.fraction)}"
            raise error(expected, self.integer + self.fraction, where=where)

    @property
    def bits(self) -> int:
        """Bits of an entry."""
        return self.integer + self.fraction

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Round half to even, then clip to the range (eq. 11)."""
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(-np.asarray(values, dtype=np.float64), self.fraction))
        return np.clip(scaled, 0, 2**self.bits - 1).astype(_unsigned(self.bits))

    def checked(self, codes: np.ndarray) -> np.ndarray:
        """Return codes as they are stored; raise when they do not fit this format."""
        return _checked_integers(codes, 2**self.bits, self.bits, str(self))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the log-parameters that the codes stand for (eq. 10)."""
        return np.asarray(-np.ldexp(np.asarray(codes, dtype=np.float64), -self.fraction))

    def __str__(self) -> str:
        return f"fixed{self.integer}.{self.fraction}"


@dataclass(frozen=True)
class Codebook:
    """A list of levels shared by all entries; an entry stores the index of its level."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        values = tuple(float(value) for value in self.values)
        object.__setattr__(self, "values", values)
        if not values or any(not v < math.inf for v in values) or list(values) != sorted(set(values)):
            raise error("increasing levels below infinity", list(values)[:10], where="Codebook")
        if any(LARGEST_LEVEL < abs(v) < math.inf for v in values):  # a level is a float32, or minus infinity
            raise error(f"levels of magnitudes up to {LARGEST_LEVEL:g}", list(values)[:10], where="Codebook")

    @property
    def bits(self) -> int:
        """Bits of an entry: enough to tell the levels apart."""
        return (len(self.values) - 1).bit_length()

    @property
    def shared_bits(self) -> int:
        """Bits of the levels themselves, one float32 each, stored once for a model."""
        return 32 * len(self.values)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return the index of the nearest level; the lower one where two are equally near."""
        levels = np.array(self.values)
        with np.errstate(invalid="ignore"):
            middles = (levels[:-1] + levels[1:]) / 2
        return np.searchsorted(middles, np.asarray(values, dtype=np.float64)).astype(_unsigned(self.bits))

    def checked(self, codes: np.ndarray) -> np.ndarray:
        """Return codes as they are stored; raise when they do not fit this format."""
        return _checked_integers(codes, len(self.values), self.bits, str(self))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the log-parameters that the codes stand for."""
        return np.array(self.values)[codes]

    def __str__(self) -> str:
        return f"codebook{len(self.values)}"


NumberFormat = Float | Fixed | Codebook


def _unsigned(bits: int) -> type[np.unsignedinteger]:
    return np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32


def _checked_integers(codes: np.ndarray, limit: int, bits: int, name: str) -> np.ndarray:
    if codes.dtype.kind not in "iu" or int(codes.min()) < 0 or int(codes.max()) >= limit:
        raise error(f"codes from 0 to {limit - 1}", f"{codes.dtype} with others", where=name)
    return np.ascontiguousarray(codes, dtype=_unsigned(bits))
