"""What the ops of neural networks and other composite ops cost on tiny inputs, forward and with the backward pass.

Batches of 2, 4 channels, images of 8 by 8, matrices of 4 by 4: the arithmetic is next to nothing, so a row shows what
the library adds to it. The time is the processor time of this process, torch's threads held to one.
"""

import gc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from types import ModuleType
from typing import Any

from benchmarks.table import Row

EACH_BUDGET = 1.5
MEAN_BUDGET = 0.8

Call = Callable[[ModuleType, Any, Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """`make(torch, F, t)` gives the call; `t(*shape)` makes a tensor of the case's requires_grad."""

    name: str
    make: Call
    differentiable: bool = True


def bound(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[[], Any]:
    """A call with its arguments ready."""
    return lambda: function(*arguments, **keywords)


def classes(torch: ModuleType) -> Any:
    """The class of each of four rows."""
    return torch.tensor([0, 3, 1, 2])


def symmetric(torch: ModuleType, t: Any) -> Any:
    """A positive definite matrix, a leaf."""
    m = t(4, 4).detach()
    return (m @ m.T + 4 * torch.eye(4)).requires_grad_(t.requires_grad)


def norms_of_rows(name: str, *arguments: Any) -> Case:
    """A normalization of the last dimension."""
    return Case(name, lambda torch, F, t: bound(getattr(F, name), t(4, 8), *arguments))


def activation(name: str) -> Case:
    """A pointwise function of eight elements."""
    return Case(name, lambda torch, F, t: bound(getattr(F, name), t(8)))


CASES = [
    Case("conv1d", lambda torch, F, t: bound(F.conv1d, t(2, 4, 8), t(4, 4, 3), t(4), padding=1)),
    Case("conv2d", lambda torch, F, t: bound(F.conv2d, t(2, 4, 8, 8), t(4, 4, 3, 3), t(4), padding=1)),
    Case("conv2d, stride 2", lambda torch, F, t: bound(F.conv2d, t(2, 4, 8, 8), t(4, 4, 3, 3), stride=2)),
    Case("conv2d, 1x1", lambda torch, F, t: bound(F.conv2d, t(2, 4, 8, 8), t(4, 4, 1, 1))),
    Case("conv2d, depthwise", lambda torch, F, t: bound(F.conv2d, t(2, 4, 8, 8), t(4, 1, 3, 3), groups=4)),
    Case("conv_transpose2d", lambda torch, F, t: bound(F.conv_transpose2d, t(2, 4, 8, 8), t(4, 4, 2, 2), stride=2)),
    Case("max_pool1d", lambda torch, F, t: bound(F.max_pool1d, t(2, 4, 8), 2)),
    Case("max_pool2d", lambda torch, F, t: bound(F.max_pool2d, t(2, 4, 8, 8), 2)),
    Case("max_pool2d, padded", lambda torch, F, t: bound(F.max_pool2d, t(2, 4, 8, 8), 3, 2, 1)),
    Case("avg_pool2d", lambda torch, F, t: bound(F.avg_pool2d, t(2, 4, 8, 8), 2)),
    Case("adaptive_avg_pool2d to 1", lambda torch, F, t: bound(F.adaptive_avg_pool2d, t(2, 4, 8, 8), 1)),
    Case("adaptive_avg_pool2d to 4", lambda torch, F, t: bound(F.adaptive_avg_pool2d, t(2, 4, 8, 8), 4)),
    Case(
        "batch_norm, training",
        lambda torch, F, t: bound(
            F.batch_norm, t(2, 4, 8, 8), torch.zeros(4), torch.ones(4), t(4), t(4), training=True
        ),
    ),
    Case(
        "batch_norm, eval",
        lambda torch, F, t: bound(F.batch_norm, t(2, 4, 8, 8), torch.zeros(4), torch.ones(4), t(4), t(4)),
    ),
    Case("layer_norm", lambda torch, F, t: bound(F.layer_norm, t(4, 8), (8,), t(8), t(8))),
    Case("group_norm", lambda torch, F, t: bound(F.group_norm, t(2, 4, 8, 8), 2, t(4), t(4))),
    Case("instance_norm", lambda torch, F, t: bound(F.instance_norm, t(2, 4, 8, 8))),
    Case("rms_norm", lambda torch, F, t: bound(F.rms_norm, t(4, 8), (8,), t(8))),
    Case("normalize", lambda torch, F, t: bound(F.normalize, t(4, 8))),
    Case("dropout", lambda torch, F, t: bound(F.dropout, t(4, 8))),
    Case("dropout, eval", lambda torch, F, t: bound(F.dropout, t(4, 8), training=False)),
    Case("softmax", lambda torch, F, t: bound(F.softmax, t(4, 8), dim=-1)),
    Case("log_softmax", lambda torch, F, t: bound(F.log_softmax, t(4, 8), dim=-1)),
    Case("cross_entropy", lambda torch, F, t: bound(F.cross_entropy, t(4, 8), classes(torch))),
    Case("nll_loss", lambda torch, F, t: bound(F.nll_loss, t(4, 8), classes(torch))),
    Case(
        "binary_cross_entropy_with_logits",
        lambda torch, F, t: bound(F.binary_cross_entropy_with_logits, t(8), torch.ones(8)),
    ),
    Case(
        "binary_cross_entropy",
        lambda torch, F, t: bound(F.binary_cross_entropy, t(8), torch.ones(8)),
    ),
    Case("mse_loss", lambda torch, F, t: bound(F.mse_loss, t(8), torch.ones(8))),
    Case("l1_loss", lambda torch, F, t: bound(F.l1_loss, t(8), torch.ones(8))),
    Case("smooth_l1_loss", lambda torch, F, t: bound(F.smooth_l1_loss, t(8), torch.ones(8))),
    Case("kl_div", lambda torch, F, t: bound(F.kl_div, t(4, 8), torch.ones(4, 8), reduction="batchmean")),
    Case("cosine_similarity", lambda torch, F, t: bound(F.cosine_similarity, t(4, 8), t(4, 8))),
    Case("embedding", lambda torch, F, t: bound(F.embedding, classes(torch), t(6, 8))),
    Case("one_hot", lambda torch, F, t: bound(F.one_hot, classes(torch), 4), differentiable=False),
    Case("linear", lambda torch, F, t: bound(F.linear, t(4, 8), t(6, 8), t(6))),
    Case("linear of 3-d", lambda torch, F, t: bound(F.linear, t(2, 4, 8), t(6, 8), t(6))),
    Case(
        "scaled_dot_product_attention",
        lambda torch, F, t: bound(F.scaled_dot_product_attention, t(2, 2, 4, 8), t(2, 2, 4, 8), t(2, 2, 4, 8)),
    ),
    Case(
        "scaled_dot_product_attention, causal",
        lambda torch, F, t: bound(
            F.scaled_dot_product_attention, t(2, 2, 4, 8), t(2, 2, 4, 8), t(2, 2, 4, 8), is_causal=True
        ),
    ),
    *map(
        activation,
        [
            "relu",
            "gelu",
            "silu",
            "leaky_relu",
            "elu",
            "softplus",
            "mish",
            "hardtanh",
            "hardswish",
            "hardsigmoid",
            "logsigmoid",
        ],
    ),
    Case("glu", lambda torch, F, t: bound(F.glu, t(4, 8))),
    Case("interpolate, nearest", lambda torch, F, t: bound(F.interpolate, t(2, 4, 4, 4), scale_factor=2.0)),
    Case(
        "interpolate, bilinear",
        lambda torch, F, t: bound(F.interpolate, t(2, 4, 4, 4), scale_factor=2.0, mode="bilinear", align_corners=False),
    ),
    Case("pad", lambda torch, F, t: bound(F.pad, t(2, 4, 8, 8), (1, 1, 1, 1))),
    Case("pad, reflect", lambda torch, F, t: bound(F.pad, t(2, 4, 8, 8), (1, 1, 1, 1), mode="reflect")),
    Case("unfold", lambda torch, F, t: bound(F.unfold, t(2, 4, 8, 8), 2)),
    Case("pixel_shuffle", lambda torch, F, t: bound(F.pixel_shuffle, t(2, 4, 8, 8), 2)),
    Case(
        "lstm_cell",
        lambda torch, F, t: bound(
            lambda *args: torch.lstm_cell(*args)[0], t(2, 8), (t(2, 4), t(2, 4)), t(16, 8), t(16, 4), t(16), t(16)
        ),
    ),
    Case("gru_cell", lambda torch, F, t: bound(torch.gru_cell, t(2, 8), t(2, 4), t(12, 8), t(12, 4), t(12), t(12))),
    Case("rnn_tanh_cell", lambda torch, F, t: bound(torch.rnn_tanh_cell, t(2, 8), t(2, 4), t(4, 8), t(4, 4))),
    Case("fft.fft", lambda torch, F, t: bound(torch.fft.fft, t(8))),
    Case("fft.rfft", lambda torch, F, t: bound(torch.fft.rfft, t(8))),
    Case("fft.ifft", lambda torch, F, t: bound(torch.fft.ifft, t(8))),
    Case("fft.fft2", lambda torch, F, t: bound(torch.fft.fft2, t(4, 4))),
    Case("fft.fftshift", lambda torch, F, t: bound(torch.fft.fftshift, t(8))),
    Case("cdist", lambda torch, F, t: bound(torch.cdist, t(4, 8), t(4, 8))),
    Case("einsum ij,jk->ik", lambda torch, F, t: bound(torch.einsum, "ij,jk->ik", t(4, 4), t(4, 4))),
    Case("einsum bij,bjk->bik", lambda torch, F, t: bound(torch.einsum, "bij,bjk->bik", t(2, 4, 4), t(2, 4, 4))),
    Case("einsum ii->i", lambda torch, F, t: bound(torch.einsum, "ii->i", t(4, 4))),
    Case("tensordot", lambda torch, F, t: bound(torch.tensordot, t(4, 4), t(4, 4), 1)),
    Case("bmm", lambda torch, F, t: bound(torch.bmm, t(2, 4, 4), t(2, 4, 4))),
    Case("addmm", lambda torch, F, t: bound(torch.addmm, t(4), t(4, 4), t(4, 4))),
    Case("outer", lambda torch, F, t: bound(torch.outer, t(8), t(8))),
    Case("cross", lambda torch, F, t: bound(torch.linalg.cross, t(4, 3), t(4, 3))),
    Case("linalg.solve", lambda torch, F, t: bound(torch.linalg.solve, symmetric(torch, t), t(4, 4))),
    Case("linalg.inv", lambda torch, F, t: bound(torch.linalg.inv, symmetric(torch, t))),
    Case("linalg.det", lambda torch, F, t: bound(torch.linalg.det, symmetric(torch, t))),
    Case("linalg.slogdet", lambda torch, F, t: bound(lambda x: torch.linalg.slogdet(x)[1], symmetric(torch, t))),
    Case("linalg.svd", lambda torch, F, t: bound(lambda x: torch.linalg.svd(x)[1], symmetric(torch, t))),
    Case("linalg.svdvals", lambda torch, F, t: bound(torch.linalg.svdvals, symmetric(torch, t))),
    Case("linalg.eigh", lambda torch, F, t: bound(lambda x: torch.linalg.eigh(x)[0], symmetric(torch, t))),
    Case("linalg.eigvalsh", lambda torch, F, t: bound(torch.linalg.eigvalsh, symmetric(torch, t))),
    Case("linalg.eig", lambda torch, F, t: bound(lambda x: torch.linalg.eig(x)[0], symmetric(torch, t))),
    Case("linalg.cholesky", lambda torch, F, t: bound(torch.linalg.cholesky, symmetric(torch, t))),
    Case("linalg.qr", lambda torch, F, t: bound(lambda x: torch.linalg.qr(x)[1], symmetric(torch, t))),
    Case("linalg.norm", lambda torch, F, t: bound(torch.linalg.norm, t(4, 4))),
    Case("linalg.vector_norm", lambda torch, F, t: bound(torch.linalg.vector_norm, t(8))),
    Case("linalg.matrix_norm", lambda torch, F, t: bound(torch.linalg.matrix_norm, t(4, 4))),
    Case("linalg.pinv", lambda torch, F, t: bound(torch.linalg.pinv, symmetric(torch, t))),
    Case("linalg.lstsq", lambda torch, F, t: bound(lambda x, y: torch.linalg.lstsq(x, y)[0], t(8, 4), t(8, 2))),
    Case("linalg.matrix_power", lambda torch, F, t: bound(torch.linalg.matrix_power, t(4, 4), 3)),
    Case("linalg.matrix_exp", lambda torch, F, t: bound(torch.linalg.matrix_exp, t(4, 4))),
    Case(
        "linalg.solve_triangular",
        lambda torch, F, t: bound(torch.linalg.solve_triangular, symmetric(torch, t), t(4, 4), upper=True),
    ),
    Case("sort of rows", lambda torch, F, t: bound(lambda x: torch.sort(x)[0], t(4, 8))),
    Case("argsort", lambda torch, F, t: bound(torch.argsort, t(4, 8)), differentiable=False),
    Case("topk of rows", lambda torch, F, t: bound(lambda x: torch.topk(x, 2)[0], t(4, 8))),
    Case("kthvalue", lambda torch, F, t: bound(lambda x: torch.kthvalue(x, 2)[0], t(4, 8))),
    Case("cumsum of rows", lambda torch, F, t: bound(torch.cumsum, t(4, 8), 1)),
    Case("cumprod of rows", lambda torch, F, t: bound(torch.cumprod, t(4, 8), 1)),
    Case("logsumexp of rows", lambda torch, F, t: bound(torch.logsumexp, t(4, 8), 1)),
    Case("var_mean", lambda torch, F, t: bound(lambda x: torch.var_mean(x, 1)[0], t(4, 8))),
    Case(
        "scatter_add",
        lambda torch, F, t: bound(torch.scatter_add, t(8), 0, classes(torch), t(4)),
    ),
    Case("index_add", lambda torch, F, t: bound(torch.index_add, t(8), 0, classes(torch), t(4))),
    Case("take_along_dim", lambda torch, F, t: bound(torch.take_along_dim, t(8), classes(torch), 0)),
    Case("unique", lambda torch, F, t: bound(torch.unique, classes(torch)), differentiable=False),
    Case("bincount", lambda torch, F, t: bound(torch.bincount, classes(torch)), differentiable=False),
    Case("searchsorted", lambda torch, F, t: bound(torch.searchsorted, torch.arange(8), classes(torch)), False),
]


def measure(first: Callable[[], Any], second: Callable[[], Any], seconds: float, repeats: int) -> tuple[float, float]:
    """Microseconds per call of each, the least of some rounds in which they take turns."""
    best = [math.inf, math.inf]
    counts = []
    for side in (first, second):
        for _ in range(5):
            side()
        start = process_time()
        for _ in range(10):
            side()
        counts.append(max(int(seconds / max((process_time() - start) / 10, 1e-7)), 5))
    for _ in range(repeats):
        for i, call in enumerate((first, second)):
            rounds = range(counts[i])
            start = process_time()
            for _ in rounds:
                call()
            best[i] = min(best[i], (process_time() - start) / counts[i])
    return best[0] * 1e6, best[1] * 1e6


class Maker:
    """Makes the tensors of a case: each different, the same on both sides, none a view."""

    def __init__(self, torch: ModuleType, requires_grad: bool) -> None:
        self.torch, self.requires_grad, self.made = torch, requires_grad, 0

    def __call__(self, *shape: int) -> Any:
        self.made += 1
        # All different up to 97 elements, and between 0 and 1.
        numbers = [((i * 37 + self.made * 11) % 97 + 1) / 99 for i in range(math.prod(shape))]
        return self.torch.tensor(numbers).reshape(shape).clone().requires_grad_(self.requires_grad)


def prepared(case: Case, torch: ModuleType, functional: ModuleType, requires_grad: bool) -> Callable[[], Any]:
    """The case as a function without arguments; with gradient, forward and backward from the sum of the result."""
    call = case.make(torch, functional, Maker(torch, requires_grad))
    if not requires_grad:
        return call
    with_gradient = torch.ones_like(call())

    def both() -> None:
        call().backward(with_gradient)

    return both


def rows(torch: ModuleType, peer: ModuleType, quick: bool, chosen: str = "") -> Iterator[Row]:
    """Measure every op on both modules, and the geometric mean of the ratios."""
    seconds, repeats = (0.002, 7) if quick else (0.005, 15)
    ratios: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that processor time is the time one waits
    gc.collect()
    gc.disable()
    try:
        for case in CASES:
            if chosen not in case.name:
                continue
            for requires_grad in (False, True) if case.differentiable else (False,):
                name = case.name + (", forward + backward" if requires_grad else "")
                row = Row("composites", name, "us", budget=EACH_BUDGET)
                try:
                    sides = [prepared(case, m, m.nn.functional, requires_grad) for m in (torch, peer)]
                    row.torch, row.peer = measure(sides[0], sides[1], seconds, repeats)
                    ratios.append(row.peer / row.torch)
                except Exception as error:  # an op that does not run is a row of the table, not its end
                    row.error = f"{type(error).__name__}: {error}"
                yield row
            gc.collect()
    finally:
        gc.enable()
        torch.set_num_threads(threads)
    mean = Row("composites", "geometric mean of the ratios", "", value_unit="times", budget=MEAN_BUDGET)
    mean.value = math.exp(sum(map(math.log, ratios)) / len(ratios))
    yield mean
