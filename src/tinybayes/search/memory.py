"""What a worker process gives back to the system between two pieces of work.

LLVM leaves free pages behind for each program that it compiles, and JAX keeps every program; a search meets hundreds of
shapes, each with programs of its own. So free pages go back after each piece of work, which takes milliseconds. Once
the process has grown by more than `GROWTH`, JAX lets go of all programs; those that are needed again come from its
cache on disk, in about a second. What is left then is not JAX's (such as the rows of a lesson): programs are let go of
again only after the process has grown by a further `AGAIN`.
"""

import ctypes
import gc
import mmap
import sys
from pathlib import Path

GROWTH = 400_000_000  # bytes beyond those at the start: the programs of three or four kinds of networks
AGAIN = 100_000_000  # bytes beyond those that were left the last time
STATM = Path("/proc/self/statm")  # Linux only


class Memory:
    """The memory of this process, from now on."""

    def __init__(self) -> None:
        self._limit = resident() + GROWTH
        self._left = 0  # bytes that this process held after programs were let go of
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None

    def give_back(self) -> None:
        """Give back what is not needed; nothing is done elsewhere than on Linux with the GNU C library."""
        if self._trim is None:
            return
        self._trim(0)
        now = resident()
        self._left = min(self._left, now)
        if now > max(self._limit, self._left + AGAIN) and "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
            gc.collect()
            self._trim(0)
            self._left = resident()


def resident() -> int:
    """Return the bytes that this process holds, or 0 where the system does not say so."""
    try:
        return int(STATM.read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0
