"""Errors that compare two dtypes call each by the name torch's compiler gives it, whichever dtype it is."""

import pytest

from tests.conformance.both import attempt, same

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "float16", "bfloat16"]
DTYPES += ["float64", "complex64", "complex128"]
STORED = ["float8_e4m3fn", "float8_e5m2", "complex32"]
"""What has no arithmetic, but can be named."""


@pytest.mark.parametrize("name", DTYPES)
def test_operands_of_two_dtypes(name):
    def program(torch):
        x, other = torch.zeros(2, 2), torch.zeros(2, 2).to(getattr(torch, name))
        F = torch.nn.functional
        image = torch.zeros(1, 1, 3)
        return [
            attempt(lambda: x @ other),
            attempt(lambda: torch.baddbmm(x[None], other[None], other[None])),
            attempt(lambda: F.conv1d(image, torch.zeros(1, 1, 1), torch.zeros(1).to(other.dtype))),
            attempt(lambda: F.bilinear(x, x, torch.zeros(1, 2, 2).to(other.dtype))),
            attempt(lambda: F.scaled_dot_product_attention(other[None], x[None], x[None])),
            attempt(lambda: x.lerp(other, 0.5)),
            None if name == "bool" else attempt(lambda: x.masked_fill(other, 1.0)),
            attempt(lambda: x.cumsum_(0, dtype=other.dtype)),
            attempt(lambda: torch.hann_window(3, dtype=other.dtype)) if "int" in name else None,
        ]

    same(program)


@pytest.mark.parametrize("name", DTYPES + STORED)
def test_a_target_of_another_dtype(name):
    def program(torch):
        x, out = torch.ones(2, 2), torch.zeros(2, 2).to(getattr(torch, name))
        index = torch.zeros(2, 2, dtype=torch.int64)
        leaf = torch.zeros(2, 2, requires_grad=True)
        return [
            attempt(lambda: torch.mm(x, x, out=out)),
            attempt(lambda: torch.gather(x, 0, index, out=out)),
            attempt(lambda: torch.linalg.multi_dot([x, x], out=out)),
            attempt(lambda: torch.linalg.inv(x + torch.eye(2), out=out)),
            attempt(lambda: torch.zeros(2, 2).set_(out)),
            attempt(lambda: setattr(leaf, "grad", out)),
        ]

    same(program)
