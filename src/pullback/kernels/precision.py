"""What products and convolutions on a CUDA device may round: settings that `torch.backends` shows."""

from __future__ import annotations

from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)
"""torch.backends.cuda.matmul: whether products of float32 matrices on a CUDA device may be rounded to tf32."""
cudnn = SimpleNamespace(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
"""torch.backends.cudnn: whether convolutions of float32 images on a CUDA device may be rounded to tf32, and more."""
