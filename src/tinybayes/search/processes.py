"""Which processes of this machine still run."""

import os


def is_alive(process: int) -> bool:
    """Return whether a process with this number exists, whoever owns it."""
    if process <= 0:  # groups of processes, for the system
        return False
    try:
        os.kill(process, 0)  # tests only
    except PermissionError:
        return True  # exists, but belongs to another user
    except (OSError, OverflowError):
        return False
    return True
