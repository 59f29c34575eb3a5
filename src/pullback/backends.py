"""Settings of libraries torch computes with, none of which is used here: they can be set, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


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


cudnn = SimpleNamespace(
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    is_available=no,
    version=lambda: None,
    flags=flags,
)
cuda = SimpleNamespace(
    is_built=no,
    matmul=SimpleNamespace(
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    ),
    **{f"enable_{kind}_sdp": ignored for kind in ("flash", "math", "mem_efficient", "cudnn")},
)
cpu = SimpleNamespace(get_cpu_capability=lambda: "DEFAULT")
mps = SimpleNamespace(is_available=no, is_built=no)
mkl = SimpleNamespace(is_available=no)
mkldnn = SimpleNamespace(is_available=no, enabled=False)
openmp = SimpleNamespace(is_available=no)
