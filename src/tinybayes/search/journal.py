"""The journal file of a search, which a killed process can neither lock for ever nor leave with half a line.

Optuna's own locks are files: what a killed process left is taken for abandoned after half a minute. A lock of the
system ends with its process. A line that was cut off, by a kill or a full disk, would join the next one and make the
whole file unreadable; it was never finished, so whoever writes next takes it away.
"""

import fcntl
import os

from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

PIECE = 1 << 16


class SystemLock(JournalFileOpenLock):
    """A lock on a file beside the journal, held by the system; taking it ends the journal with a whole line."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path
        self._handle = -1

    def acquire(self) -> bool:
        """Wait for the lock."""
        handle = os.open(f"{self._path}.lock", os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            cut_half_line(self._path)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def release(self) -> None:
        """Let the lock go."""
        os.close(self._handle)


def cut_half_line(path: str) -> None:
    """Take away what stands after the last whole line of a file."""
    with open(path, "r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - PIECE)
            file.seek(start)
            line = file.read(end - start).rfind(b"\n")
            if line >= 0:
                end = start + line + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def journal(path: str) -> JournalFileBackend:
    """Open the journal of a search."""
    return JournalFileBackend(path, lock_obj=SystemLock(path))
