"""vmap against a loop over torch's op database: a few ops in every run, all of them in the slow one."""

import warnings

import pytest

from tests.conformance.func.vmap_sweep import sweep
from tests.conformance.samples import ops

UNDEFINED = {"empty_like", "new_empty", "new_empty_strided", "empty", "empty_permuted", "empty_strided"}
"""Their values are whatever the memory held."""
DETACHED_OUTSIDE = {"native_layer_norm", "native_batch_norm"}
"""Their mean and deviation are detached after the op, which cuts the innermost graph only."""
FOREIGN_MEMORY = {"nn.functional.embedding_bag"}
"""A sample lies in memory that NumPy's as_strided cut out of a larger one, which unsqueeze does not see."""
SOME = (
    "add", "mul", "div.no_rounding_mode", "where", "sin", "clamp", "pow", "sum", "mean", "amax", "var", "prod",
    "cumsum", "logsumexp", "softmax", "sort", "topk", "argmax", "matmul", "mm", "bmm", "addmm", "addmv", "dot", "cat",
    "einsum", "stack", "reshape", "permute", "expand", "squeeze", "select", "narrow", "__getitem__", "gather",
    "index_select", "scatter", "tril", "diagonal", "flip", "roll", "nn.functional.linear", "nn.functional.conv2d",
    "nn.functional.layer_norm", "nn.functional.cross_entropy", "nn.functional.mse_loss", "nn.functional.gelu",
    "nn.functional.embedding", "linalg.solve", "linalg.cholesky", "norm",
)  # fmt: skip


def differing(names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sweep(names)


@pytest.mark.parametrize("name", [name for name in SOME if name in ops()])
def test_vmap_of_an_op_is_the_loop(name):
    assert differing([name]) == {}


@pytest.mark.slow
def test_vmap_of_every_op_is_the_loop():
    assert differing([name for name in ops() if name not in UNDEFINED | DETACHED_OUTSIDE | FOREIGN_MEMORY]) == {}
