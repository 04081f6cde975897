"""Running a kernel over blocks on all cores.

Each block writes to its own part of the output. Sums over blocks are added in block order, and the number of blocks
does not depend on the number of threads. So results do not depend on the number of threads.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def thread_count() -> int:
    """Return how many threads to use: ``TINYBAYES_THREADS``, or the cores this process may run on."""
    asked = os.environ.get("TINYBAYES_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def for_blocks(work: Callable[[int, int], None], size: int, block: int) -> None:
    """Call ``work(start, stop)`` for consecutive blocks of ``range(size)``, on all cores.

    The calls must write to disjoint places. An exception in one of them is raised here.
    """
    starts = deque(range(0, size, block))

    def take() -> None:
        while True:
            try:
                start = starts.popleft()
            except IndexError:
                return
            work(start, min(start + block, size))

    helpers = min(thread_count(), len(starts)) - 1
    if helpers <= 0:
        take()
        return
    # One task a thread, which takes block after block: a task for each block would cost more than a small block.
    with ThreadPoolExecutor(helpers) as pool:
        others = [pool.submit(take) for _ in range(helpers)]
        take()
    for other in others:
        other.result()
