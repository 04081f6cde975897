"""Writing files so that a crash, a full disk or an interrupt never leaves half of one behind."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tinybayes.errors import FileError, error


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name in the directory of `path`; rename it to `path` when the block succeeds.

    The temporary keeps the suffix of `path`, since libraries choose the format by it. When the block raises,
    the temporary is removed and whatever stood at `path` before is untouched; what the system refuses becomes
    a `FileError`.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix="".join(target.suffixes) or ".tmp")
    except OSError as problem:
        raise error(
            "a directory that can be written to",
            problem.strerror or problem,
            where=str(target.parent),
            remedy="create it or choose another output",
            kind=FileError,
        ) from problem
    os.close(handle)
    temporary = Path(name)
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
        if isinstance(problem, OSError):  # a full disk, or a directory of that name
            reason = problem.strerror or problem
            raise error("a file that can be written", reason, where=str(path), kind=FileError) from problem
        raise
