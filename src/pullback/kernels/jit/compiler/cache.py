"""Compiled objects on disk: named by what they were compiled from, checked when read, replaced as a whole.

The folder is $PULLBACK_CACHE, or `pullback` in the user's cache folder. What lies there is run, so each time the opened
folder and the opened file must be this user's and nobody else's to write. Where there is no such folder, nothing is
kept and everything still works.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pullback._runtime import files
from pullback.kernels.jit.compiler import target

DIGEST = 32
LIMIT = 256 * 2**20
"""Bytes kept; when there are more, the objects longest unused go."""
KINDS = (".object", ".note")
"""Objects, and notes that say which of them was made by which recipe."""
DAY = 24 * 3600
OTHERS_WRITE = 0o022
SAFELY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
"""How a file is opened: not through a link, and without waiting for somebody to write to a pipe."""


@cache
def folder() -> Path | None:
    """Where objects are kept, or None if they are not."""
    try:
        path = chosen_folder()
        if path is None:
            return None
        path.mkdir(exist_ok=True, mode=0o700)
        with opened(path):
            pass
    except (OSError, RuntimeError, ValueError):  # no right, no home, no such name
        return None
    return path


def chosen_folder() -> Path | None:
    """The folder the user wants, in folders that are there."""
    chosen = os.environ.get("PULLBACK_CACHE")
    if chosen is not None:
        if not chosen:
            return None
        path = Path(chosen).expanduser().absolute()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path
    place = user_folder()
    if place is None:
        return None
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place / "pullback"


def user_folder() -> Path | None:
    """The system's place for things that can be made again; None for users who have no home."""
    variable = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    given = os.environ.get(variable)
    if given and os.path.isabs(given):
        return Path(given)
    home = Path.home()
    if not home.is_absolute() or not home.is_dir():
        return None
    return home / {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")


def is_own(facts: os.stat_result) -> bool:
    """Whether only this user can have written something."""
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid == os.geteuid() and not facts.st_mode & OTHERS_WRITE


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """The folder itself, open, so that a name in it means that folder; raises if it is not this user's own."""
    if os.open not in os.supports_dir_fd:
        yield None
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not is_own(os.fstat(descriptor)):
            raise PermissionError(f"{path} is not only this user's")
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def prune(path: Path) -> None:
    """Remove the objects longest unused until the rest is under the limit, and what was never finished.

    Once in a process, before it adds to them: one that only reads has no time to look at thousands of files.
    """
    files.sweep(str(path))
    kept = []
    with os.scandir(path) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process is doing the same
                facts = entry.stat(follow_symlinks=False)
                if entry.name.endswith(KINDS):
                    kept.append((facts.st_mtime, facts.st_size, entry.path))
                elif entry.name.endswith(files.SUFFIX) and time.time() - facts.st_mtime > DAY:
                    os.unlink(entry.path)
    total = 0
    for _, size, file in sorted(kept, reverse=True):
        total += size
        if total > LIMIT:
            with suppress(OSError):
                os.unlink(file)


def key_of(text: str) -> str:
    """The name of what a text compiles to: the text, the CPU and the compiler decide."""
    facts = (text, target.CPU, target.flags(), target.LLVM_VERSION, sys.implementation.cache_tag, object.__basicsize__)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


WRITERS = ("kernels/jit", "compiler/native", "_arrays", "_thresholds.py", "_dtype.py")
"""The sources that decide what the text of a kernel is."""


@cache
def sources() -> str:
    """What differs where those sources do: their names, sizes and times, by which Python knows its bytecode, too."""
    package = Path(__file__).parents[3]
    facts: list[Any] = [str(package)]
    waiting = [str(package / name) for name in WRITERS]
    while waiting:
        path = waiting.pop()
        if path.endswith(".py"):
            found = os.stat(path)
            facts.append((path, found.st_size, found.st_mtime_ns))
            continue
        with os.scandir(path) as entries:
            waiting += sorted([e.path for e in entries if e.name.endswith(".py") or (e.is_dir() and e.name[0] != "_")])
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def read(key: str, kind: str = ".object") -> bytes | None:
    """The object or note of that name, if it is there, this user's, and whole."""
    place = folder()
    if place is None:
        return None
    try:
        data = content_of(place, key + kind)
    except OSError:
        return None
    return data[DIGEST:] if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST] else None


def content_of(place: Path, name: str) -> bytes:
    """The bytes of a file of this user's; nothing for one that is not, or is no file."""
    with opened(place) as within:
        descriptor = os.open(place / name if within is None else name, SAFELY, dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or not is_own(facts) or facts.st_size > LIMIT:
            return b""
        if time.time() - facts.st_mtime > DAY and os.utime in os.supports_fd:
            os.utime(descriptor)  # it has been used: see `prune`
        return file.read()


def write(key: str, data: bytes, kind: str = ".object") -> None:
    """Keep an object or a note; other processes see all of it or nothing."""
    place = folder()
    if place is None:
        return
    with suppress(OSError), opened(place):
        prune(place)
        name, file = files.temporary(str(place), 0o600)
        try:
            with file:
                file.write(hashlib.sha256(data).digest() + data)
                file.flush()
                if os.name == "nt":
                    file.close()  # Windows renames no file that is open
                os.replace(name, place / f"{key}{kind}")
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
