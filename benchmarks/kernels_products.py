"""Products of matrices and convolutions, one op at a time, two threads each: the layers of networks people train."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.compare import Build, compared
from benchmarks.table import Row

EACH, MEAN = 1.1, 0.9
"""Budgets: no op much slower than torch's, and their geometric mean."""


def square(n: int, dtype: str = "float32") -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        a, b = (torch.randn(n, n, dtype=getattr(torch, dtype)) for _ in range(2))
        return lambda: a @ b

    return build


def batch(*shapes: tuple[int, ...]) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        a, b = (torch.randn(*shape) for shape in shapes)
        return lambda: torch.bmm(a, b)

    return build


def scores(*shape: int) -> Build:
    """Queries times the transpose of keys."""

    def build(torch: ModuleType) -> Callable[[], Any]:
        a, b = (torch.randn(*shape) for _ in range(2))
        return lambda: torch.bmm(a, b.transpose(1, 2))

    return build


def matrix_vector(n: int) -> Build:
    def build(torch: ModuleType) -> Callable[[], Any]:
        a, b = torch.randn(n, n), torch.randn(n)
        return lambda: torch.mv(a, b)

    return build


def layer(make: Callable[[ModuleType], Any], shape: tuple[int, ...], backward: bool) -> Build:
    """A layer's forward, or forward and backward, by its input and its parameters."""

    def build(torch: ModuleType) -> Callable[[], Any]:
        module, x = make(torch), torch.randn(*shape)
        if not backward:
            with torch.no_grad():
                module(x)

            def forward() -> None:
                with torch.no_grad():
                    module(x)

            return forward
        x.requires_grad_()
        grad = torch.ones_like(module(x))

        def both() -> None:
            x.grad = None
            module.zero_grad()
            module(x).backward(grad)

        return both

    return build


def linear(rows: int, inner: int, outer: int) -> Iterator[tuple[str, Build]]:
    for backward in (False, True):
        name = f"linear [{rows}, {inner}] -> {outer}{', with backward' if backward else ''}"
        yield name, layer(lambda torch: torch.nn.Linear(inner, outer), (rows, inner), backward)


def convolution(
    name: str, kind: str, shape: tuple[int, ...], *settings: Any, **more: Any
) -> Iterator[tuple[str, Build]]:
    for backward in (False, True):
        make = layer(lambda torch: getattr(torch.nn, kind)(*settings, **more), shape, backward)
        yield f"{name}{', with backward' if backward else ''}", make


def resnet_layers(images: int) -> Iterator[tuple[str, Build]]:
    """The convolutions of ResNet-18."""
    layers = [(3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (64, 56, 128, 3, 2), (64, 56, 128, 1, 2), (128, 28, 128, 3, 1),
              (128, 28, 256, 3, 2), (256, 14, 256, 3, 1), (256, 14, 512, 3, 2), (512, 7, 512, 3, 1)]  # fmt: skip
    for inner, size, outer, kernel, stride in layers:
        by = f" by {stride}" if stride > 1 else ""
        name = f"conv {kernel}x{kernel} {inner}->{outer} on {size}x{size}{by}, batch {images}"
        shape = (images, inner, size, size)
        yield from convolution(
            name, "Conv2d", shape, inner, outer, kernel, stride=stride, padding=kernel // 2, bias=False
        )


def cases() -> Iterator[tuple[str, Build]]:
    """Everything measured, by name."""
    for n in (64, 96, 128, 256, 512, 1024, 2048):
        yield f"matmul {n}", square(n)
    yield "matmul 512, float64", square(512, "float64")
    yield "mv 2048", matrix_vector(2048)
    yield "bmm [96, 64, 64]", batch((96, 64, 64), (96, 64, 64))
    yield "bmm [48, 64, 64] x [48, 64, 32]", batch((48, 64, 64), (48, 64, 32))
    yield "bmm [48, 64, 32], transposed", scores(48, 64, 32)
    for sizes in ((768, 128, 512), (768, 512, 128), (64, 784, 512)):
        yield from linear(*sizes)
    for images in (1, 8):
        yield from resnet_layers(images)
    yield from convolution("conv 3x3 1->32 on 28x28, batch 64", "Conv2d", (64, 1, 28, 28), 1, 32, 3)
    yield from convolution("conv 3x3 32->64 on 26x26, batch 64", "Conv2d", (64, 32, 26, 26), 32, 64, 3)
    yield from convolution("conv 1x1 64->256 on 56x56, batch 8", "Conv2d", (8, 64, 56, 56), 64, 256, 1)
    yield from convolution(
        "depthwise 3x3 on 128 of 56x56, batch 4", "Conv2d", (4, 128, 56, 56), 128, 128, 3, padding=1, groups=128
    )
    yield from convolution("conv1d 64->64 by 9 on 16000", "Conv1d", (1, 64, 16000), 64, 64, 9, padding=4)
    yield from convolution("conv3d 16->32 on 16x28x28, batch 2", "Conv3d", (2, 16, 16, 28, 28), 16, 32, 3, padding=1)
    name = "conv_transpose 4x4 64->32 on 16x16 by 2, batch 8"
    yield from convolution(name, "ConvTranspose2d", (8, 64, 16, 16), 64, 32, 4, stride=2, padding=1)


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one op, and the geometric mean of the ratios."""
    return compared("products", cases(), (torch, peer), 0.3 if quick else 1.5, (EACH, MEAN), "us")
