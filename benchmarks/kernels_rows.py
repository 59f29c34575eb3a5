"""Rows, windows and attention, one op at a time, two threads each: what networks do between their products."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.compare import Build, compared
from benchmarks.table import Row

EACH, MEAN = 1.1, 0.7
"""Budgets: no op much slower than torch's, and their geometric mean."""

Call = Callable[[ModuleType, Any], Any]


def forward(shape: tuple[int, ...], call: Call) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = torch.randn(*shape)
        return lambda: call(torch, x)

    return build


def with_backward(shape: tuple[int, ...], call: Call) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        x = torch.randn(*shape).requires_grad_()
        grad = torch.ones_like(call(torch, x))

        def run() -> None:
            x.grad = None
            call(torch, x).backward(grad)

        return run

    return build


def cross_entropy(torch: ModuleType, x: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.int64))


def layer_norm(torch: ModuleType, x: Any) -> Any:
    ones = torch.ones(x.shape[-1])
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), ones, ones)


def batch_norm(torch: ModuleType, x: Any) -> Any:
    ones = torch.ones(x.shape[1])
    return torch.nn.functional.batch_norm(x, None, None, ones, ones, True)


def group_norm(torch: ModuleType, x: Any) -> Any:
    return torch.nn.functional.group_norm(x, 8, torch.ones(x.shape[1]), torch.ones(x.shape[1]))


def causal_attention(torch: ModuleType, x: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def attention(torch: ModuleType, x: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(x, x, x)


IMAGE = (8, 64, 56, 56)
CASES: list[tuple[str, tuple[int, ...], Call]] = [
    ("softmax [4096, 1000]", (4096, 1000), lambda torch, x: torch.softmax(x, 1)),
    ("log_softmax [4096, 1000]", (4096, 1000), lambda torch, x: torch.log_softmax(x, 1)),
    ("softmax [8, 21, 64, 64] over channels", (8, 21, 64, 64), lambda torch, x: torch.softmax(x, 1)),
    ("cross_entropy [4096, 1000]", (4096, 1000), cross_entropy),
    ("layer_norm [4096, 768]", (4096, 768), layer_norm),
    ("batch_norm [8, 64, 56, 56]", IMAGE, batch_norm),
    ("group_norm [8, 64, 56, 56]", IMAGE, group_norm),
    ("max_pool2d 2x2 [64, 64, 24, 24]", (64, 64, 24, 24), lambda torch, x: torch.nn.functional.max_pool2d(x, 2)),
    ("max_pool2d 3x3 stride 2 [1, 64, 112, 112]", (1, 64, 112, 112),
     lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1)),
    ("avg_pool2d 2x2 [8, 64, 56, 56]", IMAGE, lambda torch, x: torch.nn.functional.avg_pool2d(x, 2)),
    ("attention [12, 4, 64, 32], causal", (12, 4, 64, 32), causal_attention),
    ("attention [1, 8, 1024, 64]", (1, 8, 1024, 64), attention),
]  # fmt: skip


def cases() -> Iterator[tuple[str, Build]]:
    """Every op forward, and forward with backward."""
    for name, shape, call in CASES:
        yield name, forward(shape, call)
        yield f"{name}, with backward", with_backward(shape, call)


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one op, and the geometric mean of the ratios."""
    return compared("rows, windows, attention", cases(), (torch, peer), 0.6 if quick else 3.0, (EACH, MEAN))
