"""DLPack under torch's module name: tensors as capsules, and back."""

from pullback import from_dlpack, to_dlpack
from pullback.ops.interop.dlpack import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
