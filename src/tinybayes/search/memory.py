"""What a worker process gives back to the system between two pieces of work.

LLVM leaves free pages behind for each program that it compiles, and JAX keeps every program; a search meets hundreds of
shapes, each with programs of its own. So free pages go back after each piece of work, which takes milliseconds. Once
the process has grown by more than `GROWTH`, JAX lets go of all programs; those that are needed again come from its
cache on disk, in about a second.
"""

import ctypes
import gc
import mmap
import sys
from pathlib import Path

GROWTH = 400_000_000  # bytes beyond those at the start: the programs of three or four kinds of networks
STATM = Path("/proc/self/statm")  # Linux only


class Memory:
    """The memory of this process, from now on."""

    def __init__(self) -> None:
        self._at_start = resident()
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None

    def give_back(self) -> None:
        """Give back what is not needed; elsewhere than on Linux nothing is done."""
        if self._trim is None:
            return
        self._trim(0)
        if resident() - self._at_start > GROWTH and "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
            gc.collect()
            self._trim(0)


def resident() -> int:
    """Return the bytes that this process holds, or 0 where the system does not say so."""
    try:
        return int(STATM.read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0
