"""What no sample of an op shows: corner values, memory, messages. Each program is run on both libraries and compared.

The tables in `programs/` hold one program a line: statements, then an expression whose value is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from tests.conformance.both import attempt, evaluated, on_both, same

PROGRAMS = Path(__file__).parent / "programs"


def lines(table: str) -> list[str]:
    """The programs of a table."""
    return (PROGRAMS / f"{table}.txt").read_text().split("\n")[:-1]


def value_of(torch: ModuleType, source: str) -> Any:
    """Run the statements of a program; the value of its last expression."""
    names = {
        "torch": torch, "F": torch.nn.functional, "np": np, "math": math, "inf": math.inf, "nan": math.nan
    }  # fmt: skip
    *statements, expression = source.split("; ")
    for statement in statements:
        exec(statement, names)
    return evaluated(expression, names)


def memory_of(torch: ModuleType, value: Any) -> Any:
    """The strides of every tensor with more than one element, the grad_fn of each, the types of everything else."""
    if isinstance(value, torch.Tensor):
        wide = [step for n, step in zip(value.shape, value.stride(), strict=True) if n > 1]
        return [wide if value.numel() else [], type(value.grad_fn).__name__]
    if isinstance(value, (list, tuple)):
        return [memory_of(torch, part) for part in value]
    return type(value).__name__


def with_memory(source: str) -> Callable[[Any], Any]:
    """A program that returns a value and how it lies in memory."""

    def program(torch: Any) -> Any:
        value = value_of(torch, source)
        if isinstance(value, (str, np.ndarray)):
            return str(value).replace("pullback", "torch")
        return [value, memory_of(torch, value)]

    return program


@pytest.mark.parametrize("source", lines("numbers"))
def test_arithmetic_and_creation_agree_on_corner_values(source: str) -> None:
    same(with_memory(source))


@pytest.mark.parametrize("source", lines("shapes"))
def test_indexing_shapes_and_conversions_agree(source: str) -> None:
    same(with_memory(source))


@pytest.mark.parametrize("source", lines("reductions"))
def test_reductions_casts_and_autograd_agree(source: str) -> None:
    same(with_memory(source))


@pytest.mark.parametrize("source", lines("layers"))
def test_layers_optimizers_and_loaders_agree_on_bad_arguments(source: str) -> None:
    same(with_memory(source))


@pytest.mark.parametrize("source", lines("refusals"))
def test_operands_without_elements_or_dimensions_are_refused_and_taken_alike(source: str) -> None:
    same(lambda torch: value_of(torch, source))


@pytest.mark.parametrize("source", lines("text"))
def test_tensors_read_the_same_as_text_and_as_python_numbers(source: str) -> None:
    same(with_memory(source))


@pytest.mark.parametrize("values", ["[0., -0., 1., -1., 2., 2.]", "[nan, 1., -1., inf, -inf, 0.]"])
@pytest.mark.parametrize("expression", lines("gradients"))
def test_gradients_agree_at_kinks_and_beyond_numbers(expression: str, values: str) -> None:
    def program(torch: Any) -> Any:
        made = f"x = torch.tensor({values}, requires_grad=True); y = {expression}"
        return value_of(torch, f"{made}; torch.autograd.grad(y, x, torch.ones_like(y), allow_unused=True)")

    same(program)


# ------------------------------------------------------------------ memory


@pytest.mark.filterwarnings("ignore:index_reduce")  # both libraries warn once, whichever test comes first
@pytest.mark.parametrize("source", lines("memory"))
def test_results_of_transposed_tensors_are_contiguous_where_torch_makes_them_so(source: str) -> None:
    value = value_of(pullback, source)
    for tensor in value if isinstance(value, (list, tuple)) else [value]:
        tensor.view(-1)


SELECTIONS = """
x[[0, 1]]
x[:, [0, 1]]
x[..., [0, 1]]
x[[0, 1], [0, 1]]
x[[0, 1], :, [0, 1]]
x[torch.tensor([[0, 1], [1, 0]])]
x[:, torch.tensor([[0, 1], [1, 0]])]
x[x[..., 0] > 3]
""".strip().split("\n")


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_selection_keeps_the_order_of_memory(selection: str, order: tuple[int, ...]) -> None:
    same(with_memory(f"x = torch.arange(24.0).reshape(2, 3, 4).permute{order}; {selection}"))


# ------------------------------------------------------------------ half precision


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "expression",
    [
        "torch.addmm(c, a, b)",
        "torch.addmm(c, a, b, alpha=0.3, beta=0.7)",
        "torch.addmm(c, a, b, beta=0)",
        "torch.baddbmm(c, a[None], b[None], alpha=0.3, beta=0.7)",
        "torch.addbmm(c, a[None], b[None])",
        "torch.addmv(c[:3], a, b[:, 0])",
        "F.linear(a, b.t(), c)",
        "F.linear(a[None], b.t(), c)",
    ],
)
def test_a_sum_with_a_product_in_half_precision_is_rounded_once(expression: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        random = np.random.RandomState(0)
        made = {name: torch.tensor(random.randn(*size)) for name, size in (("a", (3, 5)), ("b", (5, 4)), ("c", (4,)))}
        made = {name: tensor.to(getattr(torch, dtype)) for name, tensor in made.items()}
        return [str(eval(expression, {"torch": torch, "F": torch.nn.functional, **made}).tolist())]

    same(program)


# ------------------------------------------------------------------ graphs of graphs


@pytest.mark.parametrize(
    "expression",
    ["x.mean()", "x.mean(1)", "x.mean((0, 1), True)", "x.tanh()", "x.sigmoid()", "torch.add(x, x, alpha=3)"]
    + ["torch.sub(1, x, alpha=3)", "torch.addmm(x, x, x, alpha=3, beta=2)", "torch.addmv(x[0], x, x[1], beta=2)"],
)
def test_differentiable_gradients_are_recorded_as_the_same_nodes(expression: str) -> None:
    def program(torch: Any) -> Any:
        x = (torch.arange(9.0).reshape(3, 3) / 10).requires_grad_()
        y = eval(expression, {"torch": torch, "x": x})
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y).requires_grad_(), create_graph=True)
        saved = [name for name in dir(grad.grad_fn) if name.startswith("_saved")]
        again = torch.autograd.grad(grad.exp().sum(), x, allow_unused=True, materialize_grads=True)
        return [type(grad.grad_fn).__name__, saved, grad.detach(), again]

    same(program)


# ------------------------------------------------------------------ single behaviours


@on_both
def test_relu_knows_bfloat16(torch: Any) -> Any:
    x = torch.tensor([-1.0, 0.5], dtype=torch.bfloat16, requires_grad=True)
    return torch.autograd.grad(x.relu().sum(), x)


@on_both
def test_shifting_bytes_out_leaves_nothing(torch: Any) -> Any:
    x = torch.tensor([200, 7], dtype=torch.uint8)
    return [x >> 8, x >> -3, x << 9, torch.tensor([-200]) >> 70]


@on_both
def test_running_sums_of_bools_need_another_dtype(torch: Any) -> Any:
    x = torch.tensor([True, False])
    return [attempt(lambda f=f: f(x, 0, dtype=torch.bool)) for f in (torch.cumsum, torch.cumprod)] + [x.cumsum(0)]


@on_both
def test_some_special_functions_have_no_half_precision(torch: Any) -> Any:
    x = torch.tensor([0.5], dtype=torch.float16)
    named = (torch.special.erfcx, torch.special.ndtri, torch.special.log_ndtr, lambda x: torch.special.zeta(x, x))
    return [attempt(lambda f=f, d=d: f(x.to(d))) for f in named for d in (torch.float16, torch.bfloat16)]


@on_both
def test_the_entropy_of_zero_is_positive_zero(torch: Any) -> Any:
    return 1 / torch.special.entr(torch.zeros(2))


@on_both
def test_in_place_operations_say_first_what_does_not_fit(torch: Any) -> Any:
    x = torch.tensor([True, False])
    calls = (lambda: x.bitwise_and_(2.5), lambda: x.bitwise_xor_(torch.ones(3, 2)), lambda: x.gcd_(torch.ones(3, 2)))
    more = (lambda: torch.ones(2).logical_and_(2.5), lambda: torch.ones(2).lt_(torch.ones(3, 2) * 1j))
    return [attempt(call) for call in calls + more] + [x]


@on_both
def test_errors_name_foreign_types_with_their_modules(torch: Any) -> Any:
    array = np.ones(2)
    calls = (lambda: torch.sin(array), lambda: torch.add(array, 1), lambda: torch.cat([torch.ones(2), array]))
    more = (lambda: torch.sin(np.float64(2)), lambda: setattr(torch.ones(2, requires_grad=True), "grad", array))
    return [attempt(call) for call in calls + more]


@on_both
def test_indices_are_written_into_longs_only(torch: Any) -> Any:
    x = torch.arange(4.0).reshape(2, 2)
    wrong = (torch.ones(2), torch.ones(2, dtype=torch.int32))
    calls = (lambda: torch.max(x, 0, out=wrong), lambda: torch.argmax(x, 0, out=torch.ones(2)))
    return [attempt(call) for call in (*calls, lambda: torch.sin(x, out=3))]


@on_both
def test_a_convolution_compares_the_bias_first(torch: Any) -> Any:
    x, weight, bias = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1)
    conv = torch.nn.functional.conv2d
    cases = [
        (x.double(), weight, bias),
        (x, weight.double(), bias),
        (x, weight, bias.double()),
        (x.half(), weight, bias),
    ]
    return [attempt(lambda case=case: conv(*case)) for case in cases]


@on_both
def test_broadcast_shapes_shows_a_shape_as_it_was_given(torch: Any) -> Any:
    shapes = [((3,), (2,)), (torch.Size([3]), torch.Size([4, 2])), ([3], [2])]
    return [attempt(lambda pair=pair: torch.broadcast_shapes(*pair)) for pair in shapes]


@on_both
def test_the_vector_product_of_numbers_is_refused(torch: Any) -> Any:
    x, scalar = torch.ones(3), torch.ones(())
    calls = (lambda: torch.cross(x, 3, dim=0), lambda: torch.linalg.cross(scalar, scalar))
    return [attempt(call) for call in calls]


@on_both
def test_bags_are_scaled_by_the_counts_torch_finds(torch: Any) -> Any:
    table = torch.arange(10.0).reshape(5, 2).requires_grad_()
    bags = torch.nn.functional.embedding_bag(
        torch.tensor([0, 1, 2, 3, 4, 1]), table, torch.tensor([0, 3]), mode="sum", scale_grad_by_freq=True
    )
    return torch.autograd.grad(bags, table, torch.arange(4.0).reshape(2, 2) + 1)


@on_both
def test_new_tensors_of_a_batch_are_a_batch(torch: Any) -> Any:
    x = torch.arange(6.0).reshape(3, 2)
    makers = (lambda x: x.new_zeros(2), lambda x: x.new_ones((2,)), lambda x: x.new_full((2,), 4.0))
    made = [torch.func.vmap(lambda x, make=make: make(x).add_(x))(x) for make in makers]
    return [*made, torch.func.vmap(lambda x: x.new_empty(size=(2,)).copy_(x))(x)]


@on_both
def test_differences_that_are_not_numbers_have_gradients_that_are_not(torch: Any) -> Any:
    x = torch.tensor([math.nan, 2.0, 0.1], requires_grad=True)
    losses = (torch.nn.functional.smooth_l1_loss, torch.nn.functional.huber_loss, torch.nn.functional.mse_loss)
    return [torch.autograd.grad(loss(x, torch.zeros(3)), x) for loss in losses]


@on_both
def test_probabilities_that_are_not_numbers_are_refused(torch: Any) -> Any:
    loss, good, bad = torch.nn.functional.binary_cross_entropy, torch.tensor([0.5]), torch.tensor([math.nan])
    return [attempt(lambda: loss(bad, good)), attempt(lambda: loss(good, bad))]


@on_both
def test_gradients_go_on_where_functions_end(torch: Any) -> Any:
    cases = {"acosh": [-3.0, 0.5, 2.0], "sinc": [0.0, 1e-38, 1e-20, 0.5], "digamma": [math.inf, 2.0]}
    out = []
    for name, values in cases.items():
        x = torch.tensor(values, requires_grad=True)
        out.append(torch.autograd.grad(getattr(x, name)().sum(), x))
    return out


@on_both
def test_instance_norm_takes_channels_from_anywhere_in_memory(torch: Any) -> Any:
    x = torch.arange(96.0).reshape(2, 3, 4, 4)
    norm = torch.nn.functional.instance_norm
    return [norm(x.to(memory_format=torch.channels_last)), norm(x.permute(1, 2, 0, 3))]


def test_an_unknown_padding_mode_is_refused() -> None:
    """The text lists a set, whose order is not the same in two libraries."""

    def program(torch: Any) -> Any:
        kind, text = attempt(lambda: torch.nn.Conv2d(1, 1, 3, padding_mode="bad"))[1:]
        return [kind, sorted(text)]

    same(program)
