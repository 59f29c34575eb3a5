"""Python's own types of numbers stand for dtypes wherever one is asked for."""

import pytest

from tests.conformance.both import attempt, evaluated, on_both

CALLS = """
x.to(P)
x.to(dtype=P)
x.to("cpu", P)
x.to(torch.device("cpu"), dtype=P)
x.to(P, True)
x.to(P, copy=True)
x.eq(x).to(P)
x.sum(dtype=P)
x.sum(0, True, dtype=P)
torch.sum(x, 0, dtype=P)
torch.Tensor.sum(x, dtype=P)
x.prod(dtype=P)
torch.prod(x, 0, dtype=P)
x.mean(dtype=P)
torch.mean(x, 0, dtype=P)
torch.nansum(x, dtype=P)
torch.nanmean(x, dtype=P)
x.cumsum(0, dtype=P)
torch.cumprod(x, 1, dtype=P)
torch.softmax(x, 0, dtype=P)
x.log_softmax(0, dtype=P)
torch.nn.functional.softmin(x, 0, dtype=P)
torch.special.softmax(x, 0, dtype=P)
torch.norm(x, dtype=P)
torch.linalg.vector_norm(x, dtype=P)
torch.linalg.matrix_norm(x, dtype=P)
torch.zeros_like(x, dtype=P)
x.new_zeros(2, dtype=P)
torch.arange(3, dtype=P)
torch.tensor([1.0], dtype=P)
torch.tril_indices(2, 2, dtype=P)
torch.can_cast(torch.float32, P)
torch.promote_types(torch.float32, P)
torch.promote_types(P, torch.int8)
str(torch.finfo(P))
str(torch.iinfo(P))
torch.vmap(lambda t: t.to(P))(x)
torch.vmap(lambda t: t.sum(dtype=P))(x)
""".strip().splitlines()


@pytest.mark.parametrize("kind", [float, int, bool, complex])
def test_types_of_python_are_dtypes(kind):
    @on_both
    def program(torch):
        x = torch.tensor([[0.5, 1.5], [2.0, 3.0]])
        return [attempt(lambda c=c: evaluated(c, {"torch": torch, "x": x, "P": kind})) for c in CALLS]

    program()


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
@pytest.mark.parametrize("kind", [float, int, bool, complex])
def test_modules_are_converted_to_types_of_python(kind):
    @on_both
    def program(torch):
        def weight(*args, **options):
            return torch.nn.Linear(1, 1).to(*args, **options).weight.dtype

        ways = (lambda: weight(kind), lambda: weight(dtype=kind), lambda: weight("cpu", kind))
        return [str(attempt(way)) if kind in (float, complex) else attempt(way) for way in ways]

    program()


@on_both
def test_gradients_flow_through_sums_in_types_of_python(torch):
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    total = x.sum(dtype=float) + x.softmax(0, dtype=float)[0] + x.cumsum(0, dtype=float)[1] + x.to(float)[0]
    total.backward()
    return total, x.grad, total.grad_fn.name()


@on_both
def test_other_types_are_no_dtypes(torch):
    x = torch.ones(2)
    calls = (lambda: torch.zeros(2, dtype=str), lambda: torch.tensor([1], dtype=object), lambda: torch.finfo(str))
    return [attempt(call) for call in calls], attempt(lambda: x.to(str)), attempt(lambda: x.to(x, float))
