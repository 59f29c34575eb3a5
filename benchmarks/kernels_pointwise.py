"""Pointwise ops, their derivatives, copies and reductions of large tensors, two threads each."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.compare import Build, compared
from benchmarks.table import Row

EACH, MEAN = 1.1, 0.7
"""Budgets: no op much slower than torch's, and their geometric mean."""


def unary(function: Callable[[ModuleType, Any], Any], *shape: int, dtype: str = "float32") -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = torch.randn(*shape, dtype=getattr(torch, dtype))
        return lambda: function(torch, x)

    return build


def binary(function: Callable[[ModuleType, Any, Any], Any], *shapes: tuple[int, ...]) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x, y = (torch.randn(*shape) for shape in shapes)
        return lambda: function(torch, x, y)

    return build


def backward(function: Callable[[ModuleType, Any], Any], *shape: int) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = torch.randn(*shape, requires_grad=True)
        out = function(torch, x)
        grad = torch.ones_like(out)
        return lambda: torch.autograd.grad(out, x, grad, retain_graph=True)

    return build


UNARY: dict[str, Callable[[ModuleType, Any], Any]] = {
    "exp": lambda torch, x: torch.exp(x),
    "log1p": lambda torch, x: torch.log1p(x),
    "tanh": lambda torch, x: torch.tanh(x),
    "sigmoid": lambda torch, x: torch.sigmoid(x),
    "erf": lambda torch, x: torch.erf(x),
    "sin": lambda torch, x: torch.sin(x),
    "relu": lambda torch, x: torch.relu(x),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
    "silu": lambda torch, x: torch.nn.functional.silu(x),
    "softplus": lambda torch, x: torch.nn.functional.softplus(x),
    "clamp": lambda torch, x: x.clamp(-1, 1),
    "x ** 3": lambda torch, x: x**3,
    "x * 2.5": lambda torch, x: x * 2.5,
}
BINARY: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "add": lambda torch, x, y: x + y,
    "mul": lambda torch, x, y: x * y,
    "div": lambda torch, x, y: x / y,
    "x < y": lambda torch, x, y: x < y,
    "maximum": lambda torch, x, y: torch.maximum(x, y),
    "lerp": lambda torch, x, y: torch.lerp(x, y, 0.3),
    "add_": lambda torch, x, y: x.add_(y),
}
REDUCTIONS: dict[str, Callable[[ModuleType, Any], Any]] = {
    "sum": lambda torch, x: x.sum(),
    "sum(0)": lambda torch, x: x.sum(0),
    "sum(1)": lambda torch, x: x.sum(1),
    "mean(1)": lambda torch, x: x.mean(1),
    "var(1)": lambda torch, x: x.var(1),
    "std(0)": lambda torch, x: x.std(0),
    "max": lambda torch, x: x.max(),
    "amax(0)": lambda torch, x: x.amax(0),
    "max(1)": lambda torch, x: x.max(1),
    "argmax(1)": lambda torch, x: x.argmax(1),
    "norm": lambda torch, x: x.norm(),
    "logsumexp(1)": lambda torch, x: x.logsumexp(1),
    "cumsum(1)": lambda torch, x: x.cumsum(1),
}


def cases() -> Iterator[tuple[str, Build]]:
    """Everything measured, by name."""
    for size, shown in ((1_000_000, "1M"), (16_000_000, "16M")):
        for name, function in UNARY.items():
            yield f"{name}, {shown}", unary(function, size)
        for name, two in BINARY.items():
            yield f"{name}, {shown}", binary(two, (size,), (size,))
    for name in ("exp", "tanh", "x * 2.5"):
        yield f"{name}, 1M of float64", unary(UNARY[name], 1_000_000, dtype="float64")
    for name in ("tanh", "sigmoid", "relu", "gelu", "silu", "x ** 3"):
        yield f"{name} backward, 1M", backward(UNARY[name], 1_000_000)
    yield "[1000, 1000] + [1000]", binary(BINARY["add"], (1000, 1000), (1000,))
    yield "[1000, 1000] * [1000, 1]", binary(BINARY["mul"], (1000, 1000), (1000, 1))
    yield "[1000, 1000] + its transpose", unary(lambda torch, x: x + x.t(), 1000, 1000)
    yield "where, 1M", binary(lambda torch, x, y: torch.where(x > 0, x, y), (1_000_000,), (1_000_000,))
    yield "clone, 1M", unary(lambda torch, x: x.clone(), 1_000_000)
    yield "double(), 1M", unary(lambda torch, x: x.double(), 1_000_000)
    yield (
        "[12, 64, 4, 32] permuted and made contiguous",
        unary(lambda torch, x: x.transpose(1, 2).contiguous(), 12, 64, 4, 32),
    )
    for name, function in REDUCTIONS.items():
        yield f"{name} of [1000, 1000]", unary(function, 1000, 1000)
    for name in ("sum", "sum(0)", "sum(1)", "max"):
        yield f"{name} of [4000, 4000]", unary(REDUCTIONS[name], 4000, 4000)
    yield "sum((0, 2, 3)) of [16, 64, 32, 32]", unary(lambda torch, x: x.sum((0, 2, 3)), 16, 64, 32, 32)
    yield "sum(0) of [768, 512]", unary(REDUCTIONS["sum(0)"], 768, 512)


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one op, and the geometric mean of the ratios."""
    return compared("pointwise", cases(), (torch, peer), 0.2 if quick else 1.0, (EACH, MEAN), "us")
