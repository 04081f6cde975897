"""The end of a search: its best runs carried out again, on other splits for a check, then on all rows for the front."""

from collections.abc import Callable, Sequence

from tinybayes.errors import error
from tinybayes.search.checks import checked, compared, doubtful
from tinybayes.search.clock import CHECKED, LONGEST, grouped
from tinybayes.search.driver import LOST, Search
from tinybayes.search.front import finalists
from tinybayes.search.runs import Run, key_of
from tinybayes.search.trials import Outcome
from tinybayes.search.workers import Work

CHECKING = "checking the best on other rows"  # phases, by which the served page chooses its title
RETRAINING = "retraining the front"


def check(search: Search, stopped: Callable[[], bool]) -> None:
    """Repeat the runs that may be the best on other splits of the rows, as far as the time allows."""
    if not search.checks:
        return
    runs = list(search.store.read().values())
    close, splits = doubtful(runs, search.budget, len(search.views.valid)), range(1, len(search.views.splits))
    left, wanted = search.crew.count * search.clock.left(CHECKED), []
    for run in close:
        taken = search.clock.again([run], len(splits))
        if taken <= left:  # where one takes too long, others may not
            left -= taken
            wanted.append(run)
    if len(wanted) < len(close):
        search.cut.append(f"{len(wanted)} of {len(close)} close runs were checked on other splits")
    if len(wanted) < 2:
        return
    errors = {run.key: [(run.error, run.loss, run.share_wrong)] for run in wanted}

    def finish(group: list[Run], work: Work) -> None:
        for outcome in _outcomes(search, group, work, "checked"):
            figures = outcome.error, outcome.loss, outcome.share_wrong
            errors[key_of(outcome.setting, group[0].rung)].append(figures)

    jobs = [(group, split) for split in splits for group in grouped(wanted)]
    _carry_out(search, jobs, finish, CHECKED, CHECKING, stopped)
    search.scores = compared(errors, [len(part) for part in search.views.splits])


def retrain(search: Search, stopped: Callable[[], bool]) -> list[tuple[Run, Outcome | None]]:
    """Retrain the models of the front on all rows but the test rows, as far as the time allows."""
    runs = [checked(run, search.scores) for run in search.store.read().values()]
    if not runs:
        raise error("at least one finished run", "none", where="explore", remedy="give it more time")
    retrained: dict[str, Outcome] = {}

    def finish(group: list[Run], work: Work) -> None:
        outcomes = _outcomes(search, group, work, "retrained")
        retrained.update({key_of(o.setting, group[0].rung): o for o in outcomes})

    groups = grouped(finalists(runs, search.budget, search.scores))
    _carry_out(search, [(group, None) for group in groups], finish, LONGEST, RETRAINING, stopped)
    if len(retrained) < (count := sum(map(len, groups))):
        search.cut.append(f"{len(retrained)} of {count} models of the front were trained again on all rows")
    return [(run, retrained.get(run.key)) for run in runs]


def _outcomes(search: Search, group: list[Run], work: Work, what: str) -> list[Outcome]:
    """Return what became of runs; nothing if they failed."""
    try:
        outcomes: list[Outcome] = work.result()
        return outcomes
    except LOST as problem:  # the model of the search stands in
        search.failures.append(f"{group[0].family} {what}: {problem or type(problem).__name__}")
        return []


def _carry_out(
    search: Search,
    jobs: Sequence[tuple[list[Run], int | None]],
    finish: Callable[[list[Run], Work], None],
    end: float,
    phase: str,
    stopped: Callable[[], bool],
) -> None:
    """Train groups of runs again, each on a split or, without one, on all rows, as far as the time allows."""
    running: list[tuple[list[Run], Work]] = []
    clock = search.clock

    def wait() -> None:
        nonlocal running
        running = search.gather(running, finish, 0.2)
        search.tell(phase)

    for group, split in jobs:
        while len(running) >= search.crew.count and not stopped() and clock.elapsed < end:
            wait()
        left = clock.left(end)
        if stopped() or left <= 0:
            break
        if clock.again(group) > left:
            continue
        effort = search.effort(group[0].rung, end)._replace(final=split is None, split=split or 0)
        running.append((group, search.crew.submit([run.setting for run in group], effort)))
    while running and not stopped() and clock.elapsed < end:
        wait()
