"""A running search: it gives out batches of settings to the workers, and stores their results.

What comes next is the business of the schedule. In the end the best runs are repeated on other splits of the rows, so
that luck does not choose, and the front is retrained (`tinybayes.search.repeat`). The search goes on as long as these
leave it the time.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinybayes.errors import FileError, TinybayesError, warn
from tinybayes.files import made_directory
from tinybayes.search.budget import Budget
from tinybayes.search.checks import Score, doubtful
from tinybayes.search.clock import CHECKED, ENDING, LATE, LONGEST, STEPS, Clock, Count, grouped
from tinybayes.search.families import Family, Trained, describe, family_of
from tinybayes.search.families.family import Effort
from tinybayes.search.front import finalists, fits, most_accurate
from tinybayes.search.lessons import Teaching, check_lesson
from tinybayes.search.live import Live, State
from tinybayes.search.runs import Run, key_of
from tinybayes.search.schedule import Batch, Schedule
from tinybayes.search.trials import Outcome
from tinybayes.search.views import Views
from tinybayes.search.workers import PAUSE, Work, Workers, gather

if TYPE_CHECKING:
    from tinybayes.search.study import Store

LOST = (OSError, RuntimeError, MemoryError, TinybayesError)  # a worker ended, or cannot do this: the rest goes on
TEACHING, LEAST_TO_TEACH = 0.12, 45.0  # the share of the time that a teacher learns, and seconds below which none does
WORSE = 0.002  # of the error of a teacher above the least one so far, at most
FEW = 1000  # validation rows, below which the best runs are checked on other splits
LONG = 1e6  # seconds that a circuit may grow where trials are counted
SURE = 1.5  # times the estimated time of the check and of retraining is kept for them


@dataclass(eq=False)
class Search:
    """A running search, which tells `report` and `live` about its progress."""

    views: Views
    store: "Store"
    crew: Workers
    budget: Budget
    families: Sequence[Family]
    directory: Path
    seconds: float
    began: float  # on the monotonic clock
    seed: int
    live: Live
    report: Callable[[State], None] | None = None
    trials: int | None = None  # counted in the place of the time

    def __post_init__(self) -> None:
        self.clock = Clock(self.seconds, self.began)
        if self.trials is not None:
            self.clock = Count(self.seconds, self.began, trials=self.trials)
        self.finished = 0  # batches
        self.cut: list[str] = []  # what the time did not suffice for
        self.schedule = Schedule(self.views, self.store, self.budget, self.families, self.clock, self.seed)
        self.failures: list[str] = []
        self.scores: dict[str, Score] = {}  # of runs that were checked
        self.teacher: Work | None = None  # while it learns
        self.running: list[tuple[Batch, Work]] = []
        self.best: Run | None = None  # among the first `looked_at` runs
        self.looked_at = 0

    @property
    def checks(self) -> bool:
        """Tell whether the best runs are repeated on other splits of the rows."""
        return self.budget.error is None and len(self.views.valid) < FEW

    def run(self, stopped: Callable[[], bool]) -> None:
        """Give out batches until the time is up, and store their results.

        One batch is finished in any case: a search that has found nothing is of no use.
        """
        self.tell("searching")
        self._begin_teaching()
        tried = -1
        while not stopped():
            self._end_teaching()
            self.clock.ending = self._ending()
            if self.trials is None or self.finished != tried:  # asked twice, the schedule would go on
                tried = self.finished
                self._give_out(stopped)
            learning = self.teacher is not None and self.clock.elapsed < self.clock.ending
            if not (self.running or learning) or (self.clock.elapsed > self._late() and self.store.runs):
                break
            if not self.running:
                time.sleep(PAUSE)
            self.running = self.gather(self.running, self._finish, 0.2)
            self.tell("searching")
        if self.running:
            self.cut.append(f"{sum(len(batch.settings) for batch, _ in self.running)} settings were stopped early")
        for batch, _ in self.running:
            self.schedule.give_up(batch)
        self.running = []

    def gather(self, running: list[Any], finish: Callable[[Any, Work], None], seconds: float) -> list[Any]:
        """Wait a little for work to be done; where trials are counted, take it in the order it was given out."""
        return gather(running, finish, until=time.monotonic() + seconds, in_order=self.trials is not None)

    @property
    def at_once(self) -> int:
        """How many batches are under way at most."""
        return self.clock.in_flight or self.crew.count

    def _give_out(self, stopped: Callable[[], bool]) -> None:
        """Give every worker that is free a batch."""
        teaching = int(self.teacher is not None)
        while len(self.running) + teaching < self.at_once and not stopped():
            found = self.store.runs or self.failures or self.running
            if (self.clock.elapsed > self.clock.ending and found) or self.clock.allowed() < 1:
                break
            batch = self.schedule.next_batch()
            if batch is None:
                break
            batch = self.schedule.begin(self.schedule.shortened(batch))
            if batch.settings:
                effort = self.effort(batch.rung, self._late(batch))
                self.running.append((batch, self.crew.submit(batch.settings, effort)))
                if self.trials is None:
                    self.running = self.gather(self.running, self._finish, 0.01)

    def _ending(self) -> float:
        """Return the share of the time after which no batch begins: later where the check and retraining are short."""
        least = ENDING + (0.0 if self.checks else CHECKED - LATE)
        if self.trials is not None:
            return least
        runs = list(self.store.runs.values())
        if not runs or self.clock.elapsed < least - 0.1:
            return least
        close = grouped(doubtful(runs, self.budget, len(self.views.valid))) if self.checks else []
        check = self._together([self.clock.again(group, len(self.views.splits) - 1) for group in close])
        final = self._together([self.clock.again(group) for group in grouped(finalists(runs, self.budget))])
        kept = SURE * (check + final) / self.seconds
        return max(least, LONGEST - kept - (LATE - ENDING))

    def _together(self, jobs: Sequence[float]) -> float:
        """Return in how many seconds the workers carry out jobs, at most."""
        count = min(self.crew.count, max(1, len(jobs)))
        return sum(jobs) / count + (1 - 1 / count) * max(jobs, default=0.0)

    def _late(self, batch: Batch | None = None) -> float:
        """Return the share of the time after which running batches are given up, and a new `batch`.

        The first results of families that are trained by gradient are worth more than a check.
        """
        late = self.clock.ending + LATE - ENDING
        batches = [batch for batch, _ in self.running] if batch is None else [batch]
        if late < CHECKED and any(batch.trained for batch in batches):
            runs = (run for run in self.store.runs.values() if fits(run, self.budget))
            if not any(isinstance(family_of(run.setting), Trained) for run in runs):
                return CHECKED
        return late

    def _begin_teaching(self) -> None:
        """Let a worker train a teacher, unless there is one from before, or too little time.

        There is none where models are checked on other splits: it would have seen the rows of these, and those who
        learn from it would seem better than they are.
        """
        path = self.directory / "lesson.safetensors"
        if self.checks or self.trials is not None or not any(isinstance(f, Trained) for f in self.families):
            return  # a teacher learns for a time
        if os.path.lexists(path):
            try:
                check_lesson(str(path), self.views)
                self.schedule.lesson = str(path)
                return
            except FileError as problem:
                warn(str(problem))
                with suppress(OSError):  # if it cannot be removed, the new one is renamed to it
                    path.unlink()
        if self.seconds >= LEAST_TO_TEACH:
            self.teacher = self.crew.teach(path, TEACHING * self.seconds, self.seed)

    def _end_teaching(self) -> None:
        """Use the lesson of a teacher that has learned, unless it is worse than what there is."""
        if self.teacher is None or not self.teacher.done():
            return
        try:
            said: Teaching = self.teacher.result()
            if said.error <= min((r.error for r in self.store.runs.values()), default=float("inf")) + WORSE:
                self.schedule.lesson = said.path
        except LOST as problem:
            self.failures.append(f"teacher: {problem or type(problem).__name__}")
        self.teacher = None

    def effort(self, rung: int, end: float) -> Effort:
        """Say how settings of a rung are trained, and when, as a share of the time, at the latest."""
        deadline = time.time() + self.clock.left(end) if self.store.runs else math.inf
        patience = 0.03 * self.seconds if self.trials is None else LONG  # that a circuit may grow
        effort = Effort(STEPS[rung], patience, core=self.budget.core, budget=self.budget, deadline=deadline)
        return effort._replace(lesson=self.schedule.lesson)

    def _finish(self, batch: Batch, work: Work) -> None:
        """Save models, then store runs: in this order, so that every stored run has its model."""
        self.finished += 1
        try:
            outcomes: list[Outcome] = work.result()
        except LOST as problem:
            self.schedule.give_up(batch)
            self.failures.append(f"{describe(batch.settings[0])}: {problem or type(problem).__name__}")
            self.schedule.retry(batch)
            return
        self.schedule.end(batch, outcomes)
        for outcome in outcomes:
            key = key_of(outcome.setting, batch.rung)
            if outcome.model is not None:
                _save(outcome, self.directory / "trials" / f"{key}.tb")
            self.store.tell(batch.numbers.pop(key), outcome, batch.rung)
        for number in batch.numbers.values():  # of settings that cannot be carried out
            self.store.drop(number)
        self.tell("searching")

    def tell(self, phase: str) -> None:
        """Report the progress, as often as anybody wants to know."""
        if self.report is None and not self.live.due():
            return
        runs = list(self.store.runs.values())
        if len(runs) != self.looked_at:
            self.best = most_accurate([r for r in runs if fits(r, self.budget)])
            self.looked_at = len(runs)
        gone = time.monotonic() - self.began
        left = max(0.0, self.seconds - gone)
        if isinstance(self.clock, Count):  # as much per trial as before
            left = gone * self.clock.allowed() / max(1, self.clock.begun)
        state = State(len(runs), gone, left, self.best, phase)
        if self.report is not None:
            self.report(state)
        self.live.tell(state, runs)


def _save(outcome: Outcome, path: Path) -> None:
    from tinybayes.deploy import save

    assert outcome.model is not None
    made_directory(path.parent)
    save(outcome.model, path, metadata={"setting": outcome.setting, "validation_error": outcome.error})
