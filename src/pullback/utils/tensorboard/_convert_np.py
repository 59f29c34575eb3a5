"""What is given to a writer, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import Tensor, bfloat16, float16


def make_np(x: Any) -> np.ndarray[Any, Any]:
    """The array of a tensor, an array or a number."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        plain = x.to(float16) if x.dtype is bfloat16 else x
        return plain.detach().cpu().numpy()  # type: ignore[no-any-return]
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
