"""Settings of the process that programs switch: determinism, precision of products, autocast, warnings.

Where a setting would change how torch computes but cannot change anything here, the answer says so: every op is
deterministic, products of float32 matrices are always computed in float32, denormal numbers are never flushed.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from pullback._device import device
from pullback._dtype import bfloat16, dtype, float16
from pullback._op.define import function

# ------------------------------------------------------------------ determinism

deterministic = {"enabled": False, "warn_only": False}


@function(raw=True, method=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms: there are no others here."""
    for name, value, place in (("mode", mode, " (position 1)"), ("warn_only", warn_only, "")):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type(value).__name__}"
            )
    deterministic.update(enabled=mode, warn_only=warn_only)


@function(raw=True, method=False)
def are_deterministic_algorithms_enabled() -> bool:
    """True after `use_deterministic_algorithms(True)`."""
    return deterministic["enabled"]


@function(raw=True, method=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True if other algorithms would only be warned about."""
    return deterministic["warn_only"]


DEBUG_MODES = ("default", "warn", "error")


@function(raw=True, method=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch as one of default, warn, error (0, 1, 2)."""
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
    """0 for default, 1 for warn, 2 for error."""
    if not deterministic["enabled"]:
        return 0
    return 1 if deterministic["warn_only"] else 2


# ------------------------------------------------------------------ precision

products = {"precision": "highest"}


@function(raw=True, method=False)
def get_float32_matmul_precision() -> str:
    """What was asked for last; products are computed in float32 in any case."""
    return products["precision"]


@function(raw=True, method=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 matrices to be less exact, which they never are here."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has "
            "no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    products["precision"] = precision


@function(raw=True, method=False)
def set_flush_denormal(mode: bool, /) -> bool:
    """False: denormal numbers are never flushed to zero."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# ------------------------------------------------------------------ warnings

warning = {"always": False}


@function(raw=True, method=False)
def set_warn_always(b: bool, /) -> None:
    """Give every warning each time; Python's own filters still decide what is shown."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warning["always"] = b


@function(raw=True, method=False)
def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given last."""
    return warning["always"]


# ------------------------------------------------------------------ autocast

AUTOCAST_DTYPES = {"cpu": bfloat16, "xla": bfloat16}
autocast: dict[str, Any] = {"enabled": set(), "dtypes": dict(AUTOCAST_DTYPES), "cache": True, "nesting": 0}


def device_type(name: Any) -> str:
    """The kind of a device, or torch's error."""
    return device(name).type


@function(raw=True, method=False)
def is_autocast_enabled(device_type_: str = "cuda", /) -> bool:
    """Whether ops on a kind of device choose their own dtype."""
    return device_type(device_type_) in autocast["enabled"]


@function(raw=True, method=False)
def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast for a kind of device; on the CPU, where tensors are, it is not implemented."""
    kind, enabled = args if len(args) == 2 else ("cuda", *args)
    kind = device_type(kind)
    if enabled and kind == "cpu":
        raise NotImplementedError(
            "autocast on the CPU is not implemented: ops compute in the dtype of their inputs. Convert the inputs, for "
            "instance with x.bfloat16()"
        )
    (autocast["enabled"].add if enabled else autocast["enabled"].discard)(kind)


@function(raw=True, method=False)
def get_autocast_dtype(device_type_: str, /) -> dtype:
    """The dtype autocast would compute in."""
    return autocast["dtypes"].get(device_type(device_type_), float16)


@function(raw=True, method=False)
def set_autocast_dtype(device_type_: str, dtype: dtype, /) -> None:
    """Set the dtype autocast would compute in."""
    autocast["dtypes"][device_type(device_type_)] = dtype


@function(raw=True, method=False)
def is_autocast_cache_enabled() -> bool:
    """Whether autocast would keep converted weights."""
    return autocast["cache"]


@function(raw=True, method=False)
def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Set whether autocast would keep converted weights."""
    autocast["cache"] = enabled


@function(raw=True, method=False)
def clear_autocast_cache() -> None:
    """Forget converted weights: there are none."""


@function(raw=True, method=False)
def autocast_increment_nesting() -> int:
    """Count one more autocast block."""
    autocast["nesting"] += 1
    return autocast["nesting"]


@function(raw=True, method=False)
def autocast_decrement_nesting() -> int:
    """Count one autocast block less."""
    autocast["nesting"] -= 1
    return autocast["nesting"]


def publish_old_names(short: str, kind: str) -> None:
    """The names from before the device was an argument: is_autocast_cpu_enabled and its like."""

    def deprecated(old: str, new: str, answer: Any) -> None:
        def call(*args: Any) -> Any:
            warnings.warn(
                f"torch.{old} is deprecated. Please use torch.{new} instead.", DeprecationWarning, stacklevel=2
            )
            return answer(kind, *args)

        call.__name__ = call.__qualname__ = old.partition("(")[0]
        call.__doc__ = f"The same as torch.{new}."
        function(raw=True, method=False)(call)

    if short != "gpu":
        deprecated(f"is_autocast_{short}_enabled()", f"is_autocast_enabled('{kind}')", is_autocast_enabled)
        deprecated(
            f"set_autocast_{short}_enabled(enabled)", f"set_autocast_enabled('{kind}', enabled)", set_autocast_enabled
        )
    deprecated(f"get_autocast_{short}_dtype()", f"get_autocast_dtype('{kind}')", get_autocast_dtype)
    deprecated(f"set_autocast_{short}_dtype(dtype)", f"set_autocast_dtype('{kind}', dtype)", set_autocast_dtype)


for short_name, device_name in (("cpu", "cpu"), ("gpu", "cuda"), ("xla", "xla"), ("ipu", "ipu")):
    publish_old_names(short_name, device_name)

# ------------------------------------------------------------------ small tools of the torch namespace


@function(raw=True, method=False)
def get_file_path(*path_components: str) -> str:
    """A path below the folder the package is installed in."""
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
