"""A finished run of a search, as its store keeps it."""

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from tinybayes.search.families import FAMILIES, Setting
from tinybayes.search.price import Price

FEATURES = "feature costs"  # in the meaning of a search whose features have prices


@dataclass(frozen=True)
class Run:
    """A finished run, as the store keeps it."""

    key: str
    setting: Setting
    rung: int
    error: float
    loss: float
    price: Price
    seconds: float
    history: list[list[float]]
    saved: bool
    wrong: float | None = None  # share of wrong labels, where `error` is another metric
    deviation: float | None = None  # its standard error, where it is none of a share of wrong labels

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> "Run":
        """Return a run as it was stored."""
        return cls(**entry | {"price": Price(**entry["price"])})

    @classmethod
    def stored(cls, entry: Any) -> "Run | None":
        """Return a run as it was stored; None where there is none, or it was damaged."""
        try:
            run = cls.from_dict(entry)
            figures = [
                run.seconds,
                *run.objectives[:2],
                run.loss,
                *(number for point in run.history for number in point),
            ]
            known = run.family in FAMILIES and run.key == key_of(run.setting, run.rung)
            return run if known and not any(map(math.isnan, figures)) else None
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
            return None

    @property
    def objectives(self) -> list[float]:
        """The objectives that the search minimizes: error (or another metric), flash, instructions, features."""
        features = [] if self.price.features is None else [self.price.features]
        return [self.error, float(self.price.flash), float(self.price.instructions), *features]

    @property
    def share_wrong(self) -> float:
        """The share of wrong labels on the validation rows."""
        return self.error if self.wrong is None else self.wrong

    @property
    def family(self) -> str:
        """The family of the setting."""
        return str(self.setting["family"])


def key_of(setting: Setting, rung: int) -> str:
    """Return the name of a run: the same setting trained as long has the same name."""
    text = json.dumps([setting, rung], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
