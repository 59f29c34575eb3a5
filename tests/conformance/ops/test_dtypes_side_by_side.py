"""Operands of every two or three dtypes: which are taken together, and what dtype comes out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference

import pullback
from tests.conformance.both import same

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool")


def of_functional(name: str, *more: Any, **options: Any) -> Callable[..., Any]:
    return lambda torch, *x: getattr(torch.nn.functional, name)(x[0], *more, *x[1:], **options)


def zeros(torch: Any, *shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int64)


CALLS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "addmv": (lambda torch, *x: torch.addmv(*x), [(5,), (5, 4), (4,)]),
    "addmm": (lambda torch, *x: torch.addmm(*x), [(5, 3), (5, 4), (4, 3)]),
    "addbmm": (lambda torch, *x: torch.addbmm(*x), [(5, 3), (2, 5, 4), (2, 4, 3)]),
    "baddbmm": (lambda torch, *x: torch.baddbmm(*x), [(2, 5, 3), (2, 5, 4), (2, 4, 3)]),
    "addr": (lambda torch, *x: torch.addr(*x), [(5, 3), (5,), (3,)]),
    "linear": (of_functional("linear"), [(5, 4), (3, 4), (3,)]),
    "bilinear": (of_functional("bilinear"), [(5, 4), (5, 3), (2, 4, 3)]),
    "conv1d": (of_functional("conv1d"), [(1, 2, 5), (3, 2, 2), (3,)]),
    "layer_norm": (of_functional("layer_norm", (4,)), [(3, 4), (4,), (4,)]),
    "group_norm": (of_functional("group_norm", 2), [(3, 4), (4,), (4,)]),
    "batch_norm": (of_functional("batch_norm"), [(3, 4), (4,), (4,)]),
    "logit loss": (of_functional("binary_cross_entropy_with_logits"), [(3,), (3,), (3,)]),
    "attention": (of_functional("scaled_dot_product_attention"), [(1, 3, 4), (1, 3, 4), (1, 3, 4)]),
    "lerp": (lambda torch, *x: torch.lerp(*x), [(3,), (3,), (3,)]),
    "addcmul": (lambda torch, *x: torch.addcmul(*x), [(3,), (3,), (3,)]),
    "addcdiv": (lambda torch, *x: torch.addcdiv(*x), [(3,), (3,), (3,)]),
    "mv": (lambda torch, *x: torch.mv(*x), [(5, 4), (4,)]),
    "mm": (lambda torch, *x: torch.mm(*x), [(5, 4), (4, 3)]),
    "bmm": (lambda torch, *x: torch.bmm(*x), [(2, 5, 4), (2, 4, 3)]),
    "dot": (lambda torch, *x: torch.dot(*x), [(4,), (4,)]),
    "matmul": (lambda torch, *x: torch.matmul(*x), [(5, 4), (4,)]),
    "outer": (lambda torch, *x: torch.outer(*x), [(5,), (4,)]),
    "inner": (lambda torch, *x: torch.inner(*x), [(5, 4), (3, 4)]),
    "einsum": (lambda torch, *x: torch.einsum("ij,jk->ik", *x), [(5, 4), (4, 3)]),
    "tensordot": (lambda torch, *x: torch.tensordot(*x, 1), [(5, 4), (4, 3)]),
    "cdist": (lambda torch, *x: torch.cdist(*x), [(5, 4), (3, 4)]),
    "cross": (lambda torch, *x: torch.linalg.cross(*x), [(3,), (3,)]),
    "rms_norm": (of_functional("rms_norm", (4,)), [(3, 4), (4,)]),
    "prelu": (of_functional("prelu"), [(3, 4), (1,)]),
    "binary_cross_entropy": (of_functional("binary_cross_entropy"), [(3,), (3,)]),
    "kl_div": (of_functional("kl_div"), [(3,), (3,)]),
    "huber_loss": (of_functional("huber_loss"), [(3,), (3,)]),
    "mse_loss": (of_functional("mse_loss"), [(3,), (3,)]),
    "smooth_l1_loss": (of_functional("smooth_l1_loss"), [(3,), (3,)]),
    "nll_loss": (lambda torch, x, w: torch.nn.functional.nll_loss(x, zeros(torch, 3), w), [(3, 4), (4,)]),
    "grid_sample": (of_functional("grid_sample"), [(1, 1, 3, 3), (1, 2, 2, 2)]),
    "scatter": (lambda torch, x, y: torch.scatter(x, 0, zeros(torch, 3), y), [(3,), (3,)]),
    "index_add": (lambda torch, x, y: torch.index_add(x, 0, zeros(torch, 3), y), [(3,), (3,)]),
    "index_copy": (lambda torch, x, y: torch.index_copy(x, 0, torch.arange(3), y), [(3,), (3,)]),
    "masked_scatter": (lambda torch, x, y: torch.masked_scatter(x, torch.ones(3) > 0, y), [(3,), (3,)]),
    "heaviside": (lambda torch, *x: torch.heaviside(*x), [(3,), (3,)]),
    "searchsorted": (lambda torch, *x: torch.searchsorted(*x), [(3,), (3,)]),
    "bucketize": (lambda torch, *x: torch.bucketize(*x), [(3,), (3,)]),
    "quantile": (lambda torch, *x: torch.quantile(*x), [(3,), (2,)]),
    "histogram": (lambda torch, x, w: torch.histogram(x, 3, weight=w), [(3,), (3,)]),
    "bincount": (lambda torch, x, w: torch.bincount(zeros(torch, 3), w), [(3,), (3,)]),
    "stft": (lambda torch, x, w: torch.stft(x, 4, window=w, return_complex=True), [(16,), (4,)]),
    "where": (lambda torch, *x: torch.where(torch.ones(3) > 0, *x), [(3,), (3,)]),
}
TWO_WAYS = {"NotImplementedError", "RuntimeError"}
"""A call may be wrong in two ways: its dtype has no kernel, and its operands do not fit together."""


def seen(torch: Any, function: Any, shapes: Any, dtypes: Any) -> tuple[str, ...]:
    """The class of an error, or the dtype of the result."""
    operands = [torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    try:
        result = function(torch, *operands)
    except Exception as error:
        kind = type(error).__name__
        return ("refused", "either" if kind in TWO_WAYS else kind)
    return ("taken", str((result[0] if isinstance(result, tuple) else result).dtype))


@pytest.mark.parametrize("name", CALLS)
def test_operands_of_two_dtypes_are_taken_or_refused_as_torch_does_it(name: str) -> None:
    function, shapes = CALLS[name]
    for dtypes in itertools.product(DTYPES, repeat=len(shapes)):
        theirs, ours = (seen(torch, function, shapes, dtypes) for torch in (reference, pullback))
        assert ours == theirs, dtypes


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_places_in_order_are_written_as_they_are(dtype: str) -> None:
    def program(torch: Any) -> Any:
        out = torch.zeros(3, dtype=getattr(torch, dtype))
        return torch.argsort(torch.tensor([3.0, 1.0, 2.0]), stable=True, out=out)

    same(program)
