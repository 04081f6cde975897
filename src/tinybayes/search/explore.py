"""One search over all families of models: a table and a budget in, the front of deployable models out.

The models of the front are retrained on all rows but the test rows, and only then the test rows are looked at.
"""

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tinybayes.data.readers import read_frame
from tinybayes.errors import LimitError, error, near
from tinybayes.extras import require
from tinybayes.files import atomic_path
from tinybayes.learn.interrupts import interruptible
from tinybayes.options import MOST_INTEGER, check_options, check_seed, documented, option
from tinybayes.search.budget import Budget, as_budget, check_error
from tinybayes.search.columns import first_columns, priced
from tinybayes.search.conclude import Exploration, conclude, heading
from tinybayes.search.driver import Search
from tinybayes.search.families import Family, Sampled, parse_families
from tinybayes.search.goal import Goal
from tinybayes.search.live import Live, State
from tinybayes.search.prepare import make_views
from tinybayes.search.repeat import check, retrain
from tinybayes.search.roles import Roles
from tinybayes.search.runs import FEATURES
from tinybayes.search.views import Views
from tinybayes.search.workers import Cluster, Processes, Workers, take_one_core

__all__ = ["Budget", "Execution", "Exploration", "Goal", "State", "explore"]

MOST_TRIALS = 10**9


@documented
@dataclass(frozen=True, kw_only=True)
class Execution:
    """Who carries out a search, and where its runs are stored.

    With several processes the caller's script must guard its main part, as for all of Python's multiprocessing.
    """

    workers: int | None = option(
        1, "Processes on this machine; the command line takes one for each core, below 20 s one.", low=1, high=4096
    )
    dask: str | None = option(
        None, "Use the workers of the Dask scheduler at this address, or of this scheduler file.", metavar="ADDRESS"
    )
    storage: str | None = option(
        None, "sqlite:///x.db or postgresql://...; by default a journal in the directory of the search.", metavar="URL"
    )
    command: str = ""  # kept in ``front.json``: how the search was started

    def __post_init__(self) -> None:
        check_options(self)


def explore(
    table: object,
    target: str,
    *,
    output: str | Path,
    test: object = None,
    budget: Budget | str | None = None,
    seconds: float = 600.0,
    trials: int | None = None,
    families: str | None = None,
    image_shape: tuple[int, int] | None = None,
    drop: Sequence[str] = (),
    seed: int = 0,
    goal: Goal | str | None = None,
    weight: str | None = None,
    groups: str | None = None,
    time_order: str | None = None,
    feature_costs: object = None,
    execution: Execution | None = None,
    report: Callable[[State], None] | None = None,
) -> Exploration:
    """Search for the best deployable models of a table under a budget.

    Parameters
    ----------
    table
        Anything that `read_dataset` takes.
    target
        The column to predict.
    output
        A directory for ``front.json``, ``front.csv`` and ``models/``, beside the store of the search. A search that
        was ended in any way is resumed.
    test
        Rows for the test error; without them a fifth of the table is set aside.
    budget
        The limits of the chosen model: the flash of its whole program, such as ``"4kB"``, or a `Budget`, which also
        limits RAM, time, parameters, operations and error. The front also has models above it.
    seconds
        Of the whole search.
    trials
        Try that many settings instead of a time: neither the speed of the machine nor the number of workers decides
        then, and the same call in a new directory gives the same files, byte for byte. There is no limit of time.
    families
        Names, separated by commas, out of `tinybayes.search.families.FAMILIES`; by default all that suit the table.
    image_shape
        Rows and columns, when the features are pixels; square images are recognised.
    drop, seed
        Columns to leave out; seed of the split and of everything drawn at random.
    goal
        What decides: the metric that is minimised, such as ``"balanced"``, or a `Goal`, which also has class weights
        and costs of mistakes; by default the share of wrong labels.
    weight
        A column of row weights, for training and for all figures.
    groups
        A column of groups, such as patients: no group is in two of the training, validation and test rows.
    time_order
        A column of times: the latest rows are the test rows, and the latest of the others the validation rows.
    feature_costs
        What it costs to read a column, such as a sensor: a mapping, or a JSON or CSV file; others cost nothing, or what
        ``"*"`` says. Models then read few columns, and the front has this cost, too; `Budget` limits it.
    execution
        Workers and storage; by default this process and a journal in `output`.
    report
        Called now and then. An interrupt (Ctrl-C), or a file ``stop`` in `output`, ends the search early; the front of
        the finished runs is made.
    """
    require("jax", "optuna", "sklearn", extra="search")
    from tinybayes.search.study import Store  # here, since it needs Optuna

    began, execution = time.monotonic(), execution or Execution()
    check_seed(seed)
    if trials is not None and not 1 <= trials <= MOST_TRIALS:
        raise error(f"1 to {MOST_TRIALS:,}", f"{trials:.4g}" if trials < MOST_INTEGER else "more", where="trials")
    budget = as_budget(budget)
    frame, tests = _tables(table, test, drop)
    roles = Roles(weight=weight, groups=groups, time_order=time_order)
    views = make_views(frame, target, test=tests, image_shape=image_shape, seed=seed, goal=goal, roles=roles)
    check_error(budget.error, views.measure)
    if feature_costs is not None:
        views = priced(views, feature_costs, budget.features)
    elif budget.features is not None:
        raise error("costs of features for their limit", "none", where="feature cost", remedy="give them")
    chosen = parse_families(families, views)
    _check_budget(budget, chosen, views)
    directory = _made(Path(output))
    meaning = {"table": _fingerprint(frame, tests), "target": target, "seed": seed, "core": budget.core}
    meaning |= views.decision.meaning() | roles.meaning()
    if views.prices is not None:
        meaning[FEATURES] = {"costs": views.prices.costs.tolist(), "limit": budget.features}
    store = Store(directory, execution.storage, meaning, budget, seed)
    if trials is not None:
        take_one_core()  # as every process of several
    crew = _crew(views, execution)
    top = heading(views, budget, seed, execution.command)
    if trials is not None:
        top |= {"created": None, "trials": trials}
    live = Live(directory, top, budget, views.measure)
    search = Search(views, store, crew, budget, chosen, directory, seconds, began, seed, live, report, trials)
    return _run(search, top)


def _tables(table: object, test: object, drop: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Read the table without the columns to drop, and the test rows."""
    frame = read_frame(table)
    unknown = [name for name in drop if name not in frame.columns]
    if unknown:
        raise error("columns of the table", unknown, where="drop", remedy=near(unknown[0], frame.columns))
    return frame.drop(columns=list(drop)), None if test is None else read_frame(test)


def _check_budget(budget: Budget, families: Sequence[Family], views: Views) -> None:
    """Refuse a budget that no model can keep."""
    tables = {family.name: views for family in families}
    if views.prices is not None:  # models may read few columns
        small = first_columns(views, views.prices.choices()[0])
        tables |= {f.name: small for f in families if not isinstance(f, Sampled) or f.selects}
    least = min((family.smallest_bits(tables[family.name]) for family in families), default=0)
    if budget.bits is not None and budget.bits < least:
        remedy = f"allow {-(-least // 8):,} bytes"
        expected = f"a budget of at least {least:,} bits, the smallest model"
        raise error(expected, f"{budget.bits:,}", where="budget", remedy=remedy, kind=LimitError)
    if budget.flash is None:
        return
    least = min((family.smallest_flash(tables[family.name], budget.core) for family in families), default=0)
    if budget.flash < 0.9 * least:  # the price of code is an estimate
        expected = f"a budget of about {least:,} bytes of flash, the smallest program on {budget.core}"
        got, remedy = f"{budget.flash:,}", "allow more, drop columns, or limit the parameters alone"
        raise error(expected, got, where="budget", remedy=remedy, kind=LimitError)


def _run(search: Search, top: dict[str, Any]) -> Exploration:
    """Search, retrain the front and write the files; say how it ended, and release the workers."""
    ended = "failed"
    try:
        with interruptible() as interrupted:

            def stopped() -> bool:
                return interrupted.is_set() or search.live.stopped()

            search.run(stopped)
            if interrupted.is_set() and not search.store.read():
                raise KeyboardInterrupt  # there is nothing to keep, and the input was not bad
            check(search, stopped)
            finals = retrain(search, stopped)
            if stopped():
                search.cut.append("it was ended early")
            until = search.began + search.seconds if search.trials is None else math.inf
            told = search.failures, search.scores, until
            result = conclude(finals, search.views, search.budget, search.directory, top | {"cut": search.cut}, *told)
            ended = "done"
            return result
    finally:
        search.live.end(ended)
        search.crew.close()


def _crew(views: Views, execution: Execution) -> Workers:
    if execution.dask is not None:
        return Cluster(views, execution.dask)
    count = execution.workers or 1
    return Processes(views, count) if count > 1 else Workers(views)


def _made(directory: Path) -> Path:
    """Make a directory, and try to write to it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with atomic_path(directory / ".probe") as probe:
            probe.write_bytes(b"")
        (directory / ".probe").unlink()
        return directory
    except OSError as problem:
        raise error("a directory to write to", problem.strerror or problem, where=str(directory)) from problem


def _fingerprint(frame: pd.DataFrame, test: pd.DataFrame | None) -> str:
    """Return a hash of the tables, so that runs of different ones are never mixed."""
    digest = hashlib.sha256()
    for part in (frame, test):
        if part is not None:
            digest.update(repr(list(part.columns)).encode())
            digest.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]
