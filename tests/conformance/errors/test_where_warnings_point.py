"""A warning names the line of the program that called the op, at the first call and at later ones."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch as peer

import pullback

CALLS = [
    "F.mse_loss(column, row)",
    "F.l1_loss(column, row)",
    "F.kl_div(column, column)",
    "F.softmax(row)",
    "F.mse_loss(row, row, size_average=True)",
    "torch.ones(1).std()",
    "torch.var(torch.ones(1))",
    "torch.cov(torch.ones(1))",
    "torch.tensor(row)",
    "torch.range(0, 3)",
    "torch.ones(2, 2, 2).T",
    "torch.cross(square, square)",
    "torch.from_numpy(np.broadcast_to(1.0, (3,)))",
    "torch.ones(2, dtype=torch.complex64).to(torch.float32)",
    "torch.add(row, row, out=torch.ones(2))",
    "row.clone().add_(2, row)",
    "torch.addcmul(row, 2, row, row)",
    "row[torch.tensor([1, 0, 1], dtype=torch.uint8)]",
    "row.clone().requires_grad_().mul(2).sum().backward(create_graph=True)",
    "float(row[0].clone().requires_grad_())",
]


def places(torch: Any, call: str) -> list[tuple[str, int]]:
    """The file and line of every warning of a call that is made twice."""
    given = dict(torch=torch, np=np, F=torch.nn.functional)
    given |= dict(row=torch.ones(3), column=torch.ones(3, 1), square=torch.ones(3, 3))
    code = compile(f"\n\n{call}", "program.py", "exec")
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                exec(code, given)
    finally:
        torch.set_warn_always(False)
    return [(w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("call", CALLS)
def test_a_warning_names_the_line_that_called(call: str) -> None:
    ours, theirs = places(pullback, call), places(peer, call)
    assert ours == [("program.py", 3)] * 2
    assert len(theirs) == 2
    for place in theirs:  # torch names a line of its own where Python stands between
        assert place == ours[0] or "site-packages/torch/" in place[0]
