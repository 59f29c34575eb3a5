"""What products and convolutions on a CUDA device may round: settings that `torch.backends` shows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

forgetting: list[Callable[[], None]] = []
"""Called when a setting changes, by which kernels are chosen: whoever remembers a choice forgets it."""


class Settings(SimpleNamespace):
    """Settings that tell when they change."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        changed()


def changed() -> None:
    """A setting has changed."""
    for forget in forgetting:
        forget()


matmul = Settings(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)
"""torch.backends.cuda.matmul: whether products of float32 matrices on a CUDA device may be rounded to tf32."""
cudnn = Settings(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
"""torch.backends.cudnn: whether convolutions of float32 images on a CUDA device may be rounded to tf32, and more."""
