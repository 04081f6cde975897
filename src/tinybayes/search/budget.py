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
        Choose the cheapest model with at most this validation error, from 0 to 1, not the most accurate one.
    """

    bits: int | None = None
    operations: int | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        for name in ("bits", "operations"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise error("at least 1", limit, where=f"budget, {name}")
        check_error(self.error)

    @property
    def limited(self) -> bool:
        """Whether there is a limit on the price."""
        return self.bits is not None or self.operations is not None

    def allows(self, bits: int, operations: int) -> bool:
        """Return whether a price is within the limits."""
        return self.excess(bits, operations) <= 1

    def excess(self, bits: int, operations: int) -> float:
        """Return by which factor a price exceeds the limits, in the worse of them; 1 within them."""
        prices = ((bits, self.bits), (operations, self.operations))
        return max([1.0, *(price / limit for price, limit in prices if limit is not None)])


def check_error(share: float | None, where: str = "budget") -> None:
    """Refuse an error that is not a share of the rows."""
    if share is not None and not 0 <= share <= 1:
        remedy = f"{share:g} % is {share / 100:g}" if 1 < share <= 100 else ""
        raise error("an error from 0 to 1, the share of wrong labels", f"{share:g}", where=where, remedy=remedy)


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
