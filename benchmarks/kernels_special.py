"""Special functions, inverses of circular and hyperbolic ones, some derivatives: a million numbers, two threads each.

Their rows stand apart: torch computes many of them one number at a time, which would flatter the mean of other ops.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.compare import Build, compared
from benchmarks.table import Row

EACH, MEAN = 1.5, 0.5
"""Budgets: no function much slower than torch's, and their geometric mean."""
SIZE = 1_000_000

ONE: dict[str, tuple[float, float]] = {
    "erf": (-3, 3), "erfc": (-3, 3), "erfinv": (-1, 1), "special.erfcx": (-3, 3), "special.ndtri": (0, 1),
    "special.log_ndtr": (-5, 5), "lgamma": (0.1, 10), "digamma": (-5, 5), "i0": (-10, 10), "special.i0e": (-10, 10),
    "special.i1": (-10, 10), "special.i1e": (-10, 10), "tan": (-3, 3), "asin": (-1, 1), "acos": (-1, 1),
    "atan": (-3, 3), "asinh": (-3, 3), "acosh": (1, 10), "atanh": (-1, 1), "sinh": (-3, 3), "cosh": (-3, 3),
    "exp2": (-3, 3), "angle": (-3, 3), "special.modified_bessel_i0": (-10, 10),
    "special.spherical_bessel_j0": (-10, 10),
}  # fmt: skip
"""Functions of one number, and the range in which they are measured."""
TWO = ("hypot", "atan2", "logaddexp2", "nextafter")
DERIVATIVES = ("erfinv", "lgamma", "digamma", "special.i1e", "special.log_ndtr")


def function(torch: ModuleType, name: str) -> Callable[..., Any]:
    for part in name.split("."):
        torch = getattr(torch, part)
    return torch  # type: ignore[return-value]


def values(torch: ModuleType, span: tuple[float, float], dtype: str) -> Any:
    low, high = span
    return torch.rand(SIZE, dtype=getattr(torch, dtype)) * (high - low) + low


def one(name: str, dtype: str) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        compute, x = function(torch, name), values(torch, ONE[name], dtype)
        return lambda: compute(x)

    return build


def two(name: str, dtype: str) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        compute, x, y = function(torch, name), *(values(torch, (-3, 3), dtype) for _ in range(2))
        return lambda: compute(x, y)

    return build


def polygamma(n: int, dtype: str) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = values(torch, (0.1, 10), dtype)
        return lambda: torch.polygamma(n, x)

    return build


def backward(name: str) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = values(torch, ONE[name], "float32").requires_grad_()
        out = function(torch, name)(x)
        grad = torch.ones_like(out)
        return lambda: torch.autograd.grad(out, x, grad, retain_graph=True)

    return build


def cases() -> Iterator[tuple[str, Build]]:
    """Everything measured, by name."""
    for dtype in ("float32", "float64"):
        for name in ONE:
            yield f"{name}, 1M of {dtype}", one(name, dtype)
        for name in TWO:
            yield f"{name}, 1M of {dtype}", two(name, dtype)
        for n in (1, 2, 3, 4):
            yield f"polygamma({n}), 1M of {dtype}", polygamma(n, dtype)
    for name in DERIVATIVES:
        yield f"{name} backward, 1M", backward(name)


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one function, and the geometric mean of the ratios."""
    return compared("special", cases(), (torch, peer), 0.2 if quick else 1.0, (EACH, MEAN), "us")
