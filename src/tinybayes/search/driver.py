"""A running search: it chooses the next batch of settings, and stores the results.

Settings are drawn in batches of one shape, which are trained at once. They climb rungs: all are trained briefly, the
promising ones longer, the best of those longest.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.search.budget import Budget
from tinybayes.search.families import Family, Listed, Sampled, Setting, Trained, describe, family_of
from tinybayes.search.families.family import Effort
from tinybayes.search.front import finalists, fits, most_accurate, ranks
from tinybayes.search.live import Live, State
from tinybayes.search.study import Run, Store, key_of
from tinybayes.search.trials import Outcome
from tinybayes.search.views import Views
from tinybayes.search.workers import Work, Workers, gather

BATCH = 8  # settings trained at once; always as many, so that few shapes are compiled
STEPS = (500, 2000, 8000)  # mini-batches of the rungs
SHARE = 1 / 3  # of a rung's runs that are promising
COMPILING = 5.0  # seconds that a new shape takes, about
LOST = (OSError, RuntimeError, MemoryError, TinybayesError)  # a worker ended, or cannot do this: the rest goes on
RETRAINING = "retraining the front"  # a phase, by which the served page chooses its title
ENDING = 0.8  # of the time, after which the front is retrained


@dataclass(eq=False)
class Batch:
    """Settings of one shape that are carried out together."""

    settings: list[Setting]
    rung: int
    numbers: dict[str, int] = field(default_factory=dict)  # of their trials, by the key of the run; claimed ones only


@dataclass(eq=False)
class Search:
    """A running search, which tells `report` and `live` about its progress."""

    views: Views
    store: Store
    crew: Workers
    budget: Budget
    families: Sequence[Family]
    directory: Path
    seconds: float
    began: float  # on the monotonic clock
    seed: int
    live: Live
    report: Callable[[State], None] | None = None

    def __post_init__(self) -> None:
        self.sampled = [f for f in self.families if isinstance(f, Sampled)]
        settings = [s for f in self.families if isinstance(f, Listed) for s in f.settings()]
        self.listed = [s for s in settings if key_of(s, 0) not in self.store.runs]
        self.spaces = {f.name: f.space(self.views) for f in self.sampled}
        self.pace: dict[str, float] = {}  # seconds that a step of one setting takes, by shape
        self.generator = np.random.default_rng([self.seed, len(self.store.runs)])
        self.under_way: set[str] = set()
        self.failures: list[str] = []
        self.failed: set[str] = set()
        self.best: Run | None = None  # among the first `looked_at` runs
        self.looked_at = 0
        self.turn, self.begun = 0, {run.family for run in self.store.runs.values()}
        self.patience = 0.03 * self.seconds  # that a circuit may grow

    @property
    def elapsed(self) -> float:
        """The share of the time that is gone."""
        return (time.monotonic() - self.began) / max(self.seconds, 1e-9)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Give out batches until the time is up, and store their results."""
        running: list[tuple[Batch, Work]] = []
        ends = self.began + ENDING * self.seconds
        self._tell("searching")
        while not stopped():
            while len(running) < self.crew.count and time.monotonic() < ends and not stopped():
                batch = self.next_batch()
                if batch is None:
                    break
                self.under_way |= {key_of(s, batch.rung) for s in batch.settings}
                batch = self._claimed(batch)
                if not batch.settings:
                    continue
                effort = Effort(STEPS[batch.rung], self.patience, core=self.budget.core, budget=self.budget)
                running.append((batch, self.crew.submit(batch.settings, effort)))
                running = gather(running, self._finish, until=time.monotonic() + 0.01)
            if not running or time.monotonic() > ends + 0.1 * self.seconds:
                break
            running = gather(running, self._finish, until=min(ends + 0.1 * self.seconds, time.monotonic() + 0.5))
            self._tell("searching")
        for batch, _ in running:
            self._give_up(batch)

    def _claimed(self, batch: Batch) -> Batch:
        """Take the settings of a batch that no other search on the same store has."""
        free = [s for s in batch.settings if key_of(s, batch.rung) not in batch.numbers]
        claimed = self.store.claim(free, batch.rung, self.spaces.get(batch.settings[0]["family"], {})) if free else []
        taken = {key_of(s, batch.rung): n for s, n in zip(free, claimed, strict=True) if n is not None}
        numbers = batch.numbers | taken
        return Batch([s for s in batch.settings if key_of(s, batch.rung) in numbers], batch.rung, numbers)

    def next_batch(self) -> Batch | None:
        """Choose the next batch: promising settings on a higher rung, or new ones."""
        slow = [s for s in self.listed if family_of(s).slow]
        if self.listed and (len(slow) < len(self.listed) or self.elapsed > 0.2 or not self.sampled):
            first = next((s for s in self.listed if s not in slow), self.listed[0])
            few = [s for s in self.listed if s["family"] == first["family"]][: 1 if first in slow else BATCH]
            self.listed = [s for s in self.listed if s not in few]
            return Batch(few, 0)
        if not self.sampled:
            return None
        for rung in (1, 0):
            batch = self._promising(rung) if self.elapsed > (0.3, 0.5)[rung] else None
            if batch is not None:
                return batch
        return self._new() or self._promising(0) or self._promising(1)

    def _promising(self, rung: int) -> Batch | None:
        """Take the most promising settings of a rung that share a shape, and train them longer."""
        runs = [r for r in self.store.runs.values() if r.rung == rung and isinstance(family_of(r.setting), Trained)]
        if not runs:
            return None
        order = self._order(runs)
        best = [runs[i] for i in order[: max(BATCH, round(SHARE * len(runs)))]]
        waiting = [r for r in best if not self._known(r.setting, rung + 1)]
        groups: dict[str, list[Run]] = {}
        for run in waiting:
            groups.setdefault(_shape(run.setting), []).append(run)
        for name, group in groups.items():  # in the order of their best
            settings = [run.setting for run in group[:BATCH]]
            settings += self._again(settings, BATCH - len(settings))
            if self._fits(name, rung + 1):
                return Batch(settings, rung + 1)
        return None

    def _again(self, settings: list[Setting], count: int) -> list[Setting]:
        """Fill up a batch with the same settings from other seeds."""
        bases = (settings[i % len(settings)] for i in range(count))
        return [{**base, "seed": int(self.generator.integers(2**31))} for base in bases]

    def _order(self, runs: list[Run]) -> np.ndarray:
        """Order runs: those within the budget first, then by fronts, then by error."""
        over = np.array([not self.budget.allows(r.price) for r in runs])
        points = np.array([[r.error, np.log2(r.price.flash + 1), np.log2(r.price.instructions + 1)] for r in runs])
        rank = np.zeros(len(runs)) if self.budget.limited else ranks(points)  # within a budget the error counts
        loss = np.array([r.loss for r in runs])
        return np.lexsort((loss, points[:, 0], rank, over))

    def _new(self) -> Batch | None:
        """Draw new settings of the next family."""
        for _ in range(2 * len(self.sampled)):
            if not self._fits(None, 0):
                return None
            family = self.sampled[self.turn % len(self.sampled)]
            self.turn += 1
            batch = self._drawn(family)
            if batch.settings:
                batch.settings += self._again(batch.settings, BATCH - len(batch.settings))
                return batch
        return None

    def _drawn(self, family: Sampled) -> Batch:
        """Draw settings of one shape, cut down to the budget; those that cannot meet it are dropped."""
        space = self.spaces[family.name]
        first = {} if family.name in self.begun else family.first_guess(self.views, self.budget)
        self.begun.add(family.name)
        leader = self.store.ask(family.name, space, first)
        self.generator = np.random.default_rng([self.seed, leader[0]])  # no two searches draw the same
        shape = {name: leader[1][name] for name in family.shaping}
        batch = Batch([], 0)
        for number, setting in [leader] + [self.store.ask(family.name, space, shape) for _ in range(BATCH - 1)]:
            drawn = {**setting, "seed": int(self.generator.integers(2**31))}
            cut = family.fitted(drawn, self.views, self.budget)
            if cut is None:
                self.store.drop(number)
            else:
                batch.settings.append(cut)
                batch.numbers[key_of(cut, 0)] = number
        return batch

    def _fits(self, shape: str | None, rung: int) -> bool:
        """Return whether a batch would end in time, as far as the pace of its shape is known."""
        left = self.seconds * ENDING - (time.monotonic() - self.began)
        known = self.pace.get(shape) if shape is not None else None
        if known is None:
            return min(self.pace.values(), default=0.0) * STEPS[rung] * BATCH + COMPILING < left
        return known * STEPS[rung] * BATCH < left

    def _known(self, setting: Setting, rung: int) -> bool:
        key = key_of(setting, rung)
        return key in self.store.runs or key in self.under_way

    def _finish(self, batch: Batch, work: Work) -> None:
        """Save models, then store runs: in this order, so that every stored run has its model."""
        try:
            outcomes: list[Outcome] = work.result()
        except LOST as problem:
            self._give_up(batch)
            self.failures.append(f"{describe(batch.settings[0])}: {problem or type(problem).__name__}")
            self._retry(batch)
            return
        for outcome in outcomes:
            key = key_of(outcome.setting, batch.rung)
            if outcome.model is not None:
                _save(outcome, self.directory / "trials" / f"{key}.tb")
            self.store.tell(batch.numbers.pop(key), outcome, batch.rung)
        for number in batch.numbers.values():  # of settings that cannot be carried out
            self.store.drop(number)
        if isinstance(family_of(batch.settings[0]), Trained) and outcomes:
            shape = _shape(batch.settings[0])
            taken = outcomes[0].seconds
            if shape not in self.pace:  # the first time includes compiling
                taken = max(0.3 * taken, taken - COMPILING / BATCH)
            self.pace[shape] = min(taken / STEPS[batch.rung], self.pace.get(shape, float("inf")))
        self._tell("searching")

    def _retry(self, batch: Batch) -> None:
        """Put settings that nobody draws again back into the list, unless they have failed before."""
        for setting in batch.settings:
            key = key_of(setting, 0)
            if isinstance(family_of(setting), Listed) and key not in self.failed:
                self.failed.add(key)
                self.listed.append(setting)

    def _give_up(self, batch: Batch) -> None:
        self.under_way -= {key_of(s, batch.rung) for s in batch.settings}
        for number in batch.numbers.values():
            self.store.drop(number)

    def finals(self, stopped: Callable[[], bool]) -> list[tuple[Run, Outcome | None]]:
        """Retrain the models of the front on all rows but the test rows, as far as the time allows."""
        runs = list(self.store.read().values())
        if not runs:
            raise error("at least one finished run", "none", where="explore", remedy="give it more time")
        wanted = finalists(runs, self.budget)
        retrained: dict[str, Outcome] = {}
        groups: dict[tuple[str, int], list[Run]] = {}
        for run in wanted:
            groups.setdefault((_shape(run.setting), run.rung), []).append(run)
        running: list[tuple[list[Run], Work]] = []

        def finish(group: list[Run], work: Work) -> None:
            try:
                retrained.update({key_of(o.setting, group[0].rung): o for o in work.result()})
            except LOST as problem:  # the model of the search stands in
                self.failures.append(f"{group[0].family} retrained: {problem or type(problem).__name__}")

        for (_, rung), group in groups.items():
            if self.elapsed > 1 or stopped():
                break
            settings = [run.setting for run in group]
            if isinstance(family_of(settings[0]), Trained) and rung < 2:
                # As many as were compiled for, unless that takes longer.
                settings = (settings * BATCH)[: max(BATCH, len(settings))]
            effort = Effort(STEPS[rung], self.patience, True, self.budget.core, self.budget)
            running.append((group, self.crew.submit(settings, effort)))
            while len(running) >= self.crew.count and not stopped() and self.elapsed < 1.3:
                running = gather(running, finish, until=time.monotonic() + 0.5)
                self._tell(RETRAINING)
        while running and not stopped() and self.elapsed < 1.3:
            running = gather(running, finish, until=time.monotonic() + 0.5)
            self._tell(RETRAINING)
        return [(run, retrained.get(run.key)) for run in runs]

    def _tell(self, phase: str) -> None:
        if self.report is None and not self.live.due():
            return
        runs = list(self.store.runs.values())
        if len(runs) != self.looked_at:
            self.best = most_accurate([r for r in runs if fits(r, self.budget)])
            self.looked_at = len(runs)
        gone = time.monotonic() - self.began
        state = State(len(runs), gone, max(0.0, self.seconds - gone), self.best, phase)
        if self.report is not None:
            self.report(state)
        self.live.tell(state, runs)


def _shape(setting: Setting) -> str:
    return family_of(setting).shape(setting)


def _save(outcome: Outcome, path: Path) -> None:
    from tinybayes.deploy import save

    assert outcome.model is not None
    path.parent.mkdir(exist_ok=True)
    save(outcome.model, path, metadata={"setting": outcome.setting, "validation_error": outcome.error})
