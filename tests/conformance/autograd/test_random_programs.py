"""Random programs: values, gradients and Hessians as torch's, jvp the transpose of vjp, vmap the loop."""

import importlib
import warnings

import numpy as np
import torch as reference
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback

UNARY = ["sin", "cos", "tanh", "exp", "sigmoid", "square", "neg", "sinh"]
BINARY = ["add", "sub", "mul", "maximum"]
SHAPES = ["sum", "mean", "cumsum", "flip", "transpose", "softmax", "reshape", "slice", "matmul", "prod"]

steps = st.one_of(
    st.tuples(st.sampled_from(UNARY), st.integers(0, 7)),
    st.tuples(st.sampled_from(BINARY), st.integers(0, 7), st.integers(0, 7)),
    st.tuples(st.sampled_from(SHAPES), st.integers(0, 7)),
)
programs = st.lists(steps, min_size=1, max_size=7)
seeds = st.integers(0, 1000)


def evaluate(torch, program, x):
    """Run the steps on x, a tensor [3, 3]; every step makes a tensor [3, 3] of earlier ones. The mean of all."""
    values = [x]
    for name, *operands in program:
        a = values[operands[0] % len(values)]
        if name in UNARY:
            out = getattr(torch, name)(a * 0.5)
        elif name in BINARY:
            out = getattr(torch, name)(a, values[operands[1] % len(values)] + 0.1)
        elif name in ("sum", "mean", "prod"):
            out = getattr(a, name)(0, keepdim=True).expand(3, 3)
        elif name in ("cumsum", "softmax"):
            out = getattr(a, name)(1)
        elif name == "flip":
            out = a.flip(0)
        elif name == "transpose":
            out = a.t()
        elif name == "reshape":
            out = a.t().reshape(9).view(3, 3)
        elif name == "slice":
            out = torch.cat([a[1:], a[:1] * 2])
        else:
            out = a @ values[-1] * 0.3
        values.append(out.clamp(-3, 3))
    return torch.stack(values[1:]).mean(0)


def point(torch, seed):
    return torch.from_numpy(np.random.default_rng(seed).uniform(-1, 1, (3, 3)))


def func(torch):
    return importlib.import_module(f"{torch.__name__}.func")


def close(a, b):
    return np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-7, atol=1e-9)


@settings(max_examples=40)
@given(programs, seeds)
def test_value_and_gradient_are_those_of_torch(program, seed):
    outcomes = []
    for torch in (reference, pullback):
        x = point(torch, seed).requires_grad_()
        out = evaluate(torch, program, x)
        (grad,) = torch.autograd.grad((out * out).sum(), x)
        outcomes.append((out, grad))
    (value, grad), (ours, our_grad) = outcomes
    assert close(ours, value) and close(our_grad, grad)


@settings(max_examples=15)
@given(programs, seeds)
def test_the_hessian_is_that_of_torch_by_every_way(program, seed):
    def scalar(torch):
        return lambda x: evaluate(torch, program, x).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference.autograd.functional.hessian(scalar(reference), point(reference, seed))
    x, f = point(pullback, seed), func(pullback)
    assert close(pullback.autograd.functional.hessian(scalar(pullback), x), expected)
    assert close(f.hessian(scalar(pullback))(x), expected)
    assert close(f.jacrev(f.jacrev(scalar(pullback)))(x), expected)
    assert close(f.jacfwd(f.jacfwd(scalar(pullback)))(x), expected)


@settings(max_examples=30)
@given(programs, seeds)
def test_forward_mode_is_the_transpose_of_backward(program, seed):
    f, x = func(pullback), point(pullback, seed)
    u, v = point(pullback, seed + 1), point(pullback, seed + 2)
    _, pushed = f.jvp(lambda x: evaluate(pullback, program, x), (x,), (u,))
    _, pull = f.vjp(lambda x: evaluate(pullback, program, x), x)
    assert np.isclose((pushed * v).sum().item(), (pull(v)[0] * u).sum().item(), rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(programs, seeds, st.integers(0, 2))
def test_vmap_is_the_loop_for_values_and_gradients(program, seed, dim):
    f = func(pullback)
    batch = pullback.stack([point(pullback, seed + i) for i in range(4)], dim)

    def run(x):
        return evaluate(pullback, program, x)

    def slope(x):
        return f.grad(lambda x: (run(x) ** 2).sum())(x)

    for function in (run, slope):
        expected = pullback.stack([function(batch.select(dim, i)) for i in range(4)])
        assert close(f.vmap(function, in_dims=dim)(batch), expected)


@settings(max_examples=15)
@given(programs, seeds)
def test_batched_rows_of_a_jacobian_are_the_single_ones(program, seed):
    x = point(pullback, seed)

    def run(x):
        return evaluate(pullback, program, x)

    at_once = pullback.autograd.functional.jacobian(run, x)
    leaf = x.clone().requires_grad_()
    out = run(leaf).reshape(-1)
    rows = [pullback.autograd.grad(out[i], leaf, retain_graph=True)[0] for i in range(9)]
    assert close(at_once.reshape(9, 3, 3), pullback.stack(rows))
