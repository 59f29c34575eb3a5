"""Settings of libraries torch computes with, none of which is used here: they can be set, and change nothing."""

from __future__ import annotations

from types import SimpleNamespace


def no() -> bool:
    """No."""
    return False


cudnn = SimpleNamespace(
    enabled=False, benchmark=False, deterministic=False, allow_tf32=True, is_available=no, version=lambda: None
)
cuda = SimpleNamespace(
    is_built=no, matmul=SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)
)
mps = SimpleNamespace(is_available=no, is_built=no)
mkl = SimpleNamespace(is_available=no)
mkldnn = SimpleNamespace(is_available=no, enabled=False)
openmp = SimpleNamespace(is_available=no)
