"""Which CUDA devices there are, and which one is current."""

from __future__ import annotations

from typing import Any, NoReturn

from pullback._device import current_cuda
from pullback._device import device as any_device
from pullback._runtime.building import loaded
from pullback._runtime.messages import ONLY_CPU


def refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """What torch says when it was built without CUDA."""
    raise AssertionError("Torch not compiled with CUDA enabled" + ONLY_CPU)


def rooms() -> Any:
    """What knows the devices; loaded when it is first asked for."""
    return loaded("pullback.kernels.cuda.device")


def driver() -> Any:
    """The driver; raises where there is none."""
    return rooms().required()


def is_available() -> bool:
    """True if there is a CUDA device: an NVIDIA GPU with its driver, or an emulated one (`PULLBACK_CUDA=emulate`)."""
    return rooms().count() > 0  # type: ignore[no-any-return]


def is_initialized() -> bool:
    """True once a device has been looked for and found."""
    return bool(rooms().found) and rooms().found[0] is not None


def device_count() -> int:
    """How many CUDA devices there are."""
    return rooms().count()  # type: ignore[no-any-return]


def init() -> None:
    """Look for the devices; done by itself when one is first used."""
    driver()


def index_of(device: Any = None, optional: bool = True) -> int:
    """The number of a device however it is named; None is the current one."""
    driver()
    if device is None and optional:
        return current_cuda.index
    if isinstance(device, str):
        device = any_device(device)
    if isinstance(device, any_device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        device = current_cuda.index if device.index is None else device.index
    if type(device) is not int:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    rooms().placed(device)
    return device


def current_device() -> int:
    """The number of the device that "cuda" means."""
    driver()
    return current_cuda.index


def set_device(device: Any) -> None:
    """Let "cuda" mean another device."""
    index = index_of(device)
    if index >= 0:
        current_cuda.index = index


class DeviceProperties:
    """What is known of a device: name, memory, compute capability, multiprocessors and more."""

    def __init__(self, known: Any) -> None:
        self.name, self.total_memory, self.uuid = known.name, known.total_memory, known.uuid.hex()
        self.__dict__.update(known.attributes)
        self.gcnArchName = self.name

    def __repr__(self) -> str:
        parts = f"name='{self.name}', major={self.major}, minor={self.minor}"  # type: ignore[attr-defined]
        memory, size = self.total_memory >> 20, self.L2_cache_size >> 20  # type: ignore[attr-defined]
        return (
            f"_CudaDeviceProperties({parts}, total_memory={memory}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, L2_cache_size={size}MB)"  # type: ignore[attr-defined]
        )


DeviceProperties.__name__ = DeviceProperties.__qualname__ = "_CudaDeviceProperties"


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What is known of a device."""
    return DeviceProperties(driver().devices[index_of(device)])


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name  # type: ignore[no-any-return]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device: (9, 0) for Hopper."""
    known: Any = get_device_properties(device)
    return known.major, known.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """True if a device can read the memory of another; nothing here copies that way."""
    index_of(device), index_of(peer_device)
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if the current device computes in bfloat16: all do, those before Ampere by way of float32."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """True if the current device has TF32: from Ampere on."""
    return is_available() and get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """The architectures kernels can be made for; none where there is no device."""
    if not is_available():
        return []
    return ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_120"]


def get_gencode_flags() -> str:
    """What a compiler would be told to make code for these architectures."""
    known = [arch.split("_") for arch in get_arch_list()]
    return " ".join([f"-gencode compute=compute_{number},code={kind}_{number}" for kind, number in known])


def synchronize(device: Any = None) -> None:
    """Wait until a device has done all its work."""
    driver().synchronize(index_of(device))


def ipc_collect() -> None:
    """Nothing to collect: memory of a device is not shared with other processes."""
    driver()


def carried() -> Any:
    """What knows of copies between the memories; loaded when it is first asked for."""
    return loaded("pullback.kernels.cuda.carry")


def fallbacks() -> dict[str, int]:
    """How often what was computed on the host because the device has no kernel for it, by name, most frequent first.

    Empty where everything ran on the device. `PULLBACK_CUDA_FALLBACK=error` makes such calls raise instead.
    """
    return dict(carried().counts.most_common()) if is_initialized() else {}


def reset_fallbacks() -> None:
    """Count anew."""
    carried().counts.clear()


class device:
    """Within the block, another device is the current one."""

    def __init__(self, device: Any) -> None:
        self.idx = device
        self.before: int | None = None

    def __enter__(self) -> None:
        if not is_available():
            raise RuntimeError("PyTorch was compiled without CUDA support")
        if self.idx is None or (type(self.idx) is int and self.idx < 0):
            return
        index = index_of(self.idx)
        self.before, current_cuda.index = current_cuda.index, index

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            current_cuda.index, self.before = self.before, None


class device_of(device):
    """Within the block, the device of a tensor is the current one, if it is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)

    def __enter__(self) -> None:
        if self.idx != -1:
            super().__enter__()
