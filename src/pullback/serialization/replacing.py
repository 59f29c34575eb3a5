"""Writing a file so that the old content is there until the new one is complete.

The new content goes to a temporary in the same folder, which then takes the old file's name, owner, mode and extended
attributes. Where a new file cannot be the old one, because it has several names (hard links), belongs to somebody
else, is this program's own output, is mounted, or lies in a folder that cannot be written to, the complete content is
copied into it instead, after the space for it was had: it stays the same file, and only a crash during that copy can
damage it. What is no file at all (a device, a pipe) is simply written to.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

from pullback._runtime import files

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_HERE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
"""What the system says of a folder nothing can be put into."""
STANDARD_STREAMS = range(3)


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file whose content becomes that of `path` when the block has ended without an error, and not before.

    Raises what `open(path, "wb")` raises, and changes nothing then.
    """
    given = os.fspath(path)
    if not is_file_to_be(given):
        with open(given, "wb") as plain:
            yield Stream(plain)  # type: ignore[misc]
        return
    with ExitStack() as closing:
        old = closing.enter_context(opened(given)) if os.path.exists(given) else None
        real = place_of(given)
        name, file = room_beside(real, old, given)
        closing.callback(remove, name)
        closing.enter_context(file)
        yield file
        file.flush()
        os.fsync(file.fileno())
        if old is None:
            move(name, file, real)
        elif name is None or not can_replace(file, old, real) or not moved_over(name, file, old, real):
            overwrite(old, file)


def is_file_to_be(given: str) -> bool:
    """Whether a path names a regular file, or nothing yet where one could be."""
    try:
        return stat.S_ISREG(os.stat(given).st_mode)
    except FileNotFoundError:
        return os.path.basename(given) not in ("", os.curdir, os.pardir)


def opened(given: str) -> BinaryIO:
    """A file to write to, not emptied: the system says whether that is allowed."""
    return os.fdopen(os.open(given, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb")


def place_of(given: str) -> str:
    """The path of the file itself, behind all links."""
    real = given
    while os.path.islink(real):  # no circle: the system has been asked about this path before
        real = os.path.join(os.path.dirname(real), os.readlink(real))
    return real


def room_beside(real: str, old: BinaryIO | None, given: str) -> tuple[str | None, BinaryIO]:
    """A temporary in the folder of a file; one without a name elsewhere, if only the file itself can be written to."""
    folder = os.path.dirname(real) or os.curdir
    files.sweep(folder)
    try:
        # A file that is not there yet gets the permissions of every new file; any other is nobody else's to read.
        return files.temporary(folder, 0o666 if old is None else 0o600)
    except OSError as error:
        if old is not None and error.errno in NOT_HERE:
            return None, tempfile.TemporaryFile()
        raise OSError(error.errno, error.strerror, given) from None


def can_replace(file: BinaryIO, old: BinaryIO, real: str) -> bool:
    """Make a new file the old one's equal in all but its content; False if it cannot be."""
    facts = os.fstat(old.fileno())
    try:
        if facts.st_nlink != 1 or not os.path.samestat(facts, os.stat(real)) or is_own_output(facts):
            return False
        if hasattr(os, "fchown"):
            mine = os.fstat(file.fileno())
            if (mine.st_uid, mine.st_gid) != (facts.st_uid, facts.st_gid):
                os.fchown(file.fileno(), facts.st_uid, facts.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(facts.st_mode))
        copy_attributes(old, file)
    except OSError:
        return False
    return True


def is_own_output(facts: os.stat_result) -> bool:
    """Whether a file is where this program's output goes: the next line printed must find it."""
    for descriptor in STANDARD_STREAMS:
        with suppress(OSError):
            if os.path.samestat(facts, os.fstat(descriptor)):
                return True
    return False


def copy_attributes(old: BinaryIO, new: BinaryIO) -> None:
    """Extended attributes, among them lists of who may do what."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(old.fileno())
    except OSError:
        return  # a file system without them
    have = os.listxattr(new.fileno())
    for name in names:
        value = os.getxattr(old.fileno(), name)
        if name not in have or os.getxattr(new.fileno(), name) != value:
            os.setxattr(new.fileno(), name, value)


def move(name: str | None, file: BinaryIO, real: str) -> None:
    """Give a temporary its name."""
    assert name is not None
    if os.name == "nt":
        file.close()  # Windows renames no file that is open
    os.replace(name, real)


def moved_over(name: str, file: BinaryIO, old: BinaryIO, real: str) -> bool:
    """Give a temporary the name of an old file; False if that cannot be moved away, as a mounted file cannot."""
    if os.name == "nt":
        old.close()
    try:
        move(name, file, real)
    except OSError as error:
        if os.name != "nt" and error.errno in (errno.EBUSY, errno.EXDEV, *NOT_HERE):
            return False
        raise
    return True


def overwrite(old: BinaryIO, new: BinaryIO) -> None:
    """Copy content into a file that stays the same file, once there is space for all of it."""
    length, before = os.fstat(new.fileno()).st_size, os.fstat(old.fileno()).st_size
    if hasattr(os, "posix_fallocate") and length:
        try:
            os.posix_fallocate(old.fileno(), 0, length)
        except OSError as error:
            os.ftruncate(old.fileno(), before)
            if error.errno in NO_SPACE:
                raise
    new.seek(0)
    shutil.copyfileobj(new, old)
    old.truncate(length)
    old.flush()
    os.fsync(old.fileno())


def remove(name: str | None) -> None:
    """Remove a temporary, if it is still there under its first name."""
    if name is not None:
        with suppress(FileNotFoundError):
            os.unlink(name)


class Stream:
    """A device or a pipe: it takes bytes in order, and has no position to go back to."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, content: Any) -> int:
        """Write all of it."""
        return self.file.write(content)

    def flush(self) -> None:
        """Hand over what was written."""
        self.file.flush()
