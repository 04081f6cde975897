"""The store of a search: an Optuna study, in a journal file, SQLite or PostgreSQL.

Every run is one trial that carries its setting, its result and the name of its model's file. A run is in the store only
when it is finished and its model is on the disk, so that a search killed at any moment loses only the
runs in progress.

Searches that share a store claim their settings: a claim is a running trial that names the run, written in one step,
and the lowest number wins. So no run is done twice, and the next search fails the trials of processes that have
ended. What is damaged in the store is skipped, and the rest is kept.
"""

import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import TrialState
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from tinybayes.errors import FileError, error, warn
from tinybayes.search.budget import Budget
from tinybayes.search.families import Setting
from tinybayes.search.journal import Journal
from tinybayes.search.measure import METRICS
from tinybayes.search.processes import is_alive
from tinybayes.search.runs import FEATURES, Run, key_of
from tinybayes.search.trials import Outcome

NAME = "tinybayes"
COPY = "meaning, again"
NAMELESS = 60.0  # seconds after which a trial must have an owner
LOST = "is it still there, and may it be written? A new directory begins a new search"


class Store:
    """The runs of one search.

    `storage` is None for a journal file in the directory, otherwise a URL of SQLAlchemy such as
    ``sqlite:///search.db``. The runs depend on `meaning`, such as the table's hash and the core that programs are
    priced for: a store of another meaning is refused. The sampler keeps within the budget.
    """

    def __init__(
        self, directory: Path, storage: str | None, meaning: dict[str, Any], budget: Budget, seed: int
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.where = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", storage or str(directory / "search.journal"))
        count = 3 + (FEATURES in meaning)  # objectives
        with self._reaching():
            self._journal = Journal(str(directory / "search.journal"), (NAME, count)) if storage is None else None
            backend = _backend(storage, self._journal)

            def over(trial: optuna.trial.FrozenTrial) -> Sequence[float]:
                # The values of a trial are stored after this is asked; its run was stored before.
                run = Run.stored(trial.user_attrs.get("run"))
                return (0.0 if run is None else budget.excess(run.price) - 1,)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                warnings.simplefilter("ignore", FutureWarning)  # constraints_func: version 4 lacks its replacement
                sampler = optuna.samplers.TPESampler(
                    seed=seed, constraints_func=over, n_startup_trials=16, multivariate=False, constant_liar=True
                )
            name = f"{NAME} {directory.absolute().name}" if storage else NAME
            self.study = optuna.create_study(
                storage=backend, study_name=name, sampler=sampler, directions=["minimize"] * count, load_if_exists=True
            )
            self.runs: dict[str, Run] = {}
            self.read()
            self._check(meaning)
            self._name_objectives(meaning)
            self._clear_abandoned()
            self.read()
            self._tell_damage()
        self._sampler = sampler
        self._asked: dict[int, optuna.Trial] = {}

    def _check(self, meaning: dict[str, Any]) -> None:
        before = self.study.user_attrs.get("meaning") or self.study.user_attrs.get(COPY)
        if before is None and self.runs:
            got = "a damaged store that does not tell whose its runs are"
            raise error("a search of this table and target", got, where=self.where, remedy="give another directory")
        if before is None:
            for name in ("meaning", COPY):  # twice, since damage must not lose it
                self.study.set_user_attr(name, meaning)
        elif before != meaning:
            differing = sorted(n for n in {**meaning, **before} if meaning.get(n) != before.get(n))
            remedy = "give another directory"
            got = f"one with other {', '.join(differing) or 'settings'}"
            if differing == ["core"]:
                core = before.get("core")
                got = f"one that priced programs for {core}" if core else "one of an older version, without their price"
                raise error(f"programs priced for {meaning['core']}", got, where=self.where, remedy=remedy)
            raise error("a search of this table and target", got, where=self.where, remedy=remedy)

    def _name_objectives(self, meaning: dict[str, Any]) -> None:
        """Name the objectives for other programs that show a study, such as optuna-dashboard."""
        if self.study.metric_names is not None:
            return
        names = [f"validation {METRICS[meaning.get('metric', 'error')].title}", "flash in bytes", "instructions"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self.study.set_metric_names([*names, *(["feature cost"] * (FEATURES in meaning))])

    def read(self) -> dict[str, Run]:
        """Read the runs that others have stored meanwhile."""
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        stored = [trial.user_attrs["run"] for trial in trials if "run" in trial.user_attrs]
        # A journal may have lost the trial of a run; its model was saved before the run was written.
        for run in map(Run.stored, stored if self._journal is None else [*stored, *self._journal.runs]):
            if run is not None:
                self.runs.setdefault(run.key, run)
        return self.runs

    def _tell_damage(self) -> None:
        if self._journal is not None and self._journal.damaged:
            count = self._journal.damaged
            what = "1 damaged line was" if count == 1 else f"{count:,} damaged lines were"
            warn(f"{self.where}: {what} skipped; {len(self.runs):,} finished runs are kept")

    def _clear_abandoned(self) -> None:
        """End the trials that a process of this machine left behind: complete if it had stored the run, else failed."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            owner = trial.user_attrs.get("owner", "")
            machine, _, process = owner.rpartition(":")
            here = machine == os.uname().nodename
            gone = here and not (process.isdecimal() and is_alive(int(process)))
            if gone or (not owner and _age(trial) > NAMELESS):  # or its process ended before it could say who it is
                end: dict[str, Any] = {"state": TrialState.FAIL}
                run = Run.stored(trial.user_attrs.get("run"))
                if run is not None:  # it ended between the two writes of `tell`
                    end = {"values": run.objectives}
                with suppress(RuntimeError):  # another search was faster; Optuna has a name for it in later versions
                    self.study.tell(trial.number, **end, skip_if_finished=True)

    def ask(self, family: str, space: dict[str, BaseDistribution], fixed: dict[str, Any]) -> tuple[int, Setting]:
        """Draw a setting of a family, some of it fixed; return the number of its trial, too."""
        with self._reaching():
            named = {f"{family}.{name}": distribution for name, distribution in space.items()}
            if fixed:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                    given = {f"{family}.{name}": value for name, value in fixed.items()}
                    self.study.sampler = optuna.samplers.PartialFixedSampler(given, self._sampler)
            trial = self.study.ask(named)
            self.study.sampler = self._sampler
            trial.set_user_attr("owner", _owner())
            values = {name: trial.params[f"{family}.{name}"] for name in space}
        self._asked[trial.number] = trial
        return trial.number, {"family": family, **values}

    def claim(self, settings: Sequence[Setting], rung: int, space: dict[str, BaseDistribution]) -> list[int | None]:
        """Take settings that were drawn from `space` as trials of this search; None for those that another one has."""
        keys = [key_of(setting, rung) for setting in settings]
        with self._reaching():
            for setting, key in zip(settings, keys, strict=True):
                named = {f"{setting['family']}.{name}": (d, setting[name]) for name, d in space.items()}
                trial = optuna.trial.create_trial(
                    state=TrialState.RUNNING,
                    params={name: value for name, (_, value) in named.items()},
                    distributions={name: d for name, (d, _) in named.items()},
                    user_attrs={"owner": _owner(), "claim": key},
                )
                self.study.add_trial(trial)
            holders: dict[str, list[optuna.trial.FrozenTrial]] = {key: [] for key in keys}
            for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.COMPLETE)):
                key = trial.user_attrs.get("claim") or trial.user_attrs.get("run", {}).get("key")
                lost = trial.state == TrialState.COMPLETE and Run.stored(trial.user_attrs.get("run")) is None
                if key in holders and not lost:
                    holders[key].append(trial)
            return [self._won(holders[key]) for key in keys]

    def _won(self, holders: Sequence[optuna.trial.FrozenTrial]) -> int | None:
        """Return the number of this search's trial among those of one setting if it is the first, else fail it."""
        running = [trial for trial in holders if trial.state == TrialState.RUNNING]
        mine = next(trial for trial in reversed(running) if trial.user_attrs.get("owner") == _owner())
        if mine is not holders[0]:
            self.study.tell(mine.number, state=TrialState.FAIL)
            return None
        self._asked[mine.number] = optuna.Trial(self.study, mine._trial_id)
        return mine.number

    def tell(self, number: int, outcome: Outcome, rung: int) -> Run:
        """Store a finished run as the trial that was asked for or claimed."""
        run = Run(
            key_of(outcome.setting, rung),
            outcome.setting,
            rung,
            outcome.error,
            outcome.loss,
            outcome.price,
            round(outcome.seconds, 3),
            [list(point) for point in outcome.history],
            outcome.model is not None,
            outcome.wrong,
            outcome.deviation,
        )
        with self._reaching():
            asked = self._asked.pop(number)
            asked.set_user_attr("run", asdict(run))
            self.study.tell(asked, run.objectives)
            if self._journal is not None:
                self._journal.sync()
        self.runs[run.key] = run
        return run

    def drop(self, number: int) -> None:
        """Give up a trial that was asked for."""
        self._asked.pop(number, None)
        with self._reaching():
            self.study.tell(number, state=TrialState.FAIL)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Turn errors of a lost storage into one that names it."""
        try:
            yield
        except (OSError, ImportError, optuna.exceptions.OptunaError, SQLAlchemyError) as problem:
            reason = str(problem).splitlines()[0][:200] if str(problem) else type(problem).__name__
            expected = "a storage that can be reached"
            raise error(expected, reason, where=self.where, remedy=LOST, kind=FileError) from problem


def _backend(storage: str | None, written: "Journal | None") -> optuna.storages.BaseStorage:
    if written is None:
        assert storage is not None
        return _database(storage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.storages.JournalStorage(written)


def _database(storage: str) -> optuna.storages.BaseStorage:
    """Open a database; where another search is making the tables at the same moment, wait for it.

    Connections are tried before they are used, so that a server may be restarted between two uses.
    """
    options = {"pool_pre_ping": True}
    for _ in range(3):
        try:
            return optuna.storages.RDBStorage(storage, engine_kwargs=options)
        except (IntegrityError, OperationalError, ProgrammingError):
            time.sleep(0.3)
    return optuna.storages.RDBStorage(storage, engine_kwargs=options)


def _owner() -> str:
    return f"{os.uname().nodename}:{os.getpid()}"


def _age(trial: optuna.trial.FrozenTrial) -> float:
    return (datetime.now() - trial.datetime_start).total_seconds() if trial.datetime_start else float("inf")
