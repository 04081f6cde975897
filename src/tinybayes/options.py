"""Hyper-parameters, defined once: name, meaning, bounds and default stand in the dataclass of the learner.

The command line, the estimators, the search spaces and the sweeps read them from there.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tinybayes.errors import error

__all__ = ["Option", "check_options", "option", "options_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of a hyper-parameter beside its name, type and default.

    Parameters
    ----------
    help
        One line for help texts.
    low, high
        Inclusive bounds of what is accepted; None for no bound.
    choices
        The accepted values, where they are few.
    search
        The interval from which a search draws; None for hyper-parameters that are not searched.
    log
        Whether a search draws the logarithm uniformly.
    metavar
        What stands for the value in help texts.
    """

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] | None = None
    search: tuple[float, float] | None = None
    log: bool = False
    metavar: str | None = None

    def check(self, name: str, value: Any) -> None:
        """Raise an error unless the value is accepted; None means that the learner chooses."""
        if value is None:
            return
        if self.choices is not None and value not in self.choices:
            raise error(f"one of {', '.join(map(str, self.choices))}", repr(value), where=name)
        if self.low is None and self.high is None:
            return
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        if not low <= value <= high:
            expected = f"{low:g} to {high:g}" if math.isfinite(low + high) else f"at least {low:g}"
            raise error(expected if math.isfinite(low) else f"at most {high:g}", value, where=name)


def option(default: Any, help: str, **more: Any) -> Any:  # noqa: A002 - named as in argparse and Typer
    """Return the dataclass field of a hyper-parameter; `more` are the other fields of `Option`."""
    return dataclasses.field(default=default, metadata={"option": Option(help=help, **more)})


def options_of(learner: type) -> Mapping[str, Option]:
    """Return the hyper-parameters that a dataclass defines or inherits, by name."""
    return {f.name: f.metadata["option"] for f in dataclasses.fields(learner) if "option" in f.metadata}


def check_options(settings: Any) -> None:
    """Check every hyper-parameter of a dataclass instance; to be called in its ``__post_init__``."""
    for name, known in options_of(type(settings)).items():
        known.check(name, getattr(settings, name))
