"""What is made on first use: the code of ops, kernels, modules that are loaded late. One at a time, and never by half.

    made(work) ............ one thread at a time makes something, and no interrupt ends it halfway: Python raises
                            KeyboardInterrupt in the main thread, so what that one needs is made by another
    loaded(name) .......... a module, imported in the same way
    with building: ........ one thread at a time, for what an interrupt may end
    with uncollected(): ... what is made lives on, so the garbage collector need not look at it
    guarded(lock) ......... a lock of which the child of a fork may be sure that nobody holds it

A fork waits for all of them, so that the child finds nothing half done. `building` is taken last: who holds it takes no
other lock of this library, nor does a module that is imported without it take it. Only the compiler's own lock, which
is in `inmost`, comes later still.
"""

from __future__ import annotations

import _imp
import _thread
import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar
from weakref import ref

T = TypeVar("T")
building: Any = threading.RLock()
guards: dict[int, Any] = {}
"""Weak references to the locks that are held while the process forks."""
inmost: list[Any] = []
"""Such locks of other libraries, which whoever makes something takes: after `building`."""
latest: Any = _thread.allocate_lock()
"""Held until what the main thread last had done by another is done: what undoes it must not overtake it."""


def guarded(lock: Any) -> Any:
    """A lock that one thread may take several times, from now on held while the process forks."""
    guards[id(lock)] = ref(lock, partial(guards.pop, id(lock)))
    return lock


def made(work: Callable[[], T]) -> T:
    """What `work` makes: by nobody else meanwhile, and to the end whatever happens to who asked."""

    def alone() -> T:
        with building:
            return work()

    return alone() if building._is_owned() else uninterrupted(alone)


def loaded(name: str) -> Any:
    """The module of this name."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    return uninterrupted(lambda: importlib.import_module(name))


def uninterrupted(work: Callable[[], T]) -> T:
    """What `work` gives, in another thread if this is the one that interrupts come to; it ends there even so.

    Inside of an import another thread might wait for this one, so it is not asked.
    """
    global latest
    if threading.current_thread() is not threading.main_thread() or _imp.lock_held() or importing(mine=True):
        return work()
    answer: list[T] = []
    failure: list[BaseException] = []
    context, before = copy_context(), latest
    done, ended = _thread.allocate_lock(), _thread.allocate_lock()

    def task() -> None:
        with before:  # an interrupt may have come while it was at work
            pass
        try:
            answer.append(context.run(work))
        except BaseException as error:
            failure.append(error)
        finally:
            done.release()
            ended.release()

    done.acquire()
    ended.acquire()
    try:
        latest = ended
        _thread.start_new_thread(task, ())  # no interrupt comes between an assignment and this
    except RuntimeError:  # no more threads can be started, or the interpreter is about to end
        latest = before
        return work()
    done.acquire()
    if failure:
        raise failure.pop()
    for variable, value in context.items():  # such as NumPy's allocator
        if variable.get(None) is not value:
            variable.set(value)
    return answer.pop()


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of cyclic garbage inside, unless somebody asks for one."""
    collecting = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collecting:
            gc.enable()


# ------------------------------------------------------------------ forks

PACKAGES = ("pullback", "llvmlite", "ml_dtypes", "scipy")
"""What this library imports late."""


class Held(threading.local):
    """What this thread has taken to fork the process."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


held = Held()


def before_fork() -> None:
    """Wait until nothing is half done. Other locks come before `building`: who holds them may need something made."""
    while True:
        for lock in [*(known() for known in list(guards.values())), building, *inmost]:
            if lock is not None:
                lock.acquire()
                held.locks.append(lock)
        pending = importing()
        if not pending:
            return
        after_fork()
        for name in pending:
            try:
                importlib.import_module(name)  # which waits for the thread that is at it
            except ImportError:
                continue  # that thread is told as well


def after_fork() -> None:
    """Let everybody go on, in the parent and in the child."""
    while held.locks:
        held.locks.pop().release()


def after_fork_in_child() -> None:
    """The same, and what other threads have begun to import since is begun anew: they do not exist here."""
    global latest
    latest = _thread.allocate_lock()
    for name in importing():
        locks().pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]
    for lock in [known() for known in list(guards.values())]:
        if lock is not None and lock not in held.locks:  # made since
            lock._at_fork_reinit()
    after_fork()


def locks() -> dict[str, Any]:
    """Python's locks of the modules that are being imported: weak references by name."""
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


def importing(mine: bool = False) -> list[str]:
    """The modules of PACKAGES that other threads are importing at this moment, or all that this one is."""
    found, me = [], _thread.get_ident()
    for name, known in list(locks().items()):
        owner = getattr(known(), "owner", None)
        if owner is not None and (owner == me if mine else owner != me and name.partition(".")[0] in PACKAGES):
            found.append(name)
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork_in_child)
