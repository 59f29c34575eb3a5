"""Files that are there as a whole or not at all: temporaries beside them, and what killed programs leave behind.

A temporary is locked by the program that writes it. The system drops the lock when the program ends, however it
ends, so a temporary nobody has locked is one nobody will finish: `sweep` removes it.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import suppress
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".pullback-", ".part"
ABANDONED = 24 * 3600
"""Seconds after which a temporary counts as left behind where files cannot be locked."""


def temporary(folder: str, mode: int) -> tuple[str, BinaryIO]:
    """A new file in a folder, open and locked, for content that is not complete yet.

    Args:
        folder: where the file will be.
        mode: its permissions, of which the user's umask takes away.
    """
    while True:
        path = os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with suppress(FileExistsError):
            file = os.fdopen(os.open(path, flags, mode), "w+b")
            if keep(path, file):
                return path, file
            file.close()


def keep(path: str, file: BinaryIO) -> bool:
    """Lock a new temporary; False if somebody took it for a left-over before it was locked."""
    if fcntl is not None:
        # A file system without locks says so to those who sweep, too.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def sweep(folder: str) -> None:
    """Remove the temporaries of programs that were killed while they wrote to a folder."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX)]
    except OSError:
        return
    for path in found:
        with suppress(OSError):
            remove_if_abandoned(path)


def remove_if_abandoned(path: str) -> None:
    """Remove a temporary if it is this user's and its writer is gone."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        mine = not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
        if not mine or not stat.S_ISREG(facts.st_mode):
            return
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
            return
    finally:
        os.close(descriptor)
    if time.time() - facts.st_mtime > ABANDONED:
        os.unlink(path)
