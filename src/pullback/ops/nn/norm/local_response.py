"""local_response_norm: every channel divided by the strength of its neighbours."""

from __future__ import annotations

from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.ops.nn.image.pad import pad
from pullback.ops.nn.pool.average import avg_pool2d, avg_pool3d
from pullback.ops.pointwise.arithmetic import add, div, mul
from pullback.ops.pointwise.power import pow
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze, view_


@function(raw=True, space="nn.functional", method=False)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Apply local response normalization across neighbouring channels.

    Each element of `input` `(N, C, ...)` is divided by `(k + alpha * m) ** beta`, where `m` is the mean square of the
    `size` channels around it at the same place, with zeros beyond the first and the last channel.
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)"
        )
    if not input._array.size:
        return input
    if size == 0:
        rest = "kH: 0 kW: 1" if input.ndim == 3 else "kT: 0 kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {rest}")
    square = mul(input, input)
    around = (0, 0, size // 2, (size - 1) // 2)
    if input.ndim == 3:
        rows = pad(unsqueeze(square, 1), around)
        mean = squeeze_dim(avg_pool2d(rows, (size, 1), stride=1), 1)
    else:
        n, c, first = input.shape[:3]
        volumes = view_(square, (n, 1, c, first, square._array.size // (n * c * first)))
        volumes = pad(volumes, (0, 0, *around))
        mean = squeeze_dim(avg_pool3d(volumes, (size, 1, 1), stride=1), 1)
        mean = view_(mean, tuple(input.shape))
    return div(input, pow(add(mul(mean, alpha), k), beta))
