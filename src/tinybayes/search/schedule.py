"""What a search does next: which family, which settings, on which rung, how many at once.

Settings are drawn in batches of one shape, which are trained at once. They climb rungs: all are trained briefly, the
promising ones longer, the best of those longest, a few at a time. Under a budget, every other batch of a family takes
as much of it as it can, and families that are far behind get fewer turns. Families that are not trained by gradient
take milliseconds where others take seconds: while they are ahead, a share of the time is theirs.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.search.budget import Budget
from tinybayes.search.clock import BATCH, COMPILING, STEPS, Clock, shape_of
from tinybayes.search.columns import subset
from tinybayes.search.families import Family, Listed, Sampled, Setting, Trained, family_of
from tinybayes.search.families.family import PRICED
from tinybayes.search.front import fits, ranks
from tinybayes.search.runs import Run, key_of
from tinybayes.search.trials import Outcome
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from tinybayes.search.study import Store

AT_ONCE = (BATCH, BATCH, BATCH, 2)  # settings of a batch on each rung
CLIMBING = (0.25, 0.4, 0.5)  # of the time, after which settings leave each rung
SHARE = 1 / 3  # of a rung's runs that are promising
NOISE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # of the inputs, that is tried on higher rungs
SLICE = 0.12  # of the time, that a batch may take, unless it has one setting only
QUICK = 0.5  # of the time of families that are trained by gradient, that the others get while they are ahead
BEHIND = 1.5  # times the least error, above which a family is far behind


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

    @property
    def trained(self) -> bool:
        """Tell whether its family is trained by gradient."""
        return isinstance(family_of(self.settings[0]), Trained)


@dataclass(eq=False)
class Schedule:
    """The order of a search. It is told which batches begin, and how they end."""

    views: Views
    store: "Store"
    budget: Budget
    families: Sequence[Family]
    clock: Clock
    seed: int
    lesson: str | None = None  # the file of a lesson, once there is a teacher

    def __post_init__(self) -> None:
        self.sampled = [f for f in self.families if isinstance(f, Sampled)]
        quick = [f for f in self.families if isinstance(f, Listed)]
        listed = [(f, s) for f in quick for s in f.settings_for(self.views, self.budget)]
        settings = [s for f, s in listed if f.affordable(s, self.views, self.budget)]
        self.listed = [s for s in settings if key_of(s, 0) not in self.store.runs]
        self.kinds = {f.name: f for f in self.sampled}
        self.spaces = {f.name: f.whole_space(self.views) for f in self.sampled}
        self.generator = np.random.default_rng([self.seed, len(self.store.runs)])
        self.under_way: set[str] = set()
        self.failed: set[str] = set()
        self.turn = dict.fromkeys((f.name for f in self.sampled), 0)  # batches that each family was asked for
        self.spent = dict.fromkeys((f.name for f in self.families), 0.0)  # seconds of a worker, by family
        self.guesses = {f.name: self._unknown(f.opening(self.views, self.budget), f.name) for f in self.sampled}
        self.running: list[Batch] = []
        self.turns = 0

    def begin(self, batch: Batch) -> Batch:
        """Take the settings of a batch that no other search on the same store has, and mark all as known."""
        self.under_way |= {key_of(s, batch.rung) for s in batch.settings}
        free = [s for s in batch.settings if key_of(s, batch.rung) not in batch.numbers]
        claimed = self.store.claim(free, batch.rung, self.spaces.get(batch.family, {})) if free else []
        taken = {key_of(s, batch.rung): n for s, n in zip(free, claimed, strict=True) if n is not None}
        numbers = batch.numbers | taken
        own = Batch([s for s in batch.settings if key_of(s, batch.rung) in numbers], batch.rung, numbers)
        if own.settings:
            self.running.append(own)
            self.clock.begin(len(own.settings))
        return own

    def shortened(self, batch: Batch) -> Batch:
        """Return as much of a batch as may begin."""
        allowed = self.clock.allowed()
        if len(batch.settings) <= allowed:
            return batch
        kept = batch.settings[: int(allowed)]
        keys = {key_of(setting, batch.rung) for setting in kept}
        for key, number in batch.numbers.items():
            if key not in keys:
                self.store.drop(number)
        return Batch(kept, batch.rung, {key: number for key, number in batch.numbers.items() if key in keys})

    def end(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Take down what a batch took."""
        self.running.remove(batch)
        seconds = sum(outcome.seconds for outcome in outcomes)
        self.spent[batch.family] += self.clock.spent(batch.rung, batch.trained, seconds, len(outcomes))
        if batch.trained and outcomes:
            self.clock.learn(shape_of(batch.settings[0]), batch.rung, outcomes[0].seconds)

    def give_up(self, batch: Batch) -> None:
        """Drop a batch: its settings may be tried again."""
        self.running.remove(batch)
        self.under_way -= {key_of(s, batch.rung) for s in batch.settings}
        for number in batch.numbers.values():
            self.store.drop(number)

    def retry(self, batch: Batch) -> None:
        """Put settings that nobody draws again back into the list, unless they have failed before."""
        for setting in batch.settings:
            key = key_of(setting, 0)
            if isinstance(family_of(setting), Listed) and key not in self.failed:
                self.failed.add(key)
                self.listed.append(setting)

    def next_batch(self) -> Batch | None:
        """Choose the next batch: of the lists, promising settings on a higher rung, or new ones.

        Settings of the lists take next to no time, and come first; where trials are counted, at every other turn.
        """
        self.turns += 1
        counted = self.clock.in_flight is not None
        if not (counted and self.turns % 2) and (batch := self._from_list()) is not None:
            return batch
        return self._from_families() or self._from_list(at_last=True)

    def _from_list(self, *, at_last: bool = False) -> Batch | None:
        """Take settings of the lists that are carried out together; slow ones later, alone, and one at a time.

        The first one is compiled for long: in a new installation, nothing else would be found in a short search.
        """
        slow = [s for s in self.listed if family_of(s).slow]
        others_first = self.clock.elapsed <= 0.2 or min(self.turn.values(), default=1) == 0
        busy = any(family_of(batch.settings[0]).slow for batch in self.running)
        if not self.listed or (len(slow) == len(self.listed) and (others_first or busy) and not at_last):
            return None
        first = next((s for s in self.listed if s not in slow), self.listed[0])
        few = [s for s in self.listed if s["family"] == first["family"]][: 1 if first in slow else BATCH]
        self.listed = [s for s in self.listed if s not in few]
        return Batch(few, 0)

    def _from_families(self) -> Batch | None:
        """Take promising settings on a higher rung, or new ones."""
        if not self.sampled:
            return None
        if self._quick_is_owed() and (batch := self._new(quick=True)) is not None:
            return batch
        for rung in reversed(range(len(CLIMBING))):
            batch = self._promising(rung) if self.clock.elapsed > CLIMBING[rung] else None
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
            groups.setdefault(shape_of(run.setting), []).append(run)
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
            name = shape_of(setting)
            if room := self._room(name if name in self.clock.pace else shape_of({**setting, "taught": False}), rung):
                return Batch([s for s in waiting if shape_of(s) == name][:room], rung)
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
        for batch in self.running:
            gone = now - batch.began
            spent[batch.family] += self.clock.spent(batch.rung, batch.trained, gone, len(batch.settings))
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
        left = self.clock.left(self.clock.ending)
        if not self.store.runs and not self.under_way:  # something must be found, however late it is
            return 1 if left <= 0 else AT_ONCE[rung]
        if family in self.kinds and not isinstance(self.kinds[family], Trained):
            return BATCH if self.spent[family] / max(1, self.turn[family]) < left else 0
        own = [pace for name, pace in self.clock.pace.items() if name == shape or name.startswith(f'["{family}"')]
        if not own:
            quickest = min(self.clock.pace.values(), default=0.0) * STEPS[rung] * AT_ONCE[rung] + COMPILING
            return AT_ONCE[rung] if quickest < left else 0
        each = max(own) * STEPS[rung]
        if each > left:
            return 0
        sizes = [n for n in (2, 4, BATCH) if n <= AT_ONCE[rung] and n * each < min(left, SLICE * self.clock.seconds)]
        return max([1, *sizes])

    def _known(self, setting: Setting, rung: int) -> bool:
        key = key_of(setting, rung)
        return key in self.store.runs or key in self.under_way
