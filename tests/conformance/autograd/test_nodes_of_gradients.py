"""What a gradient is made of: with `create_graph=True` the gradients of every op have the node torch gives them."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from tests.conformance.aspects import Call, _differentiable, _fixed_random
from tests.conformance.harness import collected, load_peer
from tests.conformance.library import TORCH, Library
from tests.conformance.samples import Sample, ops, samples

PEER = load_peer("pullback")
WRITTEN_OUT = "torch has an op for the backward of the norm; here it is written out in others"
ELSEWHERE = "the derivative is written in other steps"
NUMBER = "a tensor without dimensions, of which torch takes another path"
DIFFERENT = {
    "nn.functional.layer_norm": WRITTEN_OUT,
    "native_layer_norm": WRITTEN_OUT,
    "nn.functional.batch_norm": WRITTEN_OUT,
    "native_batch_norm": WRITTEN_OUT,
    "lu_unpack": ELSEWHERE,
    "ormqr": ELSEWHERE,
    "linalg.householder_product": ELSEWHERE,
    "nn.functional.scaled_dot_product_attention": ELSEWHERE,
    "index_copy": NUMBER,
    "ldexp": NUMBER,
    "expand_as": NUMBER,
    "amax": NUMBER,
    "amin": NUMBER,
    "quantile": NUMBER,
    "nanquantile": NUMBER,
    "linalg.det": "a matrix of one element, of which torch takes another path",
    "chalf": "NumPy has no half-precision complex numbers",
    "to_sparse": "there are no sparse tensors",
}
"""Ops whose gradients have other nodes."""
FEW = 2
"""Samples of each op."""


def nodes(library: Library, info: OpInfo, sample: Sample) -> list[str | None]:
    """The names of the nodes of all gradients."""
    call = Call(library, info, sample)
    outputs = _differentiable(call, call.outputs)
    cotangents = [_fixed_random(library, out, 100 + i, requires_grad=True) for i, out in enumerate(outputs)]
    leaves = call.converted[0].leaves
    grads = library.require("autograd.grad")(outputs, leaves, cotangents, create_graph=True, allow_unused=True)
    return [None if grad is None or grad.grad_fn is None else type(grad.grad_fn).__name__ for grad in grads]


def compared(info: OpInfo) -> list[tuple[Any, Any]]:
    """The nodes in torch and here for the first samples that torch differentiates."""
    found = []
    for sample in islice(samples(info, torch.float64), 12):
        try:
            expected = nodes(TORCH, info, sample)
        except Exception:
            continue  # nothing to differentiate
        try:
            found.append((expected, nodes(PEER, info, sample)))
        except Exception as error:
            found.append((expected, f"{type(error).__name__}: {error}"))
        if len(found) == FEW:
            break
    return found


NAMES = [name for name in collected(PEER) if ops()[name].supports_autograd and ops()[name].supports_gradgrad]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_have_the_nodes_of_torch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [(expected, found) for expected, found in compared(ops()[name]) if expected != found]
    assert not wrong or name in DIFFERENT, wrong
