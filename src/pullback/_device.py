"""Devices: naming them as torch does, and saying no to those that are not there."""

import re
import threading
import warnings
from contextvars import ContextVar
from typing import Any, NoReturn

from pullback._runtime.messages import ONLY_CPU

_TYPES = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy"),
    *("vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
)  # fmt: skip
_DEVICE_STRING = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")


class device:
    """Where a tensor's data lives: `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`.

    Any of torch's devices can be named; only "cpu" can hold data. As a context manager, a device is the default for
    the tensors made inside the block.
    """

    __slots__ = ("type", "index")

    type: str
    index: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> "device":
        if (len(args) == 1 and not kwargs) or (not args and kwargs.keys() == {"device"}):
            first = args[0] if args else kwargs["device"]
            if isinstance(first, device):
                return first
            if type(first) is int:
                if first < 0:
                    raise RuntimeError("Device index must not be negative")
                if not accelerators:
                    raise RuntimeError("Cannot access accelerator device when none is available.")
                return _device(accelerators[0], first)
            if not isinstance(first, str):
                raise _invalid_arguments(args, kwargs)
            return _device(*_parse(first))
        if len(args) > 2 or (not args and "type" not in kwargs and "device" not in kwargs):
            raise _invalid_arguments(args, kwargs)
        name, index = _name_and_index(*args, **kwargs)
        parsed, parsed_index = _parse(name)
        if index is None:
            return _device(parsed, parsed_index)
        if parsed_index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {name}")
        if index < 0:
            raise RuntimeError("Device index must not be negative")
        return _device(parsed, index)

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'torch.device' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        if name in device.__slots__:
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self) -> "device":
        _default_devices.set((*_default_devices.get(), self))
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        _default_devices.set(_default_devices.get()[:-1])


accelerators: list[str] = []
"""The type of the devices that plain numbers mean, once one was found: see kernels/cuda/device.py."""
_known: dict[tuple[str, int | None], device] = {}


def _device(name: str, index: int | None) -> device:
    """Return the one object of a device, so that comparing devices is nearly always comparing identities."""
    self = _known.get((name, index))
    if self is None:
        self = object.__new__(device)
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)
        self = _known.setdefault((name, index), self)
    return self


def _parse(string: str) -> tuple[str, int | None]:
    if not string:
        raise RuntimeError("Device string must not be empty")
    match = _DEVICE_STRING.fullmatch(string)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{string}'")
    name, digits = match.groups()
    if name not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}")
    if name == "mkldnn":
        warnings.warn(
            "'mkldnn' is no longer used as device type. So torch.device('mkldnn') will be deprecated and removed in "
            "the future. Please use other valid device types instead.",
            UserWarning,
            stacklevel=3,
        )
    if digits is not None and int(digits) >= 2**31:
        raise RuntimeError(f"Could not parse device index '{digits}' in device string '{string}'")
    return name, None if digits is None else int(digits)


def _name_and_index(*args: Any, **kwargs: Any) -> tuple[str, int | None]:
    """Sort the arguments of `device(type, index)` and check their types."""
    for name in kwargs:
        if name not in ("type", "index", "device") or (name == "device" and args):
            raise TypeError(f"device() got an unexpected keyword argument '{name}'")
    if not args and "type" not in kwargs:
        raise TypeError('device() missing 1 required positional arguments: "type"')
    values = dict(zip(("type", "index"), args)) | kwargs
    name, index = values["type"], values.get("index")
    if not isinstance(name, str):
        where = " (position 1)" if args else ""
        raise TypeError(f"device(): argument 'type'{where} must be str, not {_type_name(name)}")
    if index is not None and type(index) is not int:
        where = " (position 2)" if len(args) == 2 else ""
        raise TypeError(f"device(): argument 'index'{where} must be int, not {_type_name(index)}")
    return name, index


def _type_name(value: object) -> str:
    return "torch.device" if isinstance(value, device) else type(value).__name__


def _invalid_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    got = ", ".join(_type_name(value) for value in args)
    got += "".join(f"{name}={_type_name(value)}, " for name, value in kwargs.items())
    why = ""
    if len(args) == 1:
        why = f"      didn't match because some of the arguments have invalid types: (!{_type_name(args[0])}!)\n"
    elif kwargs:
        why = f"      didn't match because some of the keywords were incorrect: {', '.join(kwargs)}\n"
    return TypeError(
        f"device() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        f" * (torch.device device)\n{why} * (str type, int index = -1)\n"
    )


CPU = _device("cpu", None)
META = _device("meta", None)


class CurrentDevice(threading.local):
    """The number of the CUDA device that "cuda" means, for each thread."""

    index = 0


current_cuda = CurrentDevice()


class Copies(threading.local):
    """Whether copies between the host and a device are waited for, in each thread; `non_blocking=True` says no."""

    waited = True

    def unwaited(self, copy: Any, *args: Any) -> Any:
        """Call a function whose copies from and to pinned memory are not waited for."""
        before, self.waited = self.waited, False
        try:
            return copy(*args)
        finally:
            self.waited = before


copies = Copies()

# The last one is the default: the first is set by set_default_device, the others by `with device(...)` blocks.
_default_devices: ContextVar[tuple[device, ...]] = ContextVar("default_devices", default=(CPU,))


def get_default_device() -> device:
    """Return the device on which tensors are made when none is named."""
    default = _default_devices.get()[-1]
    if default.type == "cuda":
        check_device(default)
    return default


def set_default_device(device: "device | str | int | None") -> None:
    """Set the device on which tensors are made when none is named; None means the CPU."""
    chosen = CPU if device is None else as_device(device)
    _default_devices.set((chosen, *_default_devices.get()[1:]))


def as_device(value: "device | str | int") -> device:
    """Return the device that a `device=` argument names."""
    return value if type(value) is device else device(value)


def place_of(device: "device | str | int | None") -> device:
    """Return the device that new tensors asked for on `device` will be on; None means the default device.

    Like torch, "cpu:0" and "cpu:1" mean "cpu", "meta:1" means "meta", and "cuda" the current CUDA device.
    """
    if device is CPU:
        return CPU
    wanted = _default_devices.get()[-1] if device is None else as_device(device)
    if wanted.type == "cuda" and wanted.index is None:
        return _device("cuda", current_cuda.index)
    return CPU if wanted.type == "cpu" else META if wanted.type == "meta" else wanted


def check_device(device: "device | str | int | None" = None) -> device:
    """Return the device data asked for on `device` will be on, which is the CPU; raise for any other.

    None means the default device. Like torch, "cpu:0" and "cpu:1" mean "cpu".
    """
    if device is CPU:
        return CPU
    wanted = _default_devices.get()[-1] if device is None else as_device(device)
    if wanted.type == "cpu":
        return CPU
    if wanted.type in ("cuda", "xpu"):
        raise AssertionError(f"Torch not compiled with {wanted.type.upper()} enabled{ONLY_CPU}")
    raise NotImplementedError(f"tensors cannot be placed on device '{wanted}': only 'cpu' holds data; use device='cpu'")
