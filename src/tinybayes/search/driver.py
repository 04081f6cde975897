"""A running search: it chooses the next batch of settings, and stores the results.

Settings are drawn in batches of one shape, which are trained at once. They climb rungs: all are trained briefly, the
promising ones longer, the best of those longest, a few at a time. Under a budget, every other batch of a family takes
as much of it as it can, and families that are far behind get fewer turns. Families that are not trained by gradient
take milliseconds where others take seconds: while they are ahead, a share of the time is theirs. In the end the best
runs are repeated on other splits of the rows, so that luck does not choose, and the front is retrained.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tinybayes.errors import TinybayesError, error
from tinybayes.files import made_directory
from tinybayes.search.budget import Budget
from tinybayes.search.checks import Score, checked, compared, doubtful
from tinybayes.search.columns import subset
from tinybayes.search.families import Family, Listed, Sampled, Setting, Trained, describe, family_of
from tinybayes.search.families.family import PRICED, Effort
from tinybayes.search.front import finalists, fits, most_accurate, ranks
from tinybayes.search.lessons import Teaching
from tinybayes.search.live import Live, State
from tinybayes.search.study import Run, Store, key_of
from tinybayes.search.trials import Outcome
from tinybayes.search.views import Views
from tinybayes.search.workers import PAUSE, Work, Workers, gather

BATCH = 8  # settings trained at once, of slow ones 4, 2 or 1: few numbers, so that few shapes are compiled
STEPS = (500, 2000, 8000, 32000)  # mini-batches of the rungs
AT_ONCE = (BATCH, BATCH, BATCH, 2)  # settings of a batch on each rung
CLIMBING = (0.25, 0.4, 0.5)  # of the time, after which settings leave each rung
SHARE = 1 / 3  # of a rung's runs that are promising
COMPILING = 2.5  # seconds that a new shape takes, about
LOST = (OSError, RuntimeError, MemoryError, TinybayesError)  # a worker ended, or cannot do this: the rest goes on
CHECKING = "checking the best on other rows"  # phases, by which the served page chooses its title
RETRAINING = "retraining the front"
# Shares of the time: no batch begins, those that run are given up, the check ends, and all retraining.
ENDING, LATE, CHECKED, LONGEST = 0.63, 0.68, 0.83, 0.96
TEACHING, LEAST_TO_TEACH = 0.12, 45.0  # the share of the time that a teacher learns, and seconds below which none does
NOISE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # of the inputs, that is tried on higher rungs
FEW = 1000  # validation rows, below which the best runs are checked on other splits
SLICE = 0.12  # of the time, that a batch may take, unless it has one setting only
QUICK = 0.5  # of the time of families that are trained by gradient, that the others get while they are ahead
BEHIND = 1.5  # times the least error, above which a family is far behind
WORSE = 0.002  # of the error of a teacher above the least one so far, at most


@dataclass(eq=False)
class Batch:
    """Settings of one shape that are carried out together."""

    settings: list[Setting]
    rung: int
    numbers: dict[str, int] = field(default_factory=dict)  # of their trials, by the key of the run; claimed ones only
    began: float = field(default_factory=time.monotonic)

    @property
    def family(self) -> str:
        """The family of all settings."""
        return str(self.settings[0]["family"])


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
        quick = [f for f in self.families if isinstance(f, Listed)]
        listed = [(f, s) for f in quick for s in f.settings_for(self.views, self.budget)]
        settings = [s for f, s in listed if f.affordable(s, self.views, self.budget)]
        self.listed = [s for s in settings if key_of(s, 0) not in self.store.runs]
        self.kinds = {f.name: f for f in self.sampled}
        self.spaces = {f.name: f.whole_space(self.views) for f in self.sampled}
        self.pace: dict[str, float] = {}  # seconds that a step of one setting takes, by shape
        self.generator = np.random.default_rng([self.seed, len(self.store.runs)])
        self.under_way: set[str] = set()
        self.failures: list[str] = []
        self.failed: set[str] = set()
        self.best: Run | None = None  # among the first `looked_at` runs
        self.looked_at = 0
        self.turn = dict.fromkeys((f.name for f in self.sampled), 0)  # batches that each family was asked for
        self.spent = dict.fromkeys((f.name for f in self.families), 0.0)  # seconds of a worker, by family
        self.guesses = {f.name: self._unknown(f.opening(self.views, self.budget), f.name) for f in self.sampled}
        self.patience = 0.03 * self.seconds  # that a circuit may grow
        self.scores: dict[str, Score] = {}  # of runs that were checked
        self.lesson: str | None = None  # the file of a lesson
        self.teacher: Work | None = None  # while it learns
        self.running: list[tuple[Batch, Work]] = []

    @property
    def ending(self) -> float:
        """The share of the time after which no batch begins: later where the best runs need no check."""
        return ENDING + (0.0 if self._checks else CHECKED - LATE)

    @property
    def _checks(self) -> bool:
        return self.budget.error is None and len(self.views.valid) < FEW

    @property
    def elapsed(self) -> float:
        """The share of the time that is gone."""
        return (time.monotonic() - self.began) / max(self.seconds, 1e-9)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Give out batches until the time is up, and store their results.

        One batch is finished in any case: a search that has found nothing is of no use.
        """
        ends, late = self.began + self.ending * self.seconds, self.ending + LATE - ENDING
        self._tell("searching")
        self._begin_teaching()
        while not stopped():
            self._end_teaching()
            busy = int(self.teacher is not None)
            while len(self.running) + busy < self.crew.count and not stopped():
                if time.monotonic() > ends and (self.store.runs or self.failures or self.running):
                    break
                batch = self.next_batch()
                if batch is None:
                    break
                self.under_way |= {key_of(s, batch.rung) for s in batch.settings}
                batch = self._claimed(batch)
                if not batch.settings:
                    continue
                self.running.append((batch, self.crew.submit(batch.settings, self._effort(batch.rung, late))))
                self.running = gather(self.running, self._finish, until=time.monotonic() + 0.01)
            waiting = bool(self.running) or (self.teacher is not None and time.monotonic() < ends)
            if not waiting or (self.elapsed > late and self.store.runs):
                break
            if not self.running:
                time.sleep(PAUSE)
            self.running = gather(self.running, self._finish, until=time.monotonic() + 0.2)
            self._tell("searching")
        for batch, _ in self.running:
            self._give_up(batch)
        self.running = []

    def _begin_teaching(self) -> None:
        """Let a worker train a teacher, unless there is one from before, or too little time.

        There is none where models are checked on other splits: it would have seen the rows of these, and those who
        learn from it would seem better than they are.
        """
        path = self.directory / "lesson.safetensors"
        if self._checks or not any(isinstance(f, Trained) for f in self.families):
            return
        if path.exists():
            self.lesson = str(path)
        elif self.seconds >= LEAST_TO_TEACH:
            self.teacher = self.crew.teach(path, TEACHING * self.seconds, self.seed)

    def _end_teaching(self) -> None:
        """Use the lesson of a teacher that has learned, unless it is worse than what there is."""
        if self.teacher is None or not self.teacher.done():
            return
        try:
            said: Teaching = self.teacher.result()
            if said.error <= min((r.error for r in self.store.runs.values()), default=float("inf")) + WORSE:
                self.lesson = said.path
        except LOST as problem:
            self.failures.append(f"teacher: {problem or type(problem).__name__}")
        self.teacher = None

    def _effort(self, rung: int, end: float) -> Effort:
        """Say how settings of a rung are trained, and when, as a share of the time, at the latest."""
        deadline = time.time() + (end - self.elapsed) * self.seconds if self.store.runs else math.inf
        effort = Effort(STEPS[rung], self.patience, core=self.budget.core, budget=self.budget, deadline=deadline)
        return effort._replace(lesson=self.lesson)

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
        if self._quick_is_owed() and (batch := self._new(quick=True)) is not None:
            return batch
        for rung in reversed(range(len(CLIMBING))):
            batch = self._promising(rung) if self.elapsed > CLIMBING[rung] else None
            batch = batch or (self._taught(rung) if rung else None)
            if batch is not None:
                return batch
        return self._new() or self._promising(0) or self._promising(1) or self._promising(2)

    def _unknown(self, guesses: list[Setting], family: str) -> list[Setting]:
        """Return the guesses that no run began with: a resumed search may have another budget, and others then."""
        known = [run.setting for run in self.store.runs.values() if run.family == family]
        return [g for g in guesses if not any(all(s.get(k) == v for k, v in g.items()) for s in known)]

    def _trained(self, rung: int) -> list[Run]:
        """Return the runs of a rung that may be trained for longer: what exceeds the budget will do so then, too."""
        runs = (r for r in self.store.runs.values() if r.rung == rung and isinstance(family_of(r.setting), Trained))
        return [r for r in runs if self.budget.allows(r.price)]

    def _promising(self, rung: int) -> Batch | None:
        """Take the most promising settings of a rung that share a shape, and train them longer."""
        runs = self._trained(rung)
        if not runs:
            return None
        order, most = self._order(runs), AT_ONCE[rung + 1]
        best = [runs[i] for i in order[: max(most, round(SHARE * len(runs)))]]
        waiting = [r for r in best if not self._known(r.setting, rung + 1)]
        groups: dict[str, list[Run]] = {}
        for run in waiting:
            groups.setdefault(_shape(run.setting), []).append(run)
        for name, group in groups.items():  # in the order of their best
            if room := self._room(name, rung + 1):
                settings = [run.setting for run in group[: max(1, room // 2) if room > 2 else room]]
                return Batch(settings + self._again(settings, room - len(settings), rung + 1), rung + 1)
        return None

    def _taught(self, rung: int) -> Batch | None:
        """Let the best settings of a rung that share a shape learn again, from the teacher."""
        if self.lesson is None:
            return None
        runs = self._trained(rung)
        best = [runs[i].setting for i in self._order(runs)[:BATCH]] if runs else []
        waiting = [t for s in best if not self._known(t := {**s, "taught": True}, rung)]
        for setting in waiting:
            name = _shape(setting)
            if room := self._room(name if name in self.pace else _shape({**setting, "taught": False}), rung):
                return Batch([s for s in waiting if _shape(s) == name][:room], rung)
        return None

    def _again(self, settings: list[Setting], count: int, rung: int = 0) -> list[Setting]:
        """Fill up a batch with the same settings from other seeds.

        On higher rungs with other noise, too: it helps those only that are trained for long.
        """
        bases = [dict(settings[i % len(settings)]) for i in range(count)]
        for base in bases:
            base["seed"] = int(self.generator.integers(2**31))
            if rung and "input_noise" in base:
                most = getattr(self.spaces[base["family"]]["input_noise"], "high", 0.0)
                base["input_noise"] = float(self.generator.choice([noise for noise in NOISE if noise <= most]))
        return bases

    def _order(self, runs: list[Run]) -> np.ndarray:
        """Order runs: those within the budget first, then by fronts, then by error."""
        over = np.array([not self.budget.allows(r.price) for r in runs])
        prices = [
            (np.log2(r.price.flash + 1), np.log2(r.price.instructions + 1), r.price.features or 0.0) for r in runs
        ]
        points = np.array([[r.error, *price] for r, price in zip(runs, prices, strict=True)])
        rank = np.zeros(len(runs)) if self.budget.limited else ranks(points)  # within a budget the error counts
        loss = np.array([r.loss for r in runs])
        return np.lexsort((loss, points[:, 0], rank, over))

    def _new(self, *, quick: bool = False) -> Batch | None:
        """Draw new settings of the family whose turn it is; `quick`: of those that are not trained by gradient."""
        for family in self._families_by_turn():
            if quick and isinstance(family, Trained):
                continue
            room = self._room(None, 0, family.name)
            if not room:
                continue
            batch = self._drawn(family, room)
            self.turn[family.name] += 1
            if batch.settings:
                batch.settings += self._again(batch.settings, room - len(batch.settings))
                return batch
            self.spent[family.name] += COMPILING  # nothing of it fits into the budget: others first
        return None

    def _families_by_turn(self) -> list[Sampled]:
        """Give all families as much time; under a budget those far behind the best get a fifth of it."""
        behind: dict[str, int] = dict.fromkeys(self.turn, 1)
        if self.budget.limited and min(self.turn.values()) > 0:
            best = {name: self._least(name) for name in self.turn}
            behind = {name: 5 if error > BEHIND * min(best.values()) else 1 for name, error in best.items()}
        spent = self._time_spent()
        return sorted(self.sampled, key=lambda f: (spent[f.name] * behind[f.name], self.turn[f.name]))

    def _time_spent(self) -> dict[str, float]:
        """Return the seconds of a worker that each family had, those of running batches too."""
        spent, now = dict(self.spent), time.monotonic()
        for batch, _ in self.running:
            spent[batch.family] += now - batch.began
        return spent

    def _quick_is_owed(self) -> bool:
        """Tell whether families that are not trained by gradient are ahead, but had less than their share of the time.

        Until all others have a result, the share is as much time as theirs: a short search may never get further.
        """
        spent = self._time_spent()
        trained = [f.name for f in self.sampled if isinstance(f, Trained)]
        quick = [name for name in self.turn if name not in trained]
        if not quick or not trained:
            return False
        known = [self._least(name) for name in trained]
        ahead = min(map(self._least, quick)) <= min(known)
        share = QUICK if all(map(math.isfinite, known)) else 1.0
        return ahead and sum(spent[name] for name in quick) < share * sum(spent[name] for name in trained)

    def _least(self, family: str) -> float:
        """Return the least error of a family within the budget, of all rungs."""
        errors = (r.error for r in self.store.runs.values() if r.family == family and fits(r, self.budget))
        return min(errors, default=float("inf"))

    def _drawn(self, family: Sampled, count: int) -> Batch:
        """Draw settings of one shape, cut down to the budget; those that cannot meet it are dropped.

        The first batches begin with the guesses of the family. Of the others every second one takes the whole budget.
        """
        space, guesses = self.spaces[family.name], self.guesses[family.name]
        whole = family.whole() if self.budget.limited and not guesses and self.turn[family.name] % 2 else {}
        alone = {"taught": False} if (self.lesson is None or guesses) and isinstance(family, Trained) else {}
        leader = self.store.ask(family.name, space, alone | (guesses.pop(0) if guesses else whole))
        self.generator = np.random.default_rng([self.seed, leader[0]])  # no two searches draw the same
        shaping = (
            *family.shaping,
            *(family.sizing if whole else ()),
            *(name for name in ("taught", *PRICED) if name in space),
        )
        shape = whole | {name: leader[1][name] for name in shaping}
        batch = Batch([], 0)
        for number, setting in [leader] + [self.store.ask(family.name, space, shape) for _ in range(count - 1)]:
            drawn = {**setting, "seed": int(self.generator.integers(2**31))}
            cut = family.fitted(drawn, subset(self.views, drawn), self.budget)
            if cut is None:
                self.store.drop(number)
            else:
                batch.settings.append(cut)
                batch.numbers[key_of(cut, 0)] = number
        return batch

    def _room(self, shape: str | None, rung: int, family: str = "") -> int:
        """Return how many settings a batch of a shape may have, so that it ends in time, and soon; 0 for none.

        Where the pace of the shape is not known, that of the slowest one of the family is taken. Families that are not
        trained by gradient have no pace: a batch takes about as long as those before.
        """
        left = self.seconds * self.ending - (time.monotonic() - self.began)
        if not self.store.runs and not self.under_way:  # something must be found, however late it is
            return 1 if left <= 0 else AT_ONCE[rung]
        if family in self.kinds and not isinstance(self.kinds[family], Trained):
            return BATCH if self.spent[family] / max(1, self.turn[family]) < left else 0
        own = [pace for name, pace in self.pace.items() if name == shape or name.startswith(f'["{family}"')]
        if not own:
            quickest = min(self.pace.values(), default=0.0) * STEPS[rung] * AT_ONCE[rung] + COMPILING
            return AT_ONCE[rung] if quickest < left else 0
        each = max(own) * STEPS[rung]
        if each > left:
            return 0
        sizes = [n for n in (2, 4, BATCH) if n <= AT_ONCE[rung] and n * each < min(left, SLICE * self.seconds)]
        return max([1, *sizes])

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
        self.spent[batch.settings[0]["family"]] += sum(outcome.seconds for outcome in outcomes)
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

    def check(self, stopped: Callable[[], bool]) -> None:
        """Repeat the runs that may be the best on other splits of the rows, as far as the time allows."""
        if not self._checks:
            return
        runs = list(self.store.read().values())
        close, splits = doubtful(runs, self.budget, len(self.views.valid)), range(1, len(self.views.splits))
        left, wanted = self.crew.count * (CHECKED - self.elapsed) * self.seconds, []
        for run in close:
            taken = self._seconds(run) * len(splits) + self._compiling(run)
            if taken <= left:  # where one takes too long, others may not
                left -= taken
                wanted.append(run)
        if len(wanted) < 2:
            return
        errors = {run.key: [(run.error, run.loss, run.share_wrong)] for run in wanted}

        def finish(group: list[Run], work: Work) -> None:
            for outcome in self._outcomes(group, work, "checked"):
                figures = outcome.error, outcome.loss, outcome.share_wrong
                errors[key_of(outcome.setting, group[0].rung)].append(figures)

        jobs = [(group, split) for split in splits for group in grouped(wanted)]
        self._carry_out(jobs, finish, CHECKED, CHECKING, stopped)
        self.scores = compared(errors, [len(part) for part in self.views.splits])

    def finals(self, stopped: Callable[[], bool]) -> list[tuple[Run, Outcome | None]]:
        """Retrain the models of the front on all rows but the test rows, as far as the time allows."""
        runs = [checked(run, self.scores) for run in self.store.read().values()]
        if not runs:
            raise error("at least one finished run", "none", where="explore", remedy="give it more time")
        retrained: dict[str, Outcome] = {}

        def finish(group: list[Run], work: Work) -> None:
            outcomes = self._outcomes(group, work, "retrained")
            retrained.update({key_of(o.setting, group[0].rung): o for o in outcomes})

        jobs: list[tuple[list[Run], int | None]] = [
            (group, None) for group in grouped(finalists(runs, self.budget, self.scores))
        ]
        self._carry_out(jobs, finish, LONGEST, RETRAINING, stopped)
        return [(run, retrained.get(run.key)) for run in runs]

    def _outcomes(self, group: list[Run], work: Work, what: str) -> list[Outcome]:
        """Return what became of runs; nothing if they failed."""
        try:
            outcomes: list[Outcome] = work.result()
            return outcomes
        except LOST as problem:  # the model of the search stands in
            self.failures.append(f"{group[0].family} {what}: {problem or type(problem).__name__}")
            return []

    def _carry_out(
        self,
        jobs: Sequence[tuple[list[Run], int | None]],
        finish: Callable[[list[Run], Work], None],
        end: float,
        phase: str,
        stopped: Callable[[], bool],
    ) -> None:
        """Train groups of runs again, each on a split or, without one, on all rows, as far as the time allows."""
        running: list[tuple[list[Run], Work]] = []
        for group, split in jobs:
            while len(running) >= self.crew.count and not stopped() and self.elapsed < end:
                running = gather(running, finish, until=time.monotonic() + 0.2)
                self._tell(phase)
            left = (end - self.elapsed) * self.seconds
            if stopped() or left <= 0:
                break
            settings, rung = [run.setting for run in group], group[0].rung
            taken = sum(map(self._seconds, group))
            if taken + self._compiling(group[0]) > left:
                continue
            effort = self._effort(rung, end)._replace(final=split is None, split=split or 0)
            running.append((group, self.crew.submit(settings, effort)))
        while running and not stopped() and self.elapsed < end:
            running = gather(running, finish, until=time.monotonic() + 0.2)
            self._tell(phase)

    def _seconds(self, run: Run) -> float:
        """Return about how long a run takes again."""
        family = family_of(run.setting)
        pace = self.pace.get(_shape(run.setting)) if isinstance(family, Trained) else None
        if pace is not None:
            return pace * STEPS[run.rung]
        alone = isinstance(family, Sampled) and not isinstance(family, Trained)  # a batch was one run of the learner
        return run.seconds * (BATCH if alone else 1)

    def _compiling(self, run: Run) -> float:
        """Return how long it takes to compile a run for other numbers of rows or settings."""
        return COMPILING if isinstance(family_of(run.setting), Trained) else 0.0

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


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that can be trained together, in the order of the first of each group."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((_shape(run.setting), run.rung), []).append(run)
    return list(groups.values())


def _shape(setting: Setting) -> str:
    return family_of(setting).shape(setting)


def _save(outcome: Outcome, path: Path) -> None:
    from tinybayes.deploy import save

    assert outcome.model is not None
    made_directory(path.parent)
    save(outcome.model, path, metadata={"setting": outcome.setting, "validation_error": outcome.error})
