"""Running a kernel over blocks on all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def thread_count() -> int:
    """Return how many threads to use: ``TINYBAYES_THREADS``, or the cores this process may run on."""
    asked = os.environ.get("TINYBAYES_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def for_blocks(work: Callable[[int, int], None], size: int, block: int) -> None:
    """Call ``work(start, stop)`` for consecutive blocks of ``range(size)``, on all cores.

    The calls must write to disjoint places. An exception in one of them is raised here.
    """
    starts = range(0, size, block)
    threads = min(thread_count(), len(starts))
    if threads <= 1:
        for start in starts:
            work(start, min(start + block, size))
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda start: work(start, min(start + block, size)), starts):
            pass
