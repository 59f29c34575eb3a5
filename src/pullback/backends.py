"""Settings of libraries torch computes with, none of which is used here.

They can be set, and change nothing, but for `cuda.matmul.allow_tf32` and `cudnn.allow_tf32`: these say whether products
and convolutions of float32 on a CUDA device may round their factors to tf32, as in torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from pullback.kernels.precision import cudnn, matmul


def no() -> bool:
    """No."""
    return False


def ignored(enabled: bool) -> None:
    """A switch that changes nothing."""


@contextmanager
def flags(**settings: Any) -> Iterator[None]:
    """Within the block, other settings of cudnn."""
    before = dict(vars(cudnn))
    vars(cudnn).update(settings)
    try:
        yield
    finally:
        vars(cudnn).update(before)


cudnn.is_available, cudnn.version, cudnn.flags = no, lambda: None, flags
cuda = SimpleNamespace(
    is_built=no,
    matmul=matmul,
    **{f"enable_{kind}_sdp": ignored for kind in ("flash", "math", "mem_efficient", "cudnn")},
)
cpu = SimpleNamespace(get_cpu_capability=lambda: "DEFAULT")
mps = SimpleNamespace(is_available=no, is_built=no)
mkl = SimpleNamespace(is_available=no)
mkldnn = SimpleNamespace(is_available=no, enabled=False)
openmp = SimpleNamespace(is_available=no)
