"""Hyper-parameters, defined once: name, meaning, bounds and default stand in the dataclass of the learner.

The command line, the estimators, the search spaces and the sweeps read them from there.
"""

import dataclasses
import math
import numbers
from collections.abc import Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from tinybayes.errors import error

__all__ = ["MOST_SEED", "Option", "check_options", "check_seed", "documented", "option", "options_of", "same_option"]

MOST_SEED = 2**32 - 1  # what every generator of random numbers takes
MOST_INTEGER = 2**53  # beyond, doubles skip integers, and far beyond they have none
Learner = TypeVar("Learner", bound=type)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """The properties of a hyper-parameter beside its name, type and default.

    All entries of a tuple are within the bounds. Only ``high=inf`` accepts infinity.
    """

    help: str  # one line for help texts
    low: float | None = None  # inclusive bounds
    high: float | None = None
    above: float | None = None  # exclusive bounds
    below: float | None = None
    choices: tuple[Any, ...] | None = None  # the accepted values, where they are few
    search: tuple[float, float] | None = None  # the interval from which a search draws; None: not searched
    log: bool = False  # whether a search draws the logarithm uniformly
    metavar: str | None = None  # the placeholder of the value in help texts

    def check(self, name: str, value: Any) -> None:
        """Raise an error unless the value is accepted; None means that the learner chooses."""
        if value is None:
            return
        if self.choices is not None and value not in self.choices:
            raise error(f"one of {', '.join(map(str, self.choices))}", repr(value), where=name)
        for number in value if isinstance(value, tuple) else (value,):
            real = isinstance(number, numbers.Real)
            if isinstance(number, numbers.Integral) and abs(int(number)) > MOST_INTEGER:
                got = f"one of {int(number).bit_length():,} bits"
                raise error(f"an integer up to {self._most}", got, where=name)
            if self.bounds and not (real and self._within(float(number))):
                raise error(self.bounds, number if real else repr(number), where=name)

    def _within(self, number: float) -> bool:
        low, high = (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)
        above, below = (self.above is None or number > self.above), (self.below is None or number < self.below)
        return low <= number <= high and above and below and (math.isfinite(number) or self.high == math.inf)

    @property
    def _most(self) -> str:
        return f"{MOST_INTEGER if self.high is None or math.isinf(self.high) else self.high:.10g}"

    @cached_property
    def bounds(self) -> str:
        """The bounds in words."""
        if self.low is not None and self.high is not None and math.isfinite(self.high):
            return f"{self.low:.10g} to {self.high:.10g}"
        words = ("at least", self.low), ("above", self.above), ("at most", self.high), ("below", self.below)
        return ", ".join(f"{word} {bound:g}" for word, bound in words if bound is not None and bound != math.inf)


def option(default: Any, help: str, **more: Any) -> Any:  # noqa: A002 - named as in argparse and Typer
    """Return the dataclass field of a hyper-parameter; `more` are the other fields of `Option`."""
    return dataclasses.field(default=default, metadata={"option": Option(help=help, **more)})


def same_option(learner: type, name: str, **changes: Any) -> Any:
    """Return the field of a hyper-parameter that another dataclass defines, with another default or other bounds."""
    field = next(f for f in dataclasses.fields(learner) if f.name == name)
    known = dataclasses.replace(field.metadata["option"], **{k: v for k, v in changes.items() if k != "default"})
    return dataclasses.field(default=changes.get("default", field.default), metadata={"option": known})


def options_of(learner: type) -> Mapping[str, Option]:
    """Return the hyper-parameters that a dataclass defines or inherits, by name."""
    return _options_of(learner)


@cache  # estimators build options at every fit
def _options_of(learner: Any) -> Mapping[str, Option]:
    known = {f.name: f.metadata["option"] for f in dataclasses.fields(learner) if "option" in f.metadata}
    return MappingProxyType(known)


def check_options(settings: Any) -> None:
    """Check every hyper-parameter of a dataclass instance; to be called in its ``__post_init__``."""
    for name, known in options_of(type(settings)).items():
        known.check(name, getattr(settings, name))


def check_seed(seed: Any, where: str = "seed") -> None:
    """Refuse seeds that some generator of random numbers does not take."""
    if not isinstance(seed, numbers.Integral) or not 0 <= int(seed) <= MOST_SEED:
        raise error(f"an integer from 0 to {MOST_SEED}", seed, where=where)


def documented(learner: Learner) -> Learner:
    """Add the help of every hyper-parameter to the docstring of a dataclass; a decorator."""
    lines = [f"    {name}\n        {known.help}" for name, known in options_of(learner).items()]
    text = (learner.__doc__ or "").rstrip()
    heading = "" if "Parameters\n" in text else "\n    Parameters\n    ----------"
    learner.__doc__ = "\n".join([text + ("\n" + heading if heading else ""), *lines])
    return learner
