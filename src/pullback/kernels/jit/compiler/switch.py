"""Whether kernels are compiled: decided once, on the first question, and said once if the compiler is missing."""

from __future__ import annotations

import importlib
import os
import warnings

from pullback._runtime.building import made

state: dict[str, bool | str] = {}
"""`ready`, and `reason` when it is False."""
CHOICES = ("", "llvm", "numpy")


def available() -> bool:
    """True if kernels can be compiled and run here."""
    if "ready" not in state:
        made(decide_once)  # a second thread waits for the answer
    return bool(state["ready"])


def decide_once() -> None:
    """Answer the question, unless another thread has."""
    if "ready" not in state:
        state["ready"] = decide()


def decide() -> bool:
    """Look at PULLBACK_KERNELS and for llvmlite; a compiler that is there but refuses is worth a warning."""
    wanted = os.environ.get("PULLBACK_KERNELS", "")
    if wanted not in CHOICES:
        warnings.warn(f"PULLBACK_KERNELS={wanted!r} is not one of 'llvm', 'numpy'; using 'llvm'", stacklevel=3)
    if wanted == "numpy":
        state["reason"] = "PULLBACK_KERNELS=numpy"
        return False
    try:
        import llvmlite.binding  # noqa: F401
    except ImportError:
        state["reason"] = "llvmlite is not installed (pip install 'pullback[fast]', in a clone pip install '.[fast]')"
        return False
    try:
        importlib.import_module("pullback.kernels.jit.compiler.selftest").run()
        importlib.import_module("pullback.kernels.jit.runtime.buffers")
    except Exception as error:
        state["reason"] = f"{type(error).__name__}: {error}"
        warnings.warn(f"kernels are not compiled on this machine, NumPy is used instead: {error}", stacklevel=3)
        return False
    return True


def reason() -> str:
    """Why kernels are not compiled, or "" if they are."""
    return "" if available() else str(state["reason"])
