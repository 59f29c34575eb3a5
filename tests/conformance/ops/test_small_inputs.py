"""Small inputs take ways of their own: tables, matrices, no record. Numbers that need care must not notice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import same

inf, nan = float("inf"), float("nan")


def numbers(torch: Any, *shape: int, special: tuple[float, ...] = (), grad: bool = False, dtype: Any = None) -> Any:
    """Different numbers around zero, with special ones in front."""
    count = 1
    for n in shape:
        count *= n
    values = [((i * 37 + 11) % 101 - 50) / 25 for i in range(count)]
    values[: len(special)] = special
    return torch.tensor(values, dtype=dtype or torch.float32).reshape(shape).clone().requires_grad_(grad)


SPECIAL = ((), (inf,), (-inf, -inf), (nan, 1.0, nan), (300.0, -300.0), (19.0, -25.0))
IMAGES = {
    "max_pool2d": lambda torch, F, x: F.max_pool2d(x, 2),
    "max_pool2d, padded": lambda torch, F, x: F.max_pool2d(x, 3, 2, 1),
    "max_pool2d, places": lambda torch, F, x: F.max_pool2d(x, 3, 1, 1, return_indices=True)[1].double() + 0 * x.sum(),
    "max_pool2d, dilated": lambda torch, F, x: F.max_pool2d(x, 2, 1, 0, 2, True),
    "avg_pool2d": lambda torch, F, x: F.avg_pool2d(x, 2),
    "avg_pool2d, overlapping": lambda torch, F, x: F.avg_pool2d(x, 3, 1),
    "avg_pool2d, padded": lambda torch, F, x: F.avg_pool2d(x, 2, 2, 1, True, False),
    "adaptive_avg_pool2d": lambda torch, F, x: F.adaptive_avg_pool2d(x, (2, 3)),
    "nearest": lambda torch, F, x: F.interpolate(x, scale_factor=2.0),
    "bilinear": lambda torch, F, x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True),
    "bicubic": lambda torch, F, x: F.interpolate(x, size=(7, 5), mode="bicubic"),
    "reflect": lambda torch, F, x: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    "replicate": lambda torch, F, x: F.pad(x, (2, 0, -1, 3), mode="replicate"),
    "constant": lambda torch, F, x: F.pad(x, (2, -1, 1, 1), value=1.5),
    "conv2d of one pixel": lambda torch, F, x: F.conv2d(x, numbers(torch, 3, 2, 1, 1, grad=True)),
    "group_norm": lambda torch, F, x: F.group_norm(x, 2, numbers(torch, 2), numbers(torch, 2)),
    "batch_norm": lambda torch, F, x: F.batch_norm(x, None, None, numbers(torch, 2), None, True),
}
ROWS = {
    "softmax": lambda torch, F, x: F.softmax(x, 1),
    "log_softmax": lambda torch, F, x: F.log_softmax(x, -1),
    "cross_entropy": lambda torch, F, x: F.cross_entropy(x, torch.tensor([0, 3, -100, 2])),
    "cross_entropy, sum": lambda torch, F, x: F.cross_entropy(x, torch.tensor([0, 3, 1, 2]), reduction="sum"),
    "nll_loss": lambda torch, F, x: F.nll_loss(x, torch.tensor([0, 3, 1, 2])),
    "layer_norm": lambda torch, F, x: F.layer_norm(x, (6,), numbers(torch, 6), numbers(torch, 6)),
    "elu": lambda torch, F, x: F.elu(x),
    "leaky_relu": lambda torch, F, x: F.leaky_relu(x),
    "softplus": lambda torch, F, x: F.softplus(x),
    "hardswish": lambda torch, F, x: F.hardswish(x),
    "logsigmoid": lambda torch, F, x: F.logsigmoid(x),
    "glu": lambda torch, F, x: F.glu(x),
    "cosine_similarity": lambda torch, F, x: F.cosine_similarity(x, numbers(torch, 4, 6)),
    "cdist": lambda torch, F, x: torch.cdist(x, numbers(torch, 3, 6)),
    "topk": lambda torch, F, x: torch.topk(x, 3)[0],
    "var_mean": lambda torch, F, x: torch.var_mean(x, 1)[0],
    "norm": lambda torch, F, x: torch.linalg.norm(x),
    "linear": lambda torch, F, x: F.linear(x, numbers(torch, 3, 6), numbers(torch, 3)),
    "index_add": lambda torch, F, x: torch.zeros(5).index_add(0, torch.tensor([1, 1, 4]), x[0, :3]),
    "embedding": lambda torch, F, x: F.embedding(torch.tensor([[0, 2], [2, 3]]), x),
    "topk, the smallest": lambda torch, F, x: torch.topk(x, 2, 1, False)[0],
    "kthvalue": lambda torch, F, x: torch.kthvalue(x, 2)[0],
    "kthvalue, kept": lambda torch, F, x: torch.kthvalue(x, 4, 1, True)[0],
    "cumsum": lambda torch, F, x: torch.cumsum(x, 1),
    "cumprod": lambda torch, F, x: torch.cumprod(x, 0),
    "scatter_add": lambda torch, F, x: torch.zeros(5).scatter_add(0, torch.tensor([1, 1, 4]), x[0, :3]),
    "scatter_add, apart": lambda torch, F, x: torch.ones(5).scatter_add(0, torch.tensor([3, 1, 4]), x[0, :3]),
    "take_along_dim": lambda torch, F, x: torch.take_along_dim(x[0], torch.tensor([3, 0, 0]), 0),
    "outer": lambda torch, F, x: torch.outer(x[0], x[1]),
    "tensordot": lambda torch, F, x: torch.tensordot(x, numbers(torch, 6, 2), 1),
    "cross": lambda torch, F, x: torch.linalg.cross(x[:, :3], x[:, 3:]),
    "fft": lambda torch, F, x: torch.fft.fft(x[0]).abs(),
    "rfft": lambda torch, F, x: torch.view_as_real(torch.fft.rfft(x)),
    "ifft": lambda torch, F, x: torch.fft.ifft(x, dim=0).abs(),
    "matrix_norm": lambda torch, F, x: torch.linalg.matrix_norm(x),
    "sort": lambda torch, F, x: torch.sort(x.T, 0)[0],
}


BY_RANK = ("topk", "topk, the smallest", "kthvalue", "kthvalue, kept")
REPEATED = ((-inf, -inf), SPECIAL[3])


def run(torch: Any, call: Any, shape: tuple[int, ...], special: tuple[float, ...], grad: bool) -> Any:
    """The result of a call and, if asked for, the gradient of its input."""
    x = numbers(torch, *shape, special=special, grad=grad)
    out = call(torch, torch.nn.functional, x)
    if not grad:
        return out
    out.backward(numbers(torch, *out.shape, special=special[:1]).to(out.dtype))
    return out.detach(), x.grad


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", IMAGES)
def test_small_images_come_out_as_in_torch(name: str, special: tuple[float, ...], grad: bool) -> None:
    same(lambda torch: run(torch, IMAGES[name], (2, 2, 4, 6), special, grad))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", ROWS)
def test_small_matrices_come_out_as_in_torch(name: str, special: tuple[float, ...], grad: bool) -> None:
    if grad and name in BY_RANK and special in REPEATED:
        pytest.skip("which of several equal elements is named, nobody promises")
    same(lambda torch: run(torch, ROWS[name], (4, 6), special, grad))


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
@pytest.mark.parametrize("biased", [False, True])
def test_a_cell_computes_the_same_whether_or_not_it_is_recorded(name: str, biased: bool) -> None:
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(name, 1)

    def program(torch: Any) -> Any:
        results = []
        for grad in (False, True):
            state = numbers(torch, 2, 4, grad=grad)
            weights = [numbers(torch, gates * 4, 5), numbers(torch, gates * 4, 4)]
            biases = [numbers(torch, gates * 4), numbers(torch, gates * 4)] if biased else []
            hx = (state, state * 2) if name == "lstm_cell" else state
            out = getattr(torch, name)(numbers(torch, 2, 5), hx, *weights, *biases)
            results.append([part.detach() for part in (out if isinstance(out, tuple) else (out,))])
        return results

    same(program)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "fft2", "ifft2"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("shape", [(1, 8), (3, 5), (2, 4, 6)])
def test_short_transforms_are_those_of_long_ones(name: str, norm: str | None, shape: tuple[int, ...]) -> None:
    same(lambda torch: getattr(torch.fft, name)(numbers(torch, *shape), norm=norm))
