"""Whether the channels of a result lie last in memory, which torch reads from the steps of what goes in."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.conformance.both import same

DTYPES = ["float32", "float64", "complex64"]
ORDERS = {
    "rows": lambda torch, made: made,
    "last": lambda torch, made: made.movedim(1, -1).contiguous().movedim(-1, 1),
    "last with gaps": lambda torch, made: made.movedim(1, -1).repeat_interleave(2, -1)[..., ::2].movedim(-1, 1),
    "batch within": lambda torch, made: made.movedim(0, -1).contiguous().movedim(-1, 0),
    "turned": lambda torch, made: made.permute(*range(made.ndim)[::-1]).contiguous().permute(*range(made.ndim)[::-1]),
}
IMAGES = [(2, 4, 4, 4), (1, 4, 4, 4), (2, 4, 1, 1), (2, 1, 4, 4), (2, 4, 1, 4)]
CALLS = {
    "max_pool2d": lambda f, x: f.max_pool2d(x, (1, x.shape[3] // 2 or 1), return_indices=True),
    "avg_pool2d": lambda f, x: f.avg_pool2d(x, (x.shape[2] // 2 or 1, 1)),
    "adaptive_avg_pool2d": lambda f, x: f.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda f, x: f.adaptive_max_pool2d(x, 2),
    "interpolate": lambda f, x: f.interpolate(x, scale_factor=2),
    "pixel_shuffle": lambda f, x: (f.pixel_shuffle(x, 1), f.pixel_shuffle(x[:, :1].expand(-1, 4, -1, -1), 2)),
    "pixel_unshuffle": lambda f, x: f.pixel_unshuffle(x, 1),
    "rms_norm": lambda f, x: f.rms_norm(x, x.shape[-1:]),
    "batch_norm": lambda f, x: f.batch_norm(x, None, None, training=True),
    "pad": lambda f, x: f.pad(x, (1, 1)),
    "signals": lambda f, x: [
        (f.max_pool1d(y, y.shape[-1], return_indices=True), f.adaptive_avg_pool1d(y, 2), f.avg_pool1d(y, 1))
        for y in (x[:, :, 0], x[..., 0])
    ],
}


def steps(made: Any) -> Any:
    """The strides of tensors, of dimensions of more than one index."""
    if isinstance(made, (tuple, list)):
        return [steps(part) for part in made]
    return [step for step, size in zip(made.stride(), made.shape, strict=True) if size > 1]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("call", CALLS)
def test_results_of_images_lie_in_memory_as_torchs_do(call: str, order: str) -> None:
    def program(torch: Any) -> Any:
        for shape in IMAGES:
            x = ORDERS[order](torch, torch.rand(shape) + 1)
            yield shape, steps(CALLS[call](torch.nn.functional, x))

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_results_of_convolutions_lie_in_memory_as_torchs_do(ndim: int, dtype: str, order: str) -> None:
    def program(torch: Any) -> Any:
        functions = [
            getattr(torch.nn.functional, f"conv{ndim}d"),
            getattr(torch.nn.functional, f"conv_transpose{ndim}d"),
        ]
        for batch, channels, kernel, other in itertools.product((1, 2), (1, 4), (1, 2), ORDERS):
            x = torch.rand(batch, channels, *[4] * ndim).to(getattr(torch, dtype))
            weight = torch.rand(channels, channels, *[kernel] * ndim).to(getattr(torch, dtype))
            for function, groups in itertools.product(functions, {1, channels}):
                kernels = weight[:, : channels // groups]
                made = function(ORDERS[order](torch, x), ORDERS[other](torch, kernels), groups=groups)
                yield batch, channels, kernel, other, groups, steps(made)

    same(lambda torch: list(program(torch)))


def test_rms_norm_puts_its_result_in_order_in_a_node_of_its_own() -> None:
    def program(torch: Any) -> Any:
        for x in (torch.rand(2, 3).t(), torch.rand(3, 2), torch.rand(3, 1)[:, 0].expand(2, 3)):
            for dtype in (torch.float32, torch.bfloat16):
                made = torch.nn.functional.rms_norm(x.to(dtype).requires_grad_(), x.shape[-1:])
                yield made.stride(), made.grad_fn.name(), made.grad_fn.next_functions[0][0].name()

    same(lambda torch: list(program(torch)))
