"""Writing files so that a crash, a full disk or an interrupt never leaves half of one behind.

A file is written under a temporary name, which is locked meanwhile, and renamed when it is complete. The next writer
removes temporary files that no process holds. `tests/faults` kills commands at every step to check this.
"""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tinybayes.errors import FileError, error

try:
    import fcntl
except ImportError:  # Windows: files of killed processes are not removed
    fcntl = None  # type: ignore[assignment]

NO_WAIT = getattr(os, "O_NONBLOCK", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | NO_WAIT
PREFIX = ".tinybayes-tmp-"
TEMPORARY = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}\.")


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name in the directory of `path`; rename it to `path` when the block succeeds.

    The temporary keeps the suffix of `path`, since libraries choose the format by it. When the block raises, it is
    removed and an earlier file at `path` stays untouched; an `OSError` becomes a `FileError`. Temporaries that killed
    processes left in the directory are removed. A device or a pipe is refused: a file of its name would take its place,
    and root would be left without /dev/null.
    """
    target = Path(path)
    _refuse_special(target)
    try:
        remove_abandoned(target.parent)
        handle, temporary = _temporary(target)
    except OSError as problem:
        got, remedy = problem.strerror or problem, "create it or choose another output"
        expected = "a directory that can be written to"
        raise error(expected, got, where=str(target.parent), remedy=remedy, kind=FileError) from problem
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes private files; give the result the permissions an ordinary open() would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if not isinstance(problem, OSError):
            raise
        got = problem.strerror or problem  # a full disk, or a directory of that name
        raise error("a file that can be written", got, where=str(path), kind=FileError) from problem
    finally:
        if handle is not None:
            os.close(handle)


def _refuse_special(target: Path) -> None:
    """Refuse a device, a pipe or a socket, and links among the devices, such as /dev/stdout; others are replaced."""
    try:
        mode = os.lstat(target).st_mode
    except (OSError, ValueError):  # there is nothing, or the directory cannot be looked into: the caller will see
        return
    among_devices = stat.S_ISLNK(mode) and target.parent.resolve() == Path("/dev")
    if among_devices or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        remedy = "name a file"
        raise error(
            "a file that can be written", "a device or a pipe", where=str(target), remedy=remedy, kind=FileError
        )


def _temporary(target: Path) -> tuple[int | None, Path]:
    """Make a temporary file beside the target, locked as long as this process holds it open."""
    while True:
        suffix = "".join(target.suffixes) or ".tmp"
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=PREFIX, suffix=suffix)
        if fcntl is None:
            os.close(handle)
            return None, Path(name)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # someone took it for abandoned before it was locked


def regular(path: str, flags: int) -> int:
    """Open a regular file, and neither a link nor a pipe, for which `open` would wait; an opener for `open`.

    The directory of a search may belong to others: a link in it could name any file of this user's.
    """
    handle = os.open(path, flags | NO_LINK, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "a link, a pipe or a device", str(path))
    return handle


def named(path: str, flags: int) -> int:
    """Open a file that the user named, which may be a link to one, but no pipe or device; an opener for `open`.

    Opening a pipe waits for a writer, and devices such as /dev/zero never end.
    """
    handle = os.open(path, flags | NO_WAIT, 0o666)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        what = "a directory" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise OSError(errno.EINVAL, what, str(path))
    return handle


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a regular file of up to `limit` bytes; raise an `OSError` for others."""
    with open(path, "rb", opener=regular) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes", str(path))
    return content


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is anything of that name."""
    return _mode(path) != 0


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a regular file of that name."""
    return stat.S_ISREG(_mode(path))


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a directory of that name."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: str | os.PathLike[str]) -> int:
    """Return the mode of a file, 0 where there is none; where nobody can say, as in another's directory, say why."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error("a path that can be looked up", reason, where=str(path), kind=FileError) from problem


def made_directory(path: Path) -> Path:
    """Make a directory, unless there is one."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as problem:
        got, remedy = problem.strerror or problem, "was it removed, or is there a file of that name?"
        raise error("a directory that can be made", got, where=str(path), remedy=remedy, kind=FileError) from problem
    return path


def remove_abandoned(directory: Path) -> None:
    """Remove the temporaries in a directory whose process is gone: nobody holds their lock any more."""
    if fcntl is None:
        return
    leftovers: list[str] = []
    with suppress(OSError), os.scandir(directory) as entries:
        leftovers = [
            entry.path for entry in entries if TEMPORARY.match(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for path in leftovers:
        with suppress(OSError):  # it is gone, another user's, or its process is at work
            handle = regular(path, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(handle)
