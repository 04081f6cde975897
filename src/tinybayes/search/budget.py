"""A budget for models, from numbers or from a text such as 4kB."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinybayes.deploy.price import find_core
from tinybayes.errors import error
from tinybayes.search.measure import ERROR, Measure

if TYPE_CHECKING:
    from tinybayes.search.price import Price

UNITS = {"b": 8, "kb": 8000, "mb": 8_000_000, "kib": 8192, "mib": 8 << 20, "bit": 1, "bits": 1, "kbit": 1000}
LATENCIES = {"us": 1.0, "ms": 1e3, "s": 1e6}
CLOCKS = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "": 1.0}
NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"  # no more digits than a double tells apart
# Code, stack and time are estimates, 95 % of which are about that close (docs/price.md). They count so much more
# against a limit, so that a program that was priced within it is measured within it; tables are exact.
ALLOWANCE = 1.1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on the cost of the chosen model of a search; None for no limit.

    Parameters
    ----------
    flash
        Bytes of the whole program from raw values to a label: parameters, cut points, code, and the code for missing
        values.
    ram
        Bytes: static variables and stack.
    microseconds
        Time of a prediction.
    core
        The core that the program runs on; see `tinybayes.model_cost`.
    clock
        Its frequency in Hz; None for the usual one.
    bits
        Memory of the parameters alone, the price of the papers.
    operations
        Operations of a prediction, as the papers count them.
    error
        Choose the cheapest model with at most this validation error, from 0 to 1, not the most accurate one. Where
        the goal of a search is another metric: with at most this value of it.
    features
        What the columns cost that a model reads, in a search whose features have prices.

    Notes
    -----
    Bytes of code, stack and time are estimated, and count 10 % more than estimated against a limit. Tables are exact.
    """

    flash: int | None = None
    ram: int | None = None
    microseconds: float | None = None
    core: str = "cortex-m0+"
    clock: float | None = None
    bits: int | None = None
    operations: int | None = None
    error: float | None = None
    features: float | None = None

    def __post_init__(self) -> None:
        for name in ("flash", "ram", "bits", "operations"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 1:
                raise error("at least 1", limit, where=f"budget, {name}")
        for name, unit in (("microseconds", "time"), ("clock", "frequency in Hz")):
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise error(f"a positive {unit}", limit, where=f"budget, {name}")
        if self.features is not None and not 0 <= self.features < float("inf"):
            raise error("a cost of at least 0", self.features, where="budget, features")
        object.__setattr__(self, "core", find_core(self.core))
        if self.error is not None and not self.error >= 0:
            raise error("an error of at least 0", self.error, where="budget, error")

    @property
    def of_program(self) -> bool:
        """Whether there is a limit on the program."""
        return any(limit is not None for limit in (self.flash, self.ram, self.microseconds))

    @property
    def limited(self) -> bool:
        """Whether there is a limit on the price."""
        return self.of_program or self.bits is not None or self.operations is not None

    def allows(self, price: "Price") -> bool:
        """Return whether a price is within the limits."""
        return self.excess(price) <= 1

    def excess(self, price: "Price") -> float:
        """Return by which factor a price exceeds the limits, in the worst of them; 1 within them."""
        prices = (
            (price.tables + ALLOWANCE * (price.flash - price.tables), self.flash),
            (price.ram + ALLOWANCE * price.stack, self.ram),
            (ALLOWANCE * price.microseconds(self.clock), self.microseconds),
            (price.bits, self.bits),
            (price.operations, self.operations),
        )
        factors = [taken / limit for taken, limit in prices if limit is not None]
        if self.features is not None and (price.features or 0.0) > self.features:
            factors.append(1 + (price.features or 0.0) / max(self.features, 1e-9))
        return max([1.0, *factors])


def check_error(value: float | None, measure: Measure = ERROR, where: str = "budget") -> None:
    """Refuse a value that the metric of a search cannot have."""
    metric = measure.metric
    if value is None or 0 <= value <= metric.most:
        return
    remedy = f"{value:g} % is {value / 100:g}" if 1 < value <= 100 and metric.most == 1 else ""
    expected = f"{metric.title} from 0 to {metric.most:g}, {metric.help}"
    raise error(expected, f"{value:g}", where=where, remedy=remedy)


def as_budget(budget: Budget | str | None) -> Budget:
    """Return a budget from itself, from a size of flash, or from None: no limit."""
    if isinstance(budget, Budget):
        return budget
    return Budget(flash=None if budget is None else parse_bytes(budget))


def parse_size(text: str, where: str = "budget") -> int:
    """Return the bits of a size such as 4kB; a number without a unit is bytes."""
    bits = round(_measured(text, UNITS | {"": 8}))
    if bits < 1:
        raise error("a size such as 4kB, 512B, 2KiB or 32kbit", repr(text[:40]), where=where)
    return bits


def parse_bytes(text: str, where: str = "budget") -> int:
    """Return the whole bytes of a size such as 4kB."""
    size = parse_size(text, where) // 8
    if size < 1:
        raise error("a size of at least one byte", repr(text[:40]), where=where)
    return size


def parse_latency(text: str, where: str = "latency") -> float:
    """Return the microseconds of a time such as 5ms."""
    time = _measured(text, LATENCIES)
    if not time > 0:
        raise error("a time such as 300us, 5ms or 0.1s", repr(text[:40]), where=where)
    return time


def parse_clock(text: str, where: str = "clock") -> float:
    """Return the Hz of a frequency such as 48MHz; a number without a unit is Hz."""
    frequency = _measured(text, CLOCKS)
    if not frequency > 0:
        raise error("a frequency such as 48MHz, 32768Hz or 500kHz", repr(text[:40]), where=where)
    return frequency


def _measured(text: str, units: dict[str, float] | dict[str, int]) -> float:
    """Return a number times the worth of its unit; 0 where the text is none."""
    match = re.fullmatch(rf"\s*({NUMBER})\s*([a-zA-Z]*)\s*", text)
    return float(match[1]) * units.get(match[2].lower(), 0) if match else 0.0
