"""vmap around other parts of the library: autograd.grad, new tensors, decompositions, convolutions of ensembles."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch as reference

import pullback
from pullback.func import grad, vmap
from tests.conformance.func.vmap_sweep import sweep

BOTH = (reference, pullback)


def arrays(result):
    return [t.detach().numpy() for t in (result if isinstance(result, tuple) else (result,))]


def assert_same(program):
    expected, ours = (arrays(program(torch)) for torch in BOTH)
    assert len(ours) == len(expected)
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_a_jacobian_from_autograd_grad_inside_vmap():
    def program(torch):
        x = torch.arange(5.0).requires_grad_()
        y = x**2
        return torch.vmap(lambda v: torch.autograd.grad(y, x, v))(torch.eye(5))

    assert_same(program)


def test_several_outputs_and_nested_vmaps_around_autograd_grad():
    def program(torch):
        x = torch.arange(3.0).requires_grad_()
        y = x.sin()

        def row(v):
            return torch.autograd.grad((y, y.sum()), x, (v, v[0]), retain_graph=True)[0]

        return torch.vmap(torch.vmap(row))(torch.arange(18.0).reshape(2, 3, 3))

    assert_same(program)


def test_backward_inside_vmap_is_an_error():
    texts = []
    for torch in BOTH:
        x = torch.arange(3.0).requires_grad_()
        with pytest.raises(RuntimeError) as caught:
            torch.vmap(lambda v, y=x**2: y.backward(v))(torch.eye(3))
        texts.append(str(caught.value))
        assert x.grad is None
    assert texts[1] == texts[0]


@pytest.mark.parametrize("maker", ["zeros_like", "ones_like", "empty_like"])
def test_a_new_tensor_like_a_batched_one_can_be_written_to(maker):
    assert_same(lambda torch: torch.vmap(lambda x: getattr(torch, maker)(x).copy_(x))(torch.arange(6.0).reshape(2, 3)))


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals"])
def test_gradients_through_vmap_of_values_without_vectors(name):
    def program(torch):
        x = (torch.arange(18.0, dtype=torch.float64) ** 2).reshape(2, 3, 3).sin().requires_grad_()
        out = torch.vmap(lambda m: getattr(torch.linalg, name)(m))(x)
        return torch.autograd.grad(out.sum(), x)

    assert_same(program)


def test_every_matrix_may_have_its_own_tolerance():
    def program(torch):
        x = torch.arange(36.0, dtype=torch.float64).reshape(2, 2, 3, 3).sin()
        rtol = torch.tensor([0.1, 0.5], dtype=torch.float64)
        return torch.vmap(lambda m, r: torch.linalg.pinv(m, rtol=r))(x, rtol)

    assert_same(program)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("in_dims", [(0, 0, 0), (None, 0, None), (0, None, None), (0, 0, None)], ids=str)
def test_gradients_of_convolutions_with_batched_weights_run_at_once(transposed, groups, in_dims):
    torch = pullback
    torch.manual_seed(0)
    convolve = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    weight = (3, 4, 3, 2, 3) if transposed else (3, 6, 4 // groups, 2, 3)
    shapes = [(3, 2, 4, 7, 7), weight, (3, 3 * groups if transposed else 6)]
    args = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    args = [arg if dim == 0 else arg[0] for arg, dim in zip(args, in_dims, strict=True)]
    slopes = grad(lambda x, w, b: (convolve(x, w, b, stride=2, padding=1, groups=groups) ** 2).sum(), (0, 1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = vmap(slopes, in_dims=in_dims)(*args)
    for i in range(3):
        rows = slopes(*[arg[i] if dim == 0 else arg for arg, dim in zip(args, in_dims, strict=True)])
        for ours, row in zip(got, rows, strict=True):
            np.testing.assert_allclose(ours[i].numpy(), row.numpy(), rtol=1e-9, atol=1e-9)


ALONG = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:2] * 2),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2] * 2),
    "index_fill": lambda x, i: x.index_fill(1, i, 3.0),
    "repeat": lambda x, i: x.repeat(2, 1, 3),
    "trace": lambda x, i: x.trace(),
    "sum over no dim": lambda x, i: x[0, 0].sum(()),
}


@pytest.mark.parametrize("name", ALONG)
def test_places_along_a_dim_are_used_for_all_entries_at_once(name):
    def program(torch):
        index = torch.tensor([2, 0])
        x = torch.arange(18.0).reshape(2, 3, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if torch is pullback else "ignore")
            return torch.vmap(lambda x: ALONG[name](x, index))(x)

    assert_same(program)


def test_the_sweep_reaches_ops_whose_path_differs_from_their_name():
    """linalg.solve lives elsewhere inside torch; the sweep must call it and not skip it."""
    solve = pullback.linalg.solve
    calls = []

    def counted(*args, **kwargs):
        calls.append(args)
        return solve(*args, **kwargs)

    pullback.linalg.solve = counted
    try:
        assert sweep(["linalg.solve"]) == {}
    finally:
        pullback.linalg.solve = solve
    assert calls


def test_a_hook_after_accumulation_may_return_its_tensor():
    def program(torch):
        v = torch.zeros(3, requires_grad=True)
        v.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.1))
        v.backward(torch.ones(3))
        return v

    assert_same(program)


def test_errors_of_cotangents_and_tangents_that_do_not_fit():
    for call in (
        lambda f, t: f.vjp(lambda x: {"a": x, "b": (x, x)}, t.ones(2))[1](t.ones(2)),
        lambda f, t: f.linearize(lambda x: x.sin(), t.ones(3))[1](t.ones(2)),
        lambda f, t: f.linearize(lambda x: x.sin(), t.ones(3))[1](t.ones(3, dtype=t.float64)),
    ):
        texts = []
        for torch in BOTH:
            with warnings.catch_warnings(), pytest.raises(RuntimeError) as caught:
                warnings.simplefilter("ignore")
                call(torch.func, torch)
            texts.append(str(caught.value))
        assert texts[1] == texts[0]


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("interpolation", ["linear", "midpoint", "lower"])
@pytest.mark.parametrize("dim", [0, None])
def test_each_entry_may_ask_for_quantiles_of_its_own(name, interpolation, dim):
    def program(torch):
        x, q = torch.arange(30.0).reshape(2, 3, 5) ** 1.5, torch.tensor([[0.2, 0.5], [0.3, 0.9]])
        asked = partial(getattr(torch, name), dim=dim, interpolation=interpolation)
        same = torch.vmap(asked, in_dims=(None, 0))(x[0], q)
        return torch.vmap(asked)(x, q), same, torch.func.jacfwd(asked)(x[0], q[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no rule for them and says so
        assert_same(program)
    for torch in BOTH:
        with pytest.raises(RuntimeError, match=r"quantile\(\) q values must be in the range \[0, 1\]"):
            torch.vmap(getattr(torch, name))(torch.ones(2, 3), torch.tensor([0.5, 1.5]))


@pytest.mark.parametrize("dims", [0, (0, None), (None, 0)])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 0, 3)])
def test_an_index_of_nothing_may_have_other_dimensions_than_what_is_gathered(shape, dims):
    def program(torch):
        x, index = torch.arange(10.0).reshape(2, 5), torch.zeros(2, *shape, dtype=torch.int64)
        given = dims if isinstance(dims, tuple) else (0, 0)
        x, index = (one if dim == 0 else one[0] for one, dim in zip((x, index), given))
        return tuple(torch.vmap(lambda a, b, dim=dim: torch.gather(a, dim, b), given)(x, index) for dim in (0, -1))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch goes entry by entry and says so
        assert_same(program)
