"""The time of a search: which share of it is gone, and how long its runs take; or a count of trials in its place."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tinybayes.search.families import Sampled, Setting, Trained, family_of
from tinybayes.search.runs import Run

BATCH = 8  # settings trained at once, of slow ones 4, 2 or 1: few numbers, so that few shapes are compiled
STEPS = (500, 2000, 8000, 32000)  # mini-batches of the rungs
COMPILING = 2.5  # seconds that a new shape takes, about
# Shares of the time: no batch begins, those that run are given up, the check ends, and all retraining.
ENDING, LATE, CHECKED, LONGEST = 0.63, 0.68, 0.83, 0.96
AHEAD = 4  # batches under way where trials are counted
USUAL, QUICK = 1.0, 0.05  # seconds that a setting counts as where trials are counted: 500 steps, and without gradient


@dataclass(eq=False)
class Clock:
    """The time of a search, and how long a step of a setting takes, by shape."""

    seconds: float
    began: float  # on the monotonic clock
    pace: dict[str, float] = field(default_factory=dict)
    ending: float = ENDING  # the share of the time after which no batch begins

    @property
    def elapsed(self) -> float:
        """The share of the time that is gone."""
        return (time.monotonic() - self.began) / max(self.seconds, 1e-9)

    @property
    def in_flight(self) -> int | None:
        """How many batches are under way at most; None for one for each worker."""
        return None

    def begin(self, settings: int) -> None:
        """Take down that settings begin."""

    def allowed(self) -> float:
        """Return how many settings may begin."""
        return math.inf

    def spent(self, rung: int, trained: bool, seconds: float, settings: int) -> float:
        """Return what settings took that were carried out in so many seconds."""
        return seconds

    def left(self, share: float) -> float:
        """Return the seconds until a share of the time is gone."""
        return (share - self.elapsed) * self.seconds

    def learn(self, shape: str, rung: int, seconds: float) -> None:
        """Take down how long a setting of a shape took on a rung; the first time includes compiling."""
        if shape not in self.pace:
            seconds = max(0.3 * seconds, seconds - COMPILING / BATCH)
        self.pace[shape] = min(seconds / STEPS[rung], self.pace.get(shape, float("inf")))

    def again(self, runs: Sequence[Run], times: int = 1) -> float:
        """Return about how long it takes to carry out runs of one shape again, so many times, on other rows."""
        return times * sum(map(self._seconds, runs)) + compiling(runs[0])

    def _seconds(self, run: Run) -> float:
        family = family_of(run.setting)
        pace = self.pace.get(shape_of(run.setting)) if isinstance(family, Trained) else None
        if pace is not None:
            return pace * STEPS[run.rung]
        alone = isinstance(family, Sampled) and not isinstance(family, Trained)  # a batch was one run of the learner
        return run.seconds * (BATCH if alone else 1)


@dataclass(eq=False)
class Count(Clock):
    """A count of trials in the place of the time: what a search does depends on nothing else.

    Batches are given out knowing the results of all but the last few, in the order in which they were given out,
    whatever the number of workers and their speed. There is no limit of time.
    """

    trials: int = 1
    begun: int = 0

    @property
    def elapsed(self) -> float:
        """The share of the trials that have begun, in the share of the time that a search may have; never late."""
        return self.ending * self.begun / self.trials if self.begun < self.trials else self.ending + 1e-6

    @property
    def in_flight(self) -> int | None:
        """The same number of batches for any number of workers."""
        return AHEAD

    def begin(self, settings: int) -> None:
        """Count settings."""
        self.begun += settings

    def allowed(self) -> float:
        """Return how many settings may begin."""
        return self.trials - self.begun

    def spent(self, rung: int, trained: bool, seconds: float, settings: int) -> float:
        """Return what settings usually take, in proportion to their steps."""
        return settings * (USUAL * STEPS[rung] / STEPS[0] if trained else QUICK)

    def left(self, share: float) -> float:
        """Return that there is no end."""
        return math.inf

    def learn(self, shape: str, rung: int, seconds: float) -> None:
        """Forget how long it took."""


def compiling(run: Run) -> float:
    """Return how long it takes to compile a run for other numbers of rows or settings."""
    return COMPILING if isinstance(family_of(run.setting), Trained) else 0.0


def shape_of(setting: Setting) -> str:
    """Return what settings must share to be carried out together."""
    return family_of(setting).shape(setting)


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that can be trained together, in the order of the first of each group."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((shape_of(run.setting), run.rung), []).append(run)
    return list(groups.values())
