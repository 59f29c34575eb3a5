"""The same small gradient in other libraries: `python -m benchmarks.peers`, for those that are installed.

(x * y).sum() and its gradients by x and y, four float elements: what the bookkeeping costs. Each library is used as its
own documentation shows, and the least time of several rounds counts.
"""

import importlib
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = Callable[[], Any]


def tensors(name: str) -> Case:
    torch = importlib.import_module(name)
    x, y = torch.ones(4, requires_grad=True), torch.full((4,), 0.5, requires_grad=True)
    return lambda: (x * y).sum().backward()


def jax(compiled: bool) -> Case:
    library = importlib.import_module("jax")
    x, y = library.numpy.ones(4), library.numpy.full(4, 0.5)
    gradient = library.grad(lambda x, y: (x * y).sum(), (0, 1))
    gradient = library.jit(gradient) if compiled else gradient
    return lambda: library.block_until_ready(gradient(x, y))


def autograd() -> Case:
    numpy = importlib.import_module("autograd.numpy")
    gradient = importlib.import_module("autograd").grad(lambda v: numpy.sum(v[0] * v[1]))
    values = numpy.ones(4), numpy.full(4, 0.5)
    return lambda: gradient(values)


def mygrad() -> Case:
    library = importlib.import_module("mygrad")
    x, y = library.tensor([1.0] * 4), library.tensor([0.5] * 4)
    return lambda: (x * y).sum().backward()


def tinygrad() -> Case:
    tensor = importlib.import_module("tinygrad").Tensor
    x, y = tensor([1.0] * 4), tensor([0.5] * 4)

    def run() -> None:
        x.grad = y.grad = None
        (x * y).sum().backward()
        tensor.realize(x.grad, y.grad)

    return run


CASES: dict[str, Callable[[], Case]] = {
    "torch": lambda: tensors("torch"),
    "pullback": lambda: tensors("pullback"),
    "JAX": lambda: jax(False),
    "JAX, compiled": lambda: jax(True),
    "autograd": autograd,
    "tinygrad": tinygrad,
    "MyGrad": mygrad,
}


def main() -> None:
    """Measure what can be measured."""
    ready: dict[str, tuple[timeit.Timer, int]] = {}
    for name, prepare in CASES.items():
        try:
            timer = timeit.Timer(prepare())
            ready[name] = timer, max(1, int(0.02 / min(timer.repeat(3, 1))))
        except Exception as error:
            print(f"{name:<14} not measured: {error}")
    best = dict.fromkeys(ready, float("inf"))
    for _ in range(10):  # in turns, because other programs use the machine too
        for name, (timer, number) in ready.items():
            best[name] = min(best[name], timer.timeit(number) / number)
    for name, seconds in best.items():
        ratio = f"{seconds / best['torch']:8.2f} of torch's" if "torch" in best else ""
        print(f"{name:<14} {seconds * 1e6:9.1f} us {ratio}")


if __name__ == "__main__":
    import sys

    sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))
    main()
