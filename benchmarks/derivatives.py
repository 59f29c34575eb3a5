"""Jacobians, Hessians and per-sample gradients: many backward passes, or one that carries a batch."""

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType

from benchmarks.overhead import Loop, Workload, alternate
from benchmarks.table import Row


def repeated(action: Callable[[], object]) -> Loop:
    def run(n: int) -> None:
        for _ in range(n):
            action()

    return run


def module(torch: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{torch.__name__}.{name}")


def tanh_network(torch: ModuleType):
    torch.manual_seed(0)
    weights = [torch.randn(64, 64) * 0.1 for _ in range(3)]

    def network(x):
        for weight in weights:
            x = (weight @ x).tanh()
        return x

    return network, torch.randn(64)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def jacobian(torch: ModuleType) -> Loop:
    network, x = tanh_network(torch)
    return repeated(lambda: module(torch, "autograd.functional").jacobian(network, x))


def hessian(torch: ModuleType) -> Loop:
    x = torch.linspace(-1, 1, 64)
    return repeated(lambda: module(torch, "autograd.functional").hessian(rosenbrock, x))


def jacrev(torch: ModuleType) -> Loop:
    network, x = tanh_network(torch)
    return repeated(lambda: module(torch, "func").jacrev(network)(x))


def per_sample(torch: ModuleType) -> Loop:
    torch.manual_seed(0)
    func, F = module(torch, "func"), module(torch, "nn.functional")
    params = {
        "w1": torch.randn(64, 784) * 0.03,
        "b1": torch.zeros(64),
        "w2": torch.randn(10, 64) * 0.1,
        "b2": torch.zeros(10),
    }
    x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))

    def loss(params, sample, target):
        hidden = F.relu(F.linear(sample, params["w1"], params["b1"]))
        scores = F.linear(hidden, params["w2"], params["b2"])
        return F.cross_entropy(scores.unsqueeze(0), target.unsqueeze(0))

    gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    return repeated(lambda: gradients(params, x, y))


def gradcheck(torch: ModuleType) -> Loop:
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(2, 3, 3).double()
    x = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    return repeated(lambda: torch.autograd.gradcheck(conv, (x,)))


def input_gradient(torch: ModuleType) -> Loop:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(512, 512), torch.randn(512, 512, requires_grad=True)
    return repeated(lambda: torch.autograd.grad(layer(x).sum(), x))


def training_step(torch: ModuleType) -> Callable[[], object]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x = torch.randn(4, 8)

    def step() -> None:
        model.zero_grad()
        (model(x) ** 2).mean().backward()

    return step


def with_anomaly_mode(torch: ModuleType) -> Loop:
    step = training_step(torch)

    def run(n: int) -> None:
        with torch.autograd.set_detect_anomaly(True):
            for _ in range(n):
                step()

    return run


def anomaly_row(torch: ModuleType, peer: ModuleType, quick: bool) -> Row:
    """What anomaly mode multiplies the time of a training step by, on each library."""
    name = "a training step in anomaly mode, to one without"
    row = Row("derivatives", name, "times", value_unit="times", budget=1.5)
    repeats = 5 if quick else 15
    factors = []
    for library in (torch, peer):
        on, off = alternate(with_anomaly_mode(library), repeated(training_step(library)), 200, repeats)
        factors.append(on / off)
    row.torch, row.peer = factors
    row.value = row.peer
    return row


WORKLOADS = [
    Workload("gradcheck of a small convolution", gradcheck, calls=1, budget=1.0),
    Workload("jacobian of a 64-64-64-64 tanh network", jacobian, calls=3, budget=0.25),
    Workload("hessian of a 64-dimensional Rosenbrock function", hessian, calls=2, budget=0.25),
    Workload("vmap(grad): per-sample gradients, MLP 784-64-10, batch of 256", per_sample, calls=1, budget=1.0),
    Workload("func.jacrev of the network", jacrev, calls=5),
    Workload("the gradient of an input alone, Linear 512-512, batch of 512", input_gradient, calls=3, budget=1.0),
]


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Measure every workload on both modules."""
    for workload in WORKLOADS:
        row = Row("derivatives", workload.name, "us", budget=workload.budget)
        try:
            loops = workload.prepare(torch), workload.prepare(peer)
            seconds = alternate(*loops, workload.calls, 5 if quick else 15)
        except Exception as error:  # a workload that does not run yet is a row of the table, not its end
            row.error = f"{type(error).__name__}: {error}"
        else:
            row.torch, row.peer = (figure * 1e6 for figure in seconds)
        yield row
    yield anomaly_row(torch, peer, quick)
