"""Compiled objects on disk: named by what they were compiled from, checked when read, replaced as a whole.

The folder is $PULLBACK_CACHE, or `pullback` in the user's cache folder. Where it cannot be written or belongs to
somebody else, nothing is kept and everything still works.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from pullback.kernels.jit import target

DIGEST = 32
LIMIT = 256 * 2**20
"""Bytes kept; when there are more, the objects longest unused go."""


@cache
def folder() -> Path | None:
    """Where objects are kept, or None if they are not."""
    chosen = os.environ.get("PULLBACK_CACHE")
    if chosen is not None and not chosen:
        return None
    path = Path(chosen).expanduser() if chosen else user_folder() / "pullback"
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        # What lies there is run: it must have been written by this user.
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None
        if path.stat().st_mode & 0o022 and os.name == "posix":
            return None
        prune(path)
    except (OSError, RuntimeError):
        return None
    return path


def user_folder() -> Path:
    """The system's place for things that can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def prune(path: Path) -> None:
    """Remove the objects longest unused until the rest is under the limit."""
    kept = sorted(((p.stat().st_mtime, p.stat().st_size, p) for p in path.glob("*.object")), reverse=True)
    total = 0
    for _, size, file in kept:
        total += size
        if total > LIMIT:
            file.unlink(missing_ok=True)


def key_of(text: str) -> str:
    """The name of what a text compiles to: the text, the CPU and the compiler decide."""
    facts = (text, target.CPU, target.flags(), target.LLVM_VERSION, sys.implementation.cache_tag, object.__basicsize__)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def read(key: str) -> bytes | None:
    """The object of that name, if it is there and whole."""
    place = folder()
    if place is None:
        return None
    try:
        data = (place / f"{key}.object").read_bytes()
    except OSError:
        return None
    return data[DIGEST:] if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST] else None


def write(key: str, data: bytes) -> None:
    """Keep an object; other processes see all of it or nothing."""
    place = folder()
    if place is None:
        return
    try:
        handle, name = tempfile.mkstemp(dir=place, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(name, place / f"{key}.object")
    except OSError:
        return
