"""One search over all families of models: a table and a budget in, the front of deployable models out.

Settings are drawn in batches of one shape, which are trained at once. They climb rungs: all are trained briefly, the
promising ones longer, the best of those longest. Then the models of the front learn once more, from all rows but the
test rows, and only now the test rows are looked at.
"""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from tinybayes.data.readers import read_frame
from tinybayes.errors import error, near
from tinybayes.files import atomic_path
from tinybayes.learn.interrupts import interruptible
from tinybayes.search import families as kinds
from tinybayes.search.conclude import Exploration, conclude, heading
from tinybayes.search.driver import Search
from tinybayes.search.families import Limits
from tinybayes.search.live import Live, State
from tinybayes.search.study import Store
from tinybayes.search.views import Views, make_views
from tinybayes.search.workers import Cluster, Processes, Workers

__all__ = ["Exploration", "State", "explore"]


def explore(
    table: object,
    target: str,
    *,
    output: str | Path,
    test: object = None,
    budget_bits: int | None = None,
    max_operations: int | None = None,
    max_error: float | None = None,
    seconds: float = 600.0,
    families: str | None = None,
    image_shape: tuple[int, int] | None = None,
    drop: tuple[str, ...] = (),
    storage: str | None = None,
    workers: int = 1,
    dask: str | None = None,
    seed: int = 0,
    command: str = "",
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
        A directory: ``front.json``, ``front.csv`` and ``models/`` come to stand there, beside the store of the search.
        A search that was ended in any way is taken up again.
    test
        Rows to judge by; without them a fifth of the table is set aside.
    budget_bits, max_operations
        What the chosen model may take; the front has others too.
    max_error
        Choose the cheapest model with at most this validation error, not the most accurate one.
    seconds
        Of the whole search.
    families
        Names, separated by commas, out of `tinybayes.search.families.FAMILIES`; by default all that fit the table.
    image_shape
        Rows and columns, when the features are pixels; found out by itself for square images.
    drop
        Columns to leave out.
    storage
        A URL such as ``sqlite:///x.db`` or ``postgresql://...`` for the store; by default a journal in `output`.
    workers
        Processes to use on this machine. Above 1 the caller's script must guard its main part, as for all of Python's
        multiprocessing.
    dask
        Address of a Dask scheduler, or its scheduler file, whose workers are used instead.
    seed
        Of the split and of everything drawn at random.
    command
        Kept in ``front.json``: how the search was started.
    report
        Called now and then. An interrupt (Ctrl-C), or a file ``stop`` in `output`, ends the search early; the front of
        what was found is made.
    """
    began = time.monotonic()
    frame = read_frame(table)
    unknown = [name for name in drop if name not in frame.columns]
    if unknown:
        raise error("columns of the table", unknown, where="drop", remedy=near(unknown[0], frame.columns))
    frame = frame.drop(columns=list(drop))
    tests = None if test is None else read_frame(test)
    views = make_views(frame, target, test=tests, image_shape=image_shape, seed=seed)
    limits = Limits(budget_bits, max_operations)
    chosen = kinds.parse_families(families, views)
    least = kinds.smallest_bits(chosen, views)
    if budget_bits is not None and budget_bits < least:
        remedy = f"allow {-(-least // 8):,} bytes"
        raise error(f"a budget of at least {least:,} bits", f"{budget_bits:,}", where="budget", remedy=remedy)
    directory = Path(output)
    _make(directory)
    meaning = {"table": _fingerprint(frame, tests), "target": target, "seed": seed}
    store = Store(directory, storage, meaning, limits, seed)
    crew = _crew(views, workers, dask)
    live = Live(directory, heading(views, limits, max_error, seed, command), limits, max_error)
    search = Search(views, store, crew, limits, chosen, directory, seed, report, began, seconds, live)
    ended = "failed"
    try:
        with interruptible() as interrupted:

            def stopped() -> bool:
                return interrupted.is_set() or live.stopped()

            search.run(stopped)
            finals = search.finals(stopped)
            found = conclude(finals, views, limits, max_error, directory, seed, command, search.failures)
            ended = "done"
            return found
    finally:
        live.end(ended)
        crew.close()


def _crew(views: Views, workers: int, dask: str | None) -> Workers:
    if dask is not None:
        return Cluster(views, dask)
    return Processes(views, workers) if workers > 1 else Workers(views)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with atomic_path(directory / ".probe") as probe:
            probe.write_bytes(b"")
        (directory / ".probe").unlink()
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
