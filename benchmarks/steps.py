"""Whole steps of programs people run: forward, backward and update, on torch and beside it."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.compare import compared
from benchmarks.table import Row

EACH, MEAN = 1.0, 0.8
"""Budgets: no step slower than torch's, and their geometric mean."""


def models_on(torch: ModuleType, name: str) -> dict[str, Any]:
    """A module of pullback.models, on either library: its source says `import pullback as torch`."""
    module = importlib.import_module(f"pullback.models.{name}")
    source = Path(str(module.__file__)).read_text()
    if torch.__name__ == "torch":
        source = source.replace("import pullback as torch", "import torch").replace("from pullback", "from torch")
    made = ModuleType(f"benchmarks.{torch.__name__}_{name}")
    sys.modules[made.__name__] = made  # dataclasses look there
    exec(compile(source, str(module.__file__), "exec"), vars(made))
    return vars(made)


def training(torch: ModuleType, model: Any, loss: Callable[[], Any], optimizer: Any) -> Callable[[], None]:
    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def mlp(torch: ModuleType) -> Callable[[], None]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    loss = nn.CrossEntropyLoss()
    return training(torch, model, lambda: loss(model(x), y), torch.optim.Adam(model.parameters()))


def convnet(torch: ModuleType) -> Callable[[], None]:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    )  # fmt: skip
    x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(torch, model, lambda: loss(model(x), y), optimizer)


def gpt(torch: ModuleType) -> Callable[[], None]:
    names = models_on(torch, "gpt")
    config = names["GPTConfig"](vocab_size=65, block_size=64, n_layer=4, n_head=4, n_embd=128, dropout=0.0)
    model = names["GPT"](config)
    x, y = torch.randint(0, 65, (12, 64)), torch.randint(0, 65, (12, 64))
    return training(torch, model, lambda: model(x, y)[1], torch.optim.AdamW(model.parameters(), lr=1e-3))


def resnet_step(torch: ModuleType) -> Callable[[], None]:
    model = models_on(torch, "resnet")["resnet18"]()
    x, y = torch.rand(1, 3, 224, 224), torch.rand(1, 1000)

    def step() -> None:
        model.zero_grad()
        (model(x) - y).sum().backward()

    return step


def resnet_inference(torch: ModuleType) -> Callable[[], None]:
    model = models_on(torch, "resnet")["resnet18"]().eval()
    x = torch.rand(8, 3, 224, 224)

    def step() -> None:
        with torch.no_grad():
            model(x)

    return step


def lstm_loop(torch: ModuleType) -> Callable[[], None]:
    cell = torch.nn.LSTMCell(32, 64)
    x = torch.randn(50, 16, 32)

    def step() -> None:
        h, c = torch.zeros(16, 64), torch.zeros(16, 64)
        for t in range(50):
            h, c = cell(x[t], (h, c))
        cell.zero_grad()
        h.sum().backward()

    return step


def adam(torch: ModuleType) -> Callable[[], None]:
    params = [torch.randn(n).requires_grad_() for n in (1_000_003, 4_999_997, 3_000_000, 1_000_000)]
    for param in params:
        param.grad = torch.full_like(param, 0.1)
    optimizer = torch.optim.Adam(params)
    return lambda: optimizer.step()


def embedding(torch: ModuleType) -> Callable[[], None]:
    table = torch.nn.Embedding(50_000, 64)
    words = torch.randint(0, 50_000, (64, 128))

    def step() -> None:
        table.weight.grad = None
        table(words).sum().backward()

    return step


def indexing(torch: ModuleType) -> Callable[[], None]:
    x = torch.randn(100_000, 16).requires_grad_()
    rows = torch.randint(0, 100_000, (50_000,))

    def step() -> None:
        x.grad = None
        x[rows].square().sum().backward()

    return step


STEPS: dict[str, Callable[[ModuleType], Callable[[], None]]] = {
    "MLP 784-512-512-10, batch 64, Adam": mlp,
    "MNIST convnet, batch 64, SGD": convnet,
    "GPT 4 layers of 128, batch 12x64, AdamW": gpt,
    "ResNet-18 forward and backward, batch 1": resnet_step,
    "ResNet-18 inference, batch 8": resnet_inference,
    "LSTM cell, 50 steps, forward and backward": lstm_loop,
    "Adam over 10M parameters": adam,
    "embedding forward and backward": embedding,
    "index forward and backward": indexing,
}


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one step, and the geometric mean of the ratios."""
    return compared("whole steps", STEPS.items(), (torch, peer), 3.0 if quick else 12.0, (EACH, MEAN))
