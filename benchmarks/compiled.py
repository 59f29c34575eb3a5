"""Programs of `torch.compile` beside the same ones run by torch as they are: what a compiled step costs here."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks import steps
from benchmarks.compare import compared
from benchmarks.table import Row

EACH, MEAN = 1.0, 0.6
"""Budgets: no compiled program slower than torch's eager one, and their geometric mean."""


def compiled(torch: ModuleType, function: Any) -> Any:
    """The function, compiled where it is ours; torch's own compiler needs a C++ compiler and half a minute."""
    return function if torch.__name__ == "torch" else torch.compile(function)


def small_step(torch: ModuleType, make: Callable[[Any], Any]) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = make(model.parameters())
    x, y = torch.randn(16, 10), torch.randn(16, 1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(torch, step)
    return lambda: run(x, y)


def five_pointwise(torch: ModuleType) -> Callable[[], Any]:
    x = torch.randn(1_000_000)
    run = compiled(torch, lambda x: (torch.sin(x) * 2 + x.exp() - x * x).tanh().sum())
    return lambda: run(x)


def encoder_layer(torch: ModuleType) -> Callable[[], Any]:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    x = torch.randn(1, 16, 64)
    run = compiled(torch, layer)

    def infer() -> Any:
        with torch.no_grad():
            return run(x)

    return infer


def whole(torch: ModuleType, make: Callable[[ModuleType], Callable[[], None]]) -> Callable[[], Any]:
    return compiled(torch, make(torch))  # type: ignore[no-any-return]


PROGRAMS: dict[str, Callable[[ModuleType], Callable[[], Any]]] = {
    "MLP 10-32-32-1, batch 16, SGD": lambda torch: small_step(torch, lambda p: torch.optim.SGD(p, lr=0.01)),
    "MLP 10-32-32-1, batch 16, Adam": lambda torch: small_step(torch, lambda p: torch.optim.Adam(p)),
    "five pointwise functions and a sum of 1M": five_pointwise,
    "TransformerEncoderLayer inference, [1, 16, 64]": encoder_layer,
    "MLP 784-512-512-10, batch 64, Adam": lambda torch: whole(torch, steps.mlp),
    "GPT 4 layers of 128, batch 12x64, AdamW": lambda torch: whole(torch, steps.gpt),
}


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one call, and the geometric mean of the ratios."""
    return compared("compiled", PROGRAMS.items(), (torch, peer), 2.0 if quick else 8.0, (EACH, MEAN), "us")
