"""What a call costs: small float32 tensors, where the arithmetic is nothing and the bookkeeping everything."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from types import ModuleType

from benchmarks.table import Row

Loop = Callable[[int], None]


@dataclass(frozen=True)
class Workload:
    """`prepare(torch)` returns a function that runs the workload n times; `per` ops are done in each."""

    name: str
    prepare: Callable[[ModuleType], Loop]
    calls: int = 5000
    per: int = 1
    budget: float | None = None


def tensors(torch: ModuleType, requires_grad: bool):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float32, requires_grad=requires_grad)
    y = torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float32)
    return x, y


def mul_without_grad(torch: ModuleType) -> Loop:
    x, y = tensors(torch, False)

    def run(n: int) -> None:
        for _ in range(n):
            x * y

    return run


def mul(torch: ModuleType) -> Loop:
    x, y = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x * y

    return run


def add(torch: ModuleType) -> Loop:
    x, y = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x + y

    return run


def mul_number(torch: ModuleType) -> Loop:
    x, _ = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x * 2.0

    return run


def exp(torch: ModuleType) -> Loop:
    x, _ = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x.exp()

    return run


def sum_all(torch: ModuleType) -> Loop:
    x, _ = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x.sum()

    return run


def slice_view(torch: ModuleType) -> Loop:
    x, _ = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            x[1:3]

    return run


def transposed_product(torch: ModuleType) -> Loop:
    x = torch.arange(16.0).reshape(4, 4)

    def run(n: int) -> None:
        for _ in range(n):
            x.t() * x

    return run


def double_backward(torch: ModuleType) -> Loop:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    parameters, x = list(model.parameters()), torch.randn(3, 4)

    def run(n: int) -> None:
        for _ in range(n):
            grads = torch.autograd.grad(model(x).pow(2).sum(), parameters, create_graph=True)
            sum((grad * grad).sum() for grad in grads).backward()
            for parameter in parameters:
                parameter.grad = None

    return run


def transformer_inference(torch: ModuleType) -> Loop:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(1, 5, 16)

    def run(n: int) -> None:
        with torch.no_grad():
            for _ in range(n):
                layer(x)

    return run


def chain(torch: ModuleType) -> Loop:
    x, y = tensors(torch, True)
    ones = torch.ones(4)

    def run(n: int) -> None:
        for _ in range(n):
            z = x
            for _ in range(1000):
                z = z * y
            z.backward(ones)
            x.grad = None

    return run


def square_sum_backward(torch: ModuleType) -> Loop:
    x, _ = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            (x * x).sum().backward()
            x.grad = None

    return run


def mul_sum_backward(torch: ModuleType) -> Loop:
    x, y = tensors(torch, True)

    def run(n: int) -> None:
        for _ in range(n):
            (x * y).sum().backward()
            x.grad = None

    return run


def mlp(torch: ModuleType) -> Loop:
    x = torch.full((4, 8), 0.5)
    parameters = [torch.full(shape, 0.1, requires_grad=True) for shape in ((8, 16), (16,), (16, 1), (1,))]
    w1, b1, w2, b2 = parameters

    def run(n: int) -> None:
        for _ in range(n):
            ((x @ w1 + b1).tanh() @ w2 + b2).sum().backward()
            for parameter in parameters:
                parameter.grad = None

    return run


# The budgets of the design, as ratios to the torch figures that were taken beside them.
WORKLOADS = [
    Workload("x * y, no grad", mul_without_grad, budget=0.76),
    Workload("x * y, with grad", mul, budget=0.8),
    Workload("x + y, with grad", add),
    Workload("x * 2.0, with grad", mul_number),
    Workload("x.exp(), with grad", exp),
    Workload("x.sum(), with grad", sum_all),
    Workload("x[1:3], with grad", slice_view, budget=1.0),
    Workload("x.t() * x of [4, 4]", transposed_product, budget=0.8),
    Workload("1000 times z = z * y, and backward, per op", chain, calls=5, per=1000, budget=0.6),
    Workload("(x * x).sum().backward()", square_sum_backward, calls=1000, budget=0.5),
    Workload("(x * y).sum().backward()", mul_sum_backward, calls=1000, budget=0.33),
    Workload("MLP 8-16-1, batch of 4, forward and backward", mlp, calls=300),
    Workload("MLP 4-8-1, batch of 3, backward of its gradients", double_backward, calls=50, budget=1.0),
    Workload("TransformerEncoderLayer(16, 2, 32), inference", transformer_inference, calls=100, budget=1.2),
]


def alternate(first: Loop, second: Loop, calls: int, repeats: int) -> tuple[float, float]:
    """Seconds per call of two loops, each the least of `repeats` rounds in which they take turns.

    Taking turns exposes both to the same disturbances; the least is the round with the fewest of them. The cyclic
    garbage collector stays on, as it does for users.
    """
    loops = (first, second)
    for loop in loops:
        loop(max(1, calls // 10))
    best = [float("inf"), float("inf")]
    for repeat in range(repeats):
        for side in (0, 1) if repeat % 2 == 0 else (1, 0):
            gc.collect()
            start = perf_counter()
            loops[side](calls)
            best[side] = min(best[side], (perf_counter() - start) / calls)
    return best[0], best[1]


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Measure every workload on both modules."""
    repeats = 7 if quick else 25
    for workload in WORKLOADS:
        row = Row("overhead", workload.name, "us", budget=workload.budget)
        try:
            loops = workload.prepare(torch), workload.prepare(peer)
            seconds = alternate(*loops, workload.calls, repeats)
        except Exception as error:  # a workload that does not run yet is a row of the table, not its end
            row.error = f"{type(error).__name__}: {error}"
        else:
            row.torch, row.peer = (figure * 1e6 / workload.per for figure in seconds)
        yield row
