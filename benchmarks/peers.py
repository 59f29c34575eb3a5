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


def jax_step(adam: bool) -> Case:
    """A training step of the small network, compiled by JAX."""
    library = importlib.import_module("jax")
    np, keys = library.numpy, library.random.split(library.random.key(0), 5)
    sizes = ((10, 32), (32, 32), (32, 1))
    weights = [library.random.normal(key, size) / size[0] ** 0.5 for key, size in zip(keys, sizes, strict=False)]
    parameters = [(w, np.zeros(w.shape[1])) for w in weights]
    x, y = library.random.normal(keys[3], (16, 10)), library.random.normal(keys[4], (16, 1))

    def loss(parameters: Any) -> Any:
        out = x
        for i, (w, b) in enumerate(parameters):
            out = out @ w + b
            out = np.tanh(out) if i < 2 else out
        return ((out - y) ** 2).mean()

    def step(parameters: Any, state: Any) -> Any:
        each = library.tree_util.tree_map
        value, grads = library.value_and_grad(loss)(parameters)
        if not adam:
            return value, each(lambda p, g: p - 0.01 * g, parameters, grads), state
        count, first, second = state
        count += 1
        first = each(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = each(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        rate = 1e-3 * np.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        return value, each(lambda p, m, v: p - rate * m / (np.sqrt(v) + 1e-8), parameters, first, second), (
            count, first, second)  # fmt: skip

    compiled, zeros = library.jit(step), library.tree_util.tree_map(np.zeros_like, parameters)
    now = [None, parameters, (np.zeros(()), zeros, zeros)]

    def run() -> None:
        now[:] = compiled(*now[1:])
        library.block_until_ready(now)

    return run


def jax_ode() -> Case:
    """The gradient of 20 steps of Runge and Kutta through a small network, compiled by JAX."""
    library = importlib.import_module("jax")
    np, keys = library.numpy, library.random.split(library.random.key(0), 3)
    w, v, start = (library.random.normal(k, s) / 4 for k, s in zip(keys, ((2, 32), (32, 2), (16, 2)), strict=True))
    h = 0.05

    def loss(w: Any, b: Any, v: Any, c: Any) -> Any:
        def f(x: Any) -> Any:
            return np.tanh(x @ w + b) @ v + c

        x = start
        for _ in range(20):
            k1 = f(x)
            k2 = f(x + h / 2 * k1)
            k3 = f(x + h / 2 * k2)
            k4 = f(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (x * x).mean()

    gradient = library.jit(library.value_and_grad(loss, (0, 1, 2, 3)))
    return lambda: library.block_until_ready(gradient(w, np.zeros(32), v, np.zeros(2)))


def jax_pointwise() -> Case:
    """Five functions of a million numbers and a sum, compiled by JAX."""
    library = importlib.import_module("jax")
    np, keys = library.numpy, library.random.split(library.random.key(0), 2)
    x, y = (library.random.normal(key, (1_000_000,)) for key in keys)
    compiled = library.jit(lambda x, y: np.exp(np.tanh(x * y + 1) - x).sum())
    return lambda: library.block_until_ready(compiled(x, y))


JAX_PROGRAMS: dict[str, Callable[[], Case]] = {
    "MLP 10-32-32-1, batch 16, SGD": lambda: jax_step(False),
    "MLP 10-32-32-1, batch 16, Adam": lambda: jax_step(True),
    "neural ODE, 20 steps of RK4": jax_ode,
    "five pointwise functions and a sum of 1M": jax_pointwise,
}
"""Programs of `benchmarks.compiled` as JAX has them."""


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
