"""A budget for models, from numbers or from a text such as 4kB."""

import re
from dataclasses import dataclass

from tinybayes.errors import error

UNITS = {"b": 8, "kb": 8000, "mb": 8_000_000, "kib": 8192, "mib": 8 << 20, "bit": 1, "bits": 1, "kbit": 1000}
NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"  # no more digits than a double tells apart


@dataclass(frozen=True)
class Budget:
    """Limits on the cost of the chosen model of a search; None for no limit.

    Parameters
    ----------
    bits
        Memory of the parameters.
    operations
        Operations of a prediction.
    error
        Choose the cheapest model with at most this validation error, not the most accurate one.
    """

    bits: int | None = None
    operations: int | None = None
    error: float | None = None

    @property
    def limited(self) -> bool:
        """Whether there is a limit on the price."""
        return self.bits is not None or self.operations is not None

    def allows(self, bits: int, operations: int) -> bool:
        """Return whether a price is within the limits."""
        within_bits = self.bits is None or bits <= self.bits
        return within_bits and (self.operations is None or operations <= self.operations)


def as_budget(budget: Budget | str | None) -> Budget:
    """Return a budget from itself, from a size, or from None: no limit."""
    if isinstance(budget, Budget):
        return budget
    return Budget(None if budget is None else parse_size(budget))


def parse_size(text: str, where: str = "budget") -> int:
    """Return the bits of a size such as 4kB; a number without a unit is bytes."""
    match = re.fullmatch(rf"\s*({NUMBER})\s*([a-zA-Z]*)\s*", text)
    bits = round(float(match[1]) * UNITS.get(match[2].lower() or "b", 0)) if match else 0
    if bits < 1:
        raise error("a size such as 4kB, 512B, 2KiB or 32kbit", repr(text[:40]), where=where)
    return bits
