"""torch.fft: every transform with its sizes, dimensions and normalizations, its graph, its gradients and its errors."""

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
ONE_ARGUMENTS = (
    "",
    ", 4",
    ", 9",
    ", n=5, dim=0",
    ", dim=1",
    ', norm="ortho"',
    ', norm="forward"',
    ', 6, -2, "backward"',
)
SEVERAL_ARGUMENTS = (
    "", ", (3, 8)", ", s=(2, -1)", ", dim=(0, 2)", ", s=(4, 3), dim=(2, 0)", ', norm="ortho"', ', norm="forward"',
)  # fmt: skip


@pytest.mark.parametrize("arguments", ONE_ARGUMENTS)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_a_transform_of_one_dimension_is_torchs(name, dtype, arguments):
    agree(f"torch.fft.{name}(x(3, 4, 6, dtype={dtype}){arguments})")


@pytest.mark.parametrize("arguments", SEVERAL_ARGUMENTS)
@pytest.mark.parametrize("name", TWO + SEVERAL)
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_a_transform_of_several_dimensions_is_torchs(name, dtype, arguments):
    agree(f"torch.fft.{name}(x(3, 4, 6, dtype={dtype}){arguments})")


@pytest.mark.parametrize("dims", ["(0,)", "(1,)", "(2,)", "(0, 1)", "(2, 0)", "(1, 2)", "(2, 1, 0)", "(1, 0, 2)"])
@pytest.mark.parametrize("turned", ["", ".permute(1, 2, 0)", ".permute(2, 0, 1)", "[:, ::2]", "[:1].expand(3, 4, 6)"])
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_what_is_transformed_lies_last_in_memory(dtype, turned, dims):
    real = ("rfftn", "ihfftn") if dtype == "f64" else ()
    for name in ("fftn", "irfftn", *real, *(["hfftn"] if "expand" not in turned else [])):
        agree(f"torch.fft.{name}(x(3, 4, 6, dtype={dtype}){turned}, dim={dims}).stride()")


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ONE)
def test_out_is_resized_by_rows_but_for_conjugates(name, dim):
    source, out = ("f64", "c128") if name in ("rfft", "ihfft", "ifft", "fft") else ("c128", "f64")
    agree(
        f"(lambda out: (torch.fft.{name}(x(3, 4, 6, dtype={source}).detach(), dim={dim}, out=out), out.stride()))"
        f"(torch.empty(0, dtype=torch.{'complex128' if out == 'c128' else 'float64'}))"
    )


@pytest.mark.parametrize("kind", ["float32", "complex64", "int64", "int8", "bool", "uint8", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "fft2", "ihfftn"])
def test_the_dtype_of_the_result_follows_that_of_the_input(name, kind):
    agree(f"torch.fft.{name}(x(2, 4, grad=False).to(torch.{kind}))")


ERRORS = [
    'torch.fft.fft("a")', "torch.fft.fft(x(3), 2.5)", "torch.fft.fft(x(3), n=0)", "torch.fft.fft(x(3), n=-1)",
    "torch.fft.fft(x(3), dim=2)", "torch.fft.fft(x(3), dim=(0,))", 'torch.fft.fft(x(3), norm="no")',
    "torch.fft.fft2(x(3))", "torch.fft.fft2(x(3, 3), norm=3)", "torch.fft.fft(torch.tensor(1.0))",
    "torch.fft.fft(x(0))", "torch.fft.irfft(x(1))", "torch.fft.irfft(x(4), n=-3)",
    "torch.fft.fftn(x(2, 2), dim=(0, 0))",
    "torch.fft.fftn(x(2, 2), s=(1, 2), dim=(0,))", "torch.fft.fftn(x(2, 2), s=(1, 2, 3))",
    "torch.fft.fftn(x(2, 2), s=(0, 1))", "torch.fft.rfftn(x(2, 2), dim=())", "torch.fft.irfftn(x(2, 2), dim=())",
    "torch.fft.hfftn(x(2, 2), dim=())", "torch.fft.ihfftn(x(2, 2), dim=())", "torch.fft.rfft(x(3, dtype=c128))",
    "torch.fft.ihfft(x(3, dtype=c128))", "torch.fft.rfftn(x(3, dtype=c128))", "torch.fft.ihfftn(x(3, dtype=c128))",
    "torch.fft.fft(x(3, grad=False), out=torch.empty(3))",
    "torch.fft.irfft(x(3, grad=False), out=torch.empty(4, dtype=torch.complex64))",
    "torch.fft.fftshift(x(3), dim=4)", "torch.fft.fftshift(torch.tensor(2.0))",
]  # fmt: skip


@pytest.mark.parametrize("expression", ERRORS)
def test_a_wrong_call_raises_torchs_error(expression):
    agree(expression)


VALUES = [
    "torch.fft.fftn(torch.tensor(2.0))", "torch.fft.fftn(x(2, 3), dim=())", "torch.fft.fft(x(2, 0), n=2)",
    "torch.fft.fft(x(2, 3), axis=0)", "torch.fft.fft(x(4, 3).T, dim=0)",
    "torch.fft.fft(x(3, grad=False), out=torch.empty(3, dtype=torch.complex64))",
    "torch.fft.fftshift(x(4, 5))", "torch.fft.fftshift(x(4, 5), dim=-1)", "torch.fft.fftshift(x(4, 5), dim=(0, 1))",
    "torch.fft.ifftshift(x(4, 5))", "torch.fft.ifftshift(x(4, 5), 1)", "torch.fft.fftfreq(5)",
    "torch.fft.fftfreq(6, 0.5)",    "torch.fft.fftfreq(5, 0.0)", "torch.fft.fftfreq(0)", "torch.fft.fftfreq(-1)",
    "torch.fft.fftfreq(4, dtype=torch.int32)", "torch.fft.fftfreq(4, dtype=torch.complex64)",
    "torch.fft.fftfreq(5, dtype=torch.float64)", "torch.fft.fftfreq(5, out=torch.empty(5, dtype=torch.float64))",
    "torch.fft.rfftfreq(7, 2.5)", "torch.fft.rfftfreq(8)", "torch.fft.rfftfreq(-2)",
    "torch.fft.rfftfreq(4, requires_grad=True).requires_grad",
]  # fmt: skip


@pytest.mark.parametrize("expression", VALUES)
def test_the_rest_of_the_namespace_is_torchs(expression):
    agree(expression)


@on_both
def test_saved_values_are_torchs(torch):
    x = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    real = torch.fft.rfft(x, dim=0, norm="ortho").grad_fn
    back = torch.fft.irfft(x + 0j, dim=-1).grad_fn
    both = torch.fft.ifft2(x + 0j).grad_fn
    return [
        [real._saved_dim, real._saved_normalization, real._saved_onesided, real._saved_self],
        [back._saved_dim, back._saved_normalization],
        [both._saved_dim, both._saved_normalization, both._saved_forward],
    ]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "fftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_transforms_agree_with_torch(name, dtype):
    array = np.random.default_rng(0).standard_normal((40, 512)).astype(dtype)
    expected = getattr(peer.fft, name)(peer.tensor(array)).resolve_conj().numpy()
    found = getattr(pullback.fft, name)(pullback.tensor(array)).resolve_conj().numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-2 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft"])
def test_derivatives_of_second_order_are_torchs(name):
    def program(torch):
        x = torch.linspace(-1, 1, 6, dtype=torch.float64).requires_grad_()
        out = getattr(torch.fft, name)(x)
        total = (out.abs() ** 2).sum() if out.is_complex() else (out**3).sum()
        (first,) = torch.autograd.grad(total, x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), x)

    on_both(program)()


@on_both
def test_tangents_pass_through_a_transform(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.linspace(0, 1, 4), torch.linspace(1, 2, 4))
        return [forward_ad.unpack_dual(f(x)).tangent for f in (torch.fft.rfft, torch.fft.irfft, torch.fft.ifft)]


def test_a_transform_of_an_empty_batch_is_empty():
    assert pullback.fft.fft(pullback.empty(0, 3)).shape == (0, 3)
    assert pullback.fft.rfft(pullback.empty(0, 5)).shape == (0, 3)
    assert pullback.fft.irfft(pullback.empty(0, 3)).shape == (0, 4)
