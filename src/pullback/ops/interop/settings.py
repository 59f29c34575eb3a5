"""Settings of the process that programs switch: determinism, precision of products, warnings.

Where a setting would change how torch computes but cannot change anything here, the answer says so: every op is
deterministic, products of float32 matrices are always computed in float32, denormal numbers are never flushed.
"""

from __future__ import annotations

import os
from typing import Any

from pullback._modes import deterministic
from pullback._op.define import function
from pullback._runtime import warnings
from pullback._runtime.warnings import warn
from pullback.kernels.precision import changed, matmul

# ------------------------------------------------------------------ determinism


@function(raw=True, method=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms.

    Every operation on the CPU is deterministic in any case, and on a CUDA device those that add to places named by an
    index go through the host then. `warn_only` asks for warnings in place of errors.
    """
    for name, value, place in (("mode", mode, " (position 1)"), ("warn_only", warn_only, "")):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type(value).__name__}"
            )
    deterministic.update(enabled=mode, warn_only=warn_only)
    changed()


@function(raw=True, method=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Return True if deterministic algorithms were asked for with `use_deterministic_algorithms`."""
    return deterministic["enabled"]


@function(raw=True, method=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return True if nondeterministic operations would only give a warning, not an error."""
    return deterministic["warn_only"]


DEBUG_MODES = ("default", "warn", "error")


@function(raw=True, method=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set how nondeterministic operations are treated: "default" (0), "warn" (1) or "error" (2).

    Another form of `use_deterministic_algorithms`; every operation here is deterministic in any case.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode
            )
        debug_mode = DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


@function(raw=True, method=False)
def get_deterministic_debug_mode() -> int:
    """Return how nondeterministic operations are treated: 0 for "default", 1 for "warn", 2 for "error"."""
    if not deterministic["enabled"]:
        return 0
    return 1 if deterministic["warn_only"] else 2


# ------------------------------------------------------------------ precision

products = {"precision": "highest"}


@function(raw=True, method=False)
def get_float32_matmul_precision() -> str:
    """Return the precision set for float32 matrix products; they are computed in float32 in any case."""
    return products["precision"]


@function(raw=True, method=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Set the internal precision of float32 matrix products: "highest", "high" or "medium".

    On the CPU the setting is only remembered: products are always computed in float32. On a CUDA device all but
    "highest" let them round their factors to tf32.
    """
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has "
            "no effect.",
        )
        return
    products["precision"] = precision
    matmul.allow_tf32 = precision != "highest"


@function(raw=True, method=False)
def set_flush_denormal(mode: bool, /) -> bool:
    """Ask for denormal numbers to be flushed to zero. Returns False: that is not supported here."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# ------------------------------------------------------------------ warnings


@function(raw=True, method=False)
def set_warn_always(b: bool, /) -> None:
    """Set whether warnings that are given once per process are repeated each time.

    Python's own filters still decide which of them are shown.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warnings.always = b


@function(raw=True, method=False)
def is_warn_always_enabled() -> bool:
    """Return True if `set_warn_always` has switched on repeated warnings."""
    return warnings.always


# ------------------------------------------------------------------ small tools of the torch namespace


@function(raw=True, method=False)
def get_file_path(*path_components: str) -> str:
    """Join path components to the folder the package is installed in."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(os.path.dirname(package), *path_components)


class ClassProperty:
    """A property of a class rather than of its instances."""

    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.fget.__get__(instance, owner)()


@function(raw=True, method=False)
def classproperty(func: Any) -> ClassProperty:
    """Decorate a method of a class so that it reads like an attribute of the class."""
    return ClassProperty(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))
