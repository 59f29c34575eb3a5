"""Every op on torch's own samples in float16 and bfloat16: dtypes, elements and gradients, within some last places."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tests.conformance import harness
from tests.conformance.aspects import UNDEFINED_VALUES, Call, _fixed_random
from tests.conformance.library import TORCH, Unconvertible, dtype_name
from tests.conformance.ops.test_half_precision import DIGITS, ulps
from tests.conformance.samples import LARGEST, _elements, _from_database, _seed_everything, ops

PEER = harness.load_peer("pullback")
FIRST, ALLOWED = 8, 16
"""The last of so many samples is tried."""
UNSTABLE = "which of equal elements is named depends on how torch sorts them"
BATCH = "torch keeps the statistics of a batch in half precision; here they are float32"
KNOWN = {
    "argsort": UNSTABLE, "sort": UNSTABLE, "msort": UNSTABLE, "topk": UNSTABLE, "mode": UNSTABLE,
    "as_strided_scatter": "torch's gradient keeps the elements that were overwritten",
    "complex": "NumPy has no half-precision complex numbers",
    "view_as_complex": "NumPy has no half-precision complex numbers",
    "matrix_exp": "torch overflows in half precision",
    "native_layer_norm": "the inverse deviation of one element is that of eps, which torch rounds",
    "native_batch_norm": BATCH, "nn.functional.batch_norm": BATCH, "nn.functional.instance_norm": BATCH,
    "native_group_norm": BATCH,
    "nn.functional.conv_transpose3d": "torch adds the windows that overlap in half precision",
    "polygamma": "torch rounds its series for orders above one in another way",
    "special.polygamma": "torch rounds its series for orders above one in another way",
    "special.i0e": "a difference of two numbers that are nearly equal",
    "grid_sampler_2d": "torch rounds the cubic weights at other steps",
    "nn.functional.grid_sample": "torch rounds the cubic weights at other steps",
    "nn.functional.soft_margin_loss": "torch's exponential overflows in float16, and gives nan",
}  # fmt: skip


def answers(library: Any, info: Any, sample: Any) -> list[tuple[str, np.ndarray] | None]:
    """The results of a call and, where it can be differentiated, its gradients."""
    call = Call(library, info, sample)
    made = call.tensors()
    wanted, leaves = [tensor for tensor in made if tensor.requires_grad], call.converted[0].leaves
    if wanted and leaves:
        cotangents = [_fixed_random(library, tensor, 100 + i) for i, tensor in enumerate(wanted)]
        made += library.require("autograd.grad")(wanted, leaves, cotangents, allow_unused=True)
    return [None if tensor is None else (dtype_name(tensor.dtype), library.array(tensor)) for tensor in made]


def differences(name: str, dtype: torch.dtype) -> list[str]:
    info, found = ops()[name], []
    if not info.supports_dtype(dtype, "cpu") or name in UNDEFINED_VALUES:
        return []
    _seed_everything()
    wants = info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
    given = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=wants), FIRST))
    for nr, raw in list(enumerate(given))[-1:]:
        sample = _from_database(raw, str(nr), dtype)
        if _elements(sample) > LARGEST:
            continue
        try:
            expected = answers(TORCH, info, sample)
        except (Unconvertible, RuntimeError, NotImplementedError):
            continue
        for one, other in zip(expected, answers(PEER, info, sample), strict=True):
            if (one is None) != (other is None) or (one is not None and other is not None and one[0] != other[0]):
                found.append(f"{sample}: {one and one[0]} and {other and other[0]}")
            elif one is not None and other is not None and one[0] in DIGITS:
                far = ulps(one[1].astype(np.float64), other[1].astype(np.float64), DIGITS[one[0]])
                if far > ALLOWED:
                    found.append(f"{sample}: {far:.3g} last places apart")
    return found


@pytest.mark.parametrize("name", harness.collected(PEER))
def test_an_op_gives_in_half_precision_what_torch_gives(name: str) -> None:
    reason = KNOWN.get(name) or KNOWN.get(ops()[name].name)
    if reason is not None:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [text for dtype in (torch.float16, torch.bfloat16) for text in differences(name, dtype)]
    assert not found, "\n".join(found)
