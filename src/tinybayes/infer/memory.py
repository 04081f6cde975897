"""The memory that exact inference takes at most, if nothing else is said."""

import os
from functools import cache
from pathlib import Path


@cache
def default_bytes() -> int:
    """Return half of the machine's memory, or of the container's."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        whole = 8 * 2**30
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()  # of a container
    except OSError:
        limit = ""
    return (min(whole, int(limit)) if limit.isdecimal() else whole) // 2
