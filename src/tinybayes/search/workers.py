"""Workers that carry out the runs of a search: this process, other processes, or a Dask cluster."""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Protocol

from tinybayes import __version__
from tinybayes.errors import TinybayesError, error
from tinybayes.search.families import Setting
from tinybayes.search.families.family import Effort
from tinybayes.search.lessons import Teaching, teach
from tinybayes.search.memory import Memory
from tinybayes.search.trials import Outcome, carry_out
from tinybayes.search.views import Views

ONE_CORE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
PAUSE = 0.02  # seconds between two looks at running work
PATIENCE = 30  # seconds to wait for the first worker of a cluster
RETRIES = 3  # how often work is given out again whose worker was lost


class Work(Protocol):
    """Something that was given out and will be done."""

    def done(self) -> bool:
        """Return whether it is done."""

    def result(self) -> Any:
        """Return the outcomes."""


class Workers:
    """Carries out work one after another in this process; the others give it to someone else."""

    def __init__(self, views: Views, count: int = 1) -> None:
        self.views, self._count = views, count

    @property
    def count(self) -> int:
        """The number of workers."""
        return self._count

    def submit(self, settings: Sequence[Setting], effort: Effort) -> Work:
        """Give out settings of one shape."""
        future: Future[list[Outcome]] = Future()
        try:
            future.set_result(carry_out(self.views, settings, effort))
        except TinybayesError as problem:
            future.set_exception(problem)
        return future

    def teach(self, path: Path, seconds: float, seed: int) -> Work | None:
        """Give out the training of a teacher; None where no worker can leave a file for the others."""
        future: Future[Teaching] = Future()
        try:
            future.set_result(teach(self.views, path, seconds, seed))
        except TinybayesError as problem:
            future.set_exception(problem)
        return future

    def close(self) -> None:
        """Let the workers go."""


class Processes(Workers):
    """Processes of this machine; each takes one core."""

    def __init__(self, views: Views, count: int) -> None:
        super().__init__(views, count)
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # a fork would copy JAX's threads' locks without the threads
        # A thread of the queue hands over the table. As an argument, it would let this process wait for each of the
        # others to start, one after another.
        table = context.Queue()
        table.cancel_join_thread()
        for _ in range(self._count):
            table.put(self.views)
        return ProcessPoolExecutor(self._count, context, _begin, (table, os.getpid()))

    def submit(self, settings: Sequence[Setting], effort: Effort) -> Work:
        """Give out settings of one shape; where a process died, new ones are begun."""
        try:
            return self._pool.submit(_in_process, settings, effort)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._new_pool()
            return self._pool.submit(_in_process, settings, effort)

    def teach(self, path: Path, seconds: float, seed: int) -> Work | None:
        """Let a process train a teacher."""
        return self._pool.submit(_teach_in_process, path, seconds, seed)

    def close(self) -> None:
        """End the processes."""
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)


class Cluster(Workers):
    """The workers of a Dask cluster, named by the address of its scheduler or the path of its scheduler file."""

    def __init__(self, views: Views, address: str) -> None:
        from tinybayes.data.dask import connect

        super().__init__(views)
        self._client = connect(address)
        self._check(address)
        self._views = self._client.scatter(views, broadcast=True, hash=False)

    @property
    def count(self) -> int:
        """How many workers there are now."""
        return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def _check(self, address: str) -> None:
        """Refuse workers that do not have this version of the package."""
        if not self._client.scheduler_info(n_workers=-1)["workers"]:
            try:
                self._client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError as problem:
                got, remedy = f"none within {PATIENCE} s", f"start some with 'dask worker {address}'"
                raise error("workers", got, where=f"Dask cluster {address}", remedy=remedy) from problem
        for worker, answer in self._client.run(_version_of_worker, on_error="return").items():
            if answer != __version__:
                got = f"{answer!r}"[:200]
                remedy = "install the same version of tinybayes where the worker runs"
                raise error(f"tinybayes {__version__}", got, where=f"worker {worker} of {address}", remedy=remedy)

    def submit(self, settings: Sequence[Setting], effort: Effort) -> Work:
        """Give out settings of one shape; work of a lost worker goes to another one."""
        return _Elsewhere(self._client.submit(_on_worker, self._views, settings, effort, pure=False, retries=RETRIES))

    def teach(self, path: Path, seconds: float, seed: int) -> Work | None:
        """Train no teacher: workers on other machines may not see the directory of the search."""
        return None

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self._client.close()


class _Elsewhere:
    """Work of a cluster; errors about lost workers become those that Python's own pools raise."""

    def __init__(self, future: Any) -> None:
        self._future = future

    def done(self) -> bool:
        return bool(self._future.done())

    def result(self) -> Any:
        from distributed import KilledWorker

        try:
            return self._future.result()
        except (KilledWorker, CancelledError) as problem:
            raise RuntimeError(f"workers were lost: {problem}") from problem


def gather(
    running: list[tuple[Any, Work]],
    finish: Callable[[Any, Work], None],
    *,
    until: float = float("inf"),
    in_order: bool = False,
) -> list[tuple[Any, Work]]:
    """Wait until some work is done or the time has come, hand it to `finish`, and return the rest.

    With `in_order` only the first is waited for: what is done before it waits, and nothing depends on who was quick.
    """
    while running and time.monotonic() < until:
        done = [work.done() for _, work in (running[:1] if in_order else running)]
        done += [False] * (len(running) - len(done))
        for (batch, work), ended in zip(running, done, strict=True):
            if ended:
                finish(batch, work)
        if any(done):
            return [pair for pair, ended in zip(running, done, strict=True) if not ended]
        time.sleep(PAUSE)
    return running


_views: Views | None = None  # of a process of `Processes`
_memory: Memory | None = None  # its own


def _begin(table: "multiprocessing.Queue[Views]", parent: int) -> None:
    """Begin a process: it has one core for itself, leaves Ctrl-C to its parent, and ends with it."""
    import signal

    global _views, _memory
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    take_one_core()
    _views, _memory = table.get(), Memory()


def take_one_core() -> None:
    """Keep JAX from using more than one core, unless it was loaded before."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "jax" not in sys.modules and ONE_CORE not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_CORE}".strip()


def _end_with(parent: int) -> None:
    """End this process when its parent was killed: nobody is left to take its results."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _in_process(settings: Sequence[Setting], effort: Effort) -> list[Outcome]:
    assert _views is not None
    assert _memory is not None
    try:
        return carry_out(_views, settings, effort)
    finally:
        _memory.give_back()


def _teach_in_process(path: Path, seconds: float, seed: int) -> Teaching:
    assert _views is not None
    assert _memory is not None
    try:
        return teach(_views, path, seconds, seed)
    finally:
        _memory.give_back()


def _on_worker(views: Views, settings: Sequence[Setting], effort: Effort) -> list[Outcome]:
    """Carry out settings on a worker of a cluster; one with a single thread takes a single core."""
    from distributed import get_worker

    if get_worker().state.nthreads == 1:
        take_one_core()
    return carry_out(views, settings, effort)


def _version_of_worker() -> str:
    from tinybayes import __version__

    return __version__
