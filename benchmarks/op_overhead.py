"""What each op costs on four float32 elements, forward and recorded for a gradient: one row per op and a mean.

Writes in place and random draws have rows of their own, which the mean leaves out.
Nothing is computed worth speaking of, so a row shows what the library adds to the arithmetic.
"""

import gc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.table import Row

EACH_BUDGET = 1.5
MEAN_BUDGET = 0.8
WRITE_BUDGET = 5.0
"""Writes in place and draws go through Python, where torch has a microsecond and less for them."""

Call = Callable[[ModuleType, Any, Any], Any]


@dataclass(frozen=True)
class Case:
    """`call(torch, x, y)` runs the op once; `above_one` gives it numbers above one instead of below."""

    name: str
    call: Call
    differentiable: bool = True
    above_one: bool = False


def named(names: str, *arguments: Any, differentiable: bool = True, binary: bool = False) -> list[Case]:
    """Cases of functions of the top namespace that all take the same arguments."""

    def case(name: str) -> Case:
        def call(torch: ModuleType, x: Any, y: Any) -> Any:
            function = getattr(torch, name)
            return (lambda: function(x, y, *arguments)) if binary else (lambda: function(x, *arguments))

        return Case(name, call, differentiable, above_one=name == "acosh")

    return [case(name) for name in names.split()]


def method(name: str, *arguments: Any, differentiable: bool = True, shown: str = "") -> Case:
    """The case of a method of a tensor."""

    def call(torch: ModuleType, x: Any, y: Any) -> Any:
        return lambda: getattr(x, name)(*arguments)

    return Case(shown or f"x.{name}({', '.join(map(repr, arguments))})", call, differentiable)


UNARY = (
    "abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 "
    "floor frac i0 lgamma log log10 log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu round "
    "rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc"
)
TESTS = "isfinite isinf isnan isneginf isposinf isreal logical_not signbit"
BINARY = (
    "add atan2 copysign div float_power fmax fmin fmod hypot logaddexp logaddexp2 maximum minimum mul nextafter pow "
    "remainder rsub sub true_divide xlogy"
)
COMPARISONS = "eq floor_divide ge gt isclose le logical_and logical_or logical_xor lt ne"
REDUCTIONS = "amax amin logsumexp max mean median min norm prod std sum var"
IN_PLACE = "abs_ ceil_ cos_ exp_ floor_ neg_ relu_ round_ sigmoid_ sqrt_ tanh_ zero_"
FILLS = "uniform_ normal_ exponential_ bernoulli_"
QUESTIONS = "all any argmax argmin count_nonzero"
SCANS = "cummax cummin cumprod cumsum logcumsumexp softmax log_softmax"

CASES = [
    *named(UNARY),
    *named(TESTS, differentiable=False),
    *named(BINARY, binary=True),
    *named(COMPARISONS, binary=True, differentiable=False),
    *(
        Case(f"x {sign} 2.0", call)
        for sign, call in {
            "+": lambda torch, x, y: lambda: x + 2.0,
            "-": lambda torch, x, y: lambda: x - 2.0,
            "*": lambda torch, x, y: lambda: x * 2.0,
            "/": lambda torch, x, y: lambda: x / 2.0,
            "**": lambda torch, x, y: lambda: x**2.0,
            "<": lambda torch, x, y: lambda: x < 2.0,
        }.items()
    ),
    Case("2.0 - x", lambda torch, x, y: lambda: 2.0 - x),
    Case("2.0 / x", lambda torch, x, y: lambda: 2.0 / x),
    Case("-x", lambda torch, x, y: lambda: -x),
    Case("x @ y", lambda torch, x, y: lambda: x @ y),
    Case("clamp", lambda torch, x, y: lambda: torch.clamp(x, 0.1, 0.3)),
    Case("where", lambda torch, x, y: (lambda mask: lambda: torch.where(mask, x, y))(x > 0.2)),
    Case("lerp", lambda torch, x, y: lambda: torch.lerp(x, y, 0.5)),
    Case("addcmul", lambda torch, x, y: lambda: torch.addcmul(x, x, y)),
    Case("masked_fill", lambda torch, x, y: (lambda mask: lambda: x.masked_fill(mask, 0.0))(x > 0.2)),
    *(
        Case(f"{name}, all", lambda torch, x, y, name=name: (lambda f: lambda: f(x))(getattr(torch, name)))
        for name in REDUCTIONS.split()
        if name != "logsumexp"
    ),
    *(
        Case(f"{name}, dim 0", lambda torch, x, y, name=name: (lambda f: lambda: f(x, dim=0))(getattr(torch, name)))
        for name in REDUCTIONS.split()
    ),
    *named(QUESTIONS, differentiable=False),
    *named(SCANS, 0),
    Case("sort", lambda torch, x, y: lambda: torch.sort(x)),
    Case("topk", lambda torch, x, y: lambda: torch.topk(x, 2)),
    method("view", 2, 2),
    method("reshape", 2, 2),
    method("unsqueeze", 0),
    method("squeeze"),
    method("flatten"),
    method("expand", 3, 4),
    method("t"),
    method("select", 0, 1),
    method("narrow", 0, 1, 2),
    method("__getitem__", 1, shown="x[1]"),
    method("__getitem__", slice(1, 3), shown="x[1:3]"),
    method("__getitem__", None, shown="x[None]"),
    method("unbind"),
    method("split", 2),
    method("chunk", 2),
    method("clone"),
    method("detach", differentiable=False),
    method("contiguous"),
    method("repeat", 2),
    method("flip", 0),
    method("roll", 1),
    method("ravel"),
    Case("transpose", lambda torch, x, y: (lambda m: lambda: m.transpose(0, 1))(x.view(2, 2))),
    Case("permute", lambda torch, x, y: (lambda m: lambda: m.permute(1, 0))(x.view(2, 2))),
    Case("diagonal", lambda torch, x, y: (lambda m: lambda: m.diagonal())(x.view(2, 2))),
    Case("tril", lambda torch, x, y: (lambda m: lambda: m.tril())(x.view(2, 2))),
    Case("mm", lambda torch, x, y: (lambda m: lambda: m.mm(m))(x.view(2, 2))),
    Case("cat", lambda torch, x, y: lambda: torch.cat([x, y])),
    Case("stack", lambda torch, x, y: lambda: torch.stack([x, y])),
    Case("gather", lambda torch, x, y: (lambda i: lambda: x.gather(0, i))(torch.tensor([0, 2]))),
    Case("index_select", lambda torch, x, y: (lambda i: lambda: x.index_select(0, i))(torch.tensor([0, 2]))),
    Case("x[index]", lambda torch, x, y: (lambda i: lambda: x[i])(torch.tensor([0, 2]))),
    Case("x[mask]", lambda torch, x, y: (lambda i: lambda: x[i])(x > 0.2)),
]

WRITES = [
    *map(method, IN_PLACE.split()),
    method("add_", 1.0),
    method("mul_", 1.0),
    method("clamp_", 0.1, 0.3),
    method("fill_", 0.5),
    Case("x.add_(y)", lambda torch, x, y: lambda: x.add_(y)),
    Case("x.copy_(y)", lambda torch, x, y: lambda: x.copy_(y)),
    Case("x.lerp_(y, 0.5)", lambda torch, x, y: lambda: x.lerp_(y, 0.5)),
    Case("x[1:3] = y[:2]", lambda torch, x, y: lambda: x.__setitem__(slice(1, 3), y[:2])),
    *map(method, FILLS.split()),
    Case("rand(4)", lambda torch, x, y: lambda: torch.rand(4)),
    Case("randn(4)", lambda torch, x, y: lambda: torch.randn(4)),
    Case("randn(32)", lambda torch, x, y: lambda: torch.randn(32)),
    Case("randn_like(x)", lambda torch, x, y: lambda: torch.randn_like(x)),
    Case("randint(9, (4,))", lambda torch, x, y: lambda: torch.randint(9, (4,))),
    Case("randperm(8)", lambda torch, x, y: lambda: torch.randperm(8)),
    Case("bernoulli(x)", lambda torch, x, y: lambda: torch.bernoulli(x)),
    Case("multinomial(x, 1)", lambda torch, x, y: lambda: torch.multinomial(x, 1)),
]


def measure(first: Callable[[], Any], second: Callable[[], Any], calls: int, repeats: int) -> tuple[float, float]:
    """Microseconds per call of each, the least of some rounds in which they take turns."""
    best = [math.inf, math.inf]
    sides = (first, second)
    for side in sides:
        for _ in range(20):
            side()
    rounds = range(calls)
    for _ in range(repeats):
        for i, call in enumerate(sides):
            start = perf_counter()
            for _ in rounds:
                call()
            best[i] = min(best[i], perf_counter() - start)
    return best[0] / calls * 1e6, best[1] / calls * 1e6


def prepared(case: Case, torch: ModuleType, requires_grad: bool) -> Callable[[], Any]:
    """The case as a function without arguments."""
    offset = 1.0 if case.above_one else 0.0
    x = torch.tensor([0.1 + offset, 0.2 + offset, 0.3 + offset, 0.4 + offset], requires_grad=requires_grad)
    return case.call(torch, x, torch.tensor([0.5, 0.6, 0.7, 0.8]))


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Measure every op on both modules, and the geometric mean of the ratios."""
    calls, repeats = (200, 7) if quick else (500, 15)
    ratios: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for case in CASES:
            for requires_grad in (False, True) if case.differentiable else (False,):
                row = Row("ops", case.name + (", with grad" if requires_grad else ""), "us", budget=EACH_BUDGET)
                compare(row, case, (torch, peer), requires_grad, (calls, repeats))
                if row.torch and row.peer:
                    ratios.append(row.peer / row.torch)
                yield row
            gc.collect()
        mean = Row("ops", "geometric mean of the ratios", "", value_unit="times", budget=MEAN_BUDGET)
        mean.value = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield mean
        for case in WRITES:
            row = Row("writes and draws", case.name, "us", budget=WRITE_BUDGET)
            compare(row, case, (torch, peer), False, (calls, repeats))
            yield row
    finally:
        gc.enable()


def compare(
    row: Row, case: Case, libraries: tuple[ModuleType, ModuleType], requires_grad: bool, counts: tuple[int, int]
) -> None:
    """Fill a row; an op that does not run is a row of the table, not its end."""
    try:
        first, second = (prepared(case, library, requires_grad) for library in libraries)
        row.torch, row.peer = measure(first, second, *counts)
    except Exception as error:
        row.error = f"{type(error).__name__}: {error}"
