"""float16 and bfloat16: sums, numbers beside them, nan in order, ranges, losses and training give torch's elements."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import pullback

HALVES = ("float16", "bfloat16")
DIGITS = {"float16": 10, "bfloat16": 7}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ulps(one: np.ndarray, other: np.ndarray, digits: int) -> float:
    """The largest difference in units of the last place, of at least a sixteenth of the largest element."""
    if one.shape != other.shape:
        return math.inf
    finite = np.abs(one[np.isfinite(one)])
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), finite.max() / 16 if finite.size else 0)
    with np.errstate(all="ignore"):
        unit = 2.0 ** (np.floor(np.log2(np.where((size > 0) & np.isfinite(size), size, 1.0))) - digits)
        found = np.abs(one - other) / unit
    found = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, np.where(np.isnan(found), np.inf, found))
    return float(found.max()) if found.size else 0.0


def plain(result: Any) -> list[tuple[str, np.ndarray]]:
    """The dtypes and elements of one tensor or several."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    found = []
    for tensor in results:
        name = str(tensor.dtype).rpartition(".")[2]
        floating = tensor.dtype.is_floating_point
        found.append((name, (tensor.detach().double() if floating else tensor.detach()).numpy().copy()))
    return found


def gradients(function: Callable[..., Any], *given: Any) -> list[Any]:
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    function(*leaves).sum().backward()
    return [leaf.grad for leaf in leaves]


# ------------------------------------------------------------------ sums

SUMS: dict[str, Callable[[ModuleType, Any, Any], Any]] = {
    "mse_loss": lambda t, F, o: F.mse_loss(o, o * 0),
    "l1_loss": lambda t, F, o: F.l1_loss(o, o * 0),
    "smooth_l1_loss": lambda t, F, o: F.smooth_l1_loss(o, o * 0),
    "huber_loss": lambda t, F, o: F.huber_loss(o, o * 0),
    "binary_cross_entropy": lambda t, F, o: F.binary_cross_entropy(o * 0.5, o),
    "binary_cross_entropy_with_logits": lambda t, F, o: F.binary_cross_entropy_with_logits(o, o),
    "soft_margin_loss": lambda t, F, o: F.soft_margin_loss(o, o),
    "nll_loss": lambda t, F, o: F.nll_loss(o.view(-1, 1) * 1.01, t.zeros(o.numel(), dtype=t.int64)),
    "cross_entropy": lambda t, F, o: F.cross_entropy(o.view(-1, 1).expand(-1, 3), t.zeros(o.numel(), dtype=t.int64)),
    "kl_div": lambda t, F, o: F.kl_div(o, o, reduction="sum"),
    "trace": lambda t, F, o: t.eye(1000, dtype=o.dtype).trace(),
    "logsumexp": lambda t, F, o: o.logsumexp(0),
    "einsum": lambda t, F, o: t.einsum("ij->j", o.view(-1, 1)),
    "einsum of a product": lambda t, F, o: t.einsum("i,i->", o, o),
    "a number stretched": lambda t, F, o: gradients(lambda x: x * o, o[0]),
    "an element stretched": lambda t, F, o: gradients(lambda x: x * o, o[:1]),
    "a column stretched": lambda t, F, o: gradients(lambda x: x * o.view(100, -1), o[:100].view(100, 1)),
    "a bias": lambda t, F, o: gradients(F.linear, o.view(-1, 1), o[:1].view(1, 1), o[:1]),
    "the first term of addmm": lambda t, F, o: gradients(t.addmm, o[:1], o.view(-1, 1), o[:1].view(1, 1)),
    "expand": lambda t, F, o: gradients(lambda x: x.expand(o.numel()), o[:1]),
    "repeat_interleave": lambda t, F, o: gradients(lambda x: x.repeat_interleave(o.numel()), o[:1]),
    "where": lambda t, F, o: gradients(lambda x: t.where(o > 0, x, o), o[:1]),
    "prelu": lambda t, F, o: gradients(F.prelu, -o, o[:1]),
    "softmax": lambda t, F, o: gradients(lambda x: x.softmax(0) * o.cumsum(0), o * 1.5),
    "log_softmax": lambda t, F, o: gradients(lambda x: x.log_softmax(0), o * 1.5),
    "logcumsumexp": lambda t, F, o: gradients(lambda x: x.logcumsumexp(0), o[:300]),
    "gather": lambda t, F, o: gradients(lambda x: x.gather(0, t.zeros(o.numel(), dtype=t.int64)), o[:2]),
    "as_strided": lambda t, F, o: gradients(lambda x: x.as_strided((o.numel(),), (0,)), o[:2]),
    "index_select of rows": lambda t, F, o: gradients(
        lambda x: x.index_select(0, t.zeros(o.numel(), dtype=t.int64)), o[:4].view(2, 2)
    ),
    "index_select": lambda t, F, o: gradients(lambda x: x.index_select(0, t.zeros(o.numel(), dtype=t.int64)), o[:2]),
    "indexing": lambda t, F, o: gradients(lambda x: x[t.zeros(o.numel(), dtype=t.int64)], o[:2]),
    "take": lambda t, F, o: gradients(lambda x: x.take(t.zeros(o.numel(), dtype=t.int64)), o[:2]),
    "embedding": lambda t, F, o: gradients(
        lambda x: F.embedding(t.zeros(o.numel(), dtype=t.int64), x), o[:4].view(2, 2)
    ),
    "embedding_bag": lambda t, F, o: F.embedding_bag(t.zeros(1, 3000, dtype=t.int64), o[:4].view(2, 2), mode="sum"),
    "scatter_add": lambda t, F, o: o[:2].scatter_add(0, t.zeros(o.numel(), dtype=t.int64), o),
    "scatter_reduce": lambda t, F, o: [
        o[:2].scatter_reduce(0, t.zeros(o.numel(), dtype=t.int64), o, how) for how in ("sum", "mean", "amax")
    ],
    "index_add": lambda t, F, o: o[:2].index_add(0, t.zeros(o.numel(), dtype=t.int64), o),
    "index_add of rows": lambda t, F, o: [
        o[:4].view(2, 2).index_add(dim, t.zeros(3000, dtype=t.int64), t.ones(size, dtype=o.dtype), alpha=alpha)
        for dim, size in ((0, (3000, 2)), (1, (2, 3000)))
        for alpha in (1, 1.5)
    ],
    "index_add in the middle": lambda t, F, o: (
        o[:8].view(2, 2, 2).index_add(1, t.zeros(3000, dtype=t.int64), t.ones(2, 3000, 2, dtype=o.dtype))
    ),
    "index_reduce": lambda t, F, o: o[:2].index_reduce(0, t.zeros(o.numel(), dtype=t.int64), o, "mean"),
    "index_put": lambda t, F, o: o[:2].index_put((t.zeros(o.numel(), dtype=t.int64),), o, accumulate=True),
    "put": lambda t, F, o: o[:2].put(t.zeros(o.numel(), dtype=t.int64), o, accumulate=True),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SUMS)
def test_twenty_thousand_halves_are_added_as_torch_adds_them(name: str, dtype: str) -> None:
    made = []
    for library in (torch, pullback):
        ones = library.ones(20000, dtype=getattr(library, dtype))
        made.append(plain(SUMS[name](library, library.nn.functional, ones)))
    for (kind, expected), (own, actual) in zip(*made, strict=True):
        assert kind == own
        assert ulps(expected, actual, DIGITS[dtype]) <= 1, (expected.reshape(-1)[:4], actual.reshape(-1)[:4])


# ------------------------------------------------------------------ numbers beside half precision

NUMBERS = """
x * 0.3
0.3 * x
x / 0.3
0.3 / x
x + 0.3
x - 0.3
0.3 - x
x * 2049
x ** 0.3
0.3 ** x
x // 0.3
torch.div(x, 0.3, rounding_mode="trunc")
torch.fmod(x, 0.3)
torch.remainder(x, 0.3)
x * torch.tensor(0.3)
torch.tensor(0.3) * x
x / torch.tensor(0.3, dtype=torch.float64)
torch.mul(x, 0.3, out=torch.empty_like(x))
x.clone().mul_(0.3)
x.clone().div_(0.3)
x.clone().add_(y, alpha=0.3)
torch.add(x, y, alpha=0.3)
torch.sub(x, y, alpha=0.3)
torch.rsub(x, y, alpha=0.3)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, 0.7)
torch.lerp(x, y, torch.tensor(0.3, dtype=x.dtype))
torch.addcmul(x, y, y, value=0.3)
torch.addcdiv(x, y, x, value=0.3)
torch.addmm(x.view(8, 8), x.view(8, 8), y.view(8, 8), alpha=0.3, beta=0.7)
torch.baddbmm(x.view(1, 8, 8), x.view(1, 8, 8), y.view(1, 8, 8), alpha=0.3, beta=0.7)
torch.addbmm(x[:16].view(4, 4), x.view(4, 4, 4), y.view(4, 4, 4), alpha=0.3, beta=0.7)
torch.addmv(x[:8], x.view(8, 8), y[:8], alpha=0.3, beta=0.7)
torch._foreach_mul([x], 0.3)[0]
torch._foreach_add([x], [y], alpha=0.3)[0]
torch._foreach_lerp([x], [y], 0.3)[0]
F.leaky_relu(-x, 0.3)
F.elu(-x, 0.3)
F.celu(-x, 0.3)
F.softplus(x, 0.3)
F.softshrink(x, 0.3)
torch.tanh(x)
torch.sigmoid(x)
torch.logit(x / 4)
torch.logit(x / 4, 0.2)
torch.exp2(x)
torch.log10(x)
F.mse_loss(x, y)
F.smooth_l1_loss(x, y, reduction="none", beta=0.3)
F.huber_loss(x, y, reduction="none", delta=0.3)
x.mean()
"""
AT_MOST_TWO = ("log10", "exp2", "lerp(x, y, torch", "** x", "x ** 0.3", "addcdiv", "float64")
"""What torch computes in another order, or with functions rounded in their own way."""


def with_gradients(library: ModuleType, text: str, dtype: str, x: np.ndarray, y: np.ndarray) -> list[Any]:
    given = [library.from_numpy(part.copy()).to(getattr(library, dtype)) for part in (x, y)]
    wanted = "out=" not in text and "//" not in text and "rounding" not in text
    given = [tensor.requires_grad_(wanted) for tensor in given]
    made = eval(text, {"torch": library, "F": library.nn.functional, "x": given[0], "y": given[1]})
    found = [made]
    if wanted:
        (made * made.detach()).sum().backward()
        found += [tensor.grad for tensor in given if tensor.grad is not None]
    return plain(found)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("text", NUMBERS.strip().splitlines())
def test_numbers_beside_half_precision_are_rounded_only_where_torch_rounds_them(text: str, dtype: str) -> None:
    generator = np.random.default_rng(0)
    # 64 elements: what torch computes one by one after the last full vector may be rounded otherwise.
    x, y = (generator.uniform(0.1, 3, 64).astype(np.float32) for _ in range(2))
    expected, actual = (with_gradients(library, text, dtype, x, y) for library in (torch, pullback))
    allowed = 2 if any(part in text for part in AT_MOST_TWO) else 0
    for (kind, one), (own, other) in zip(expected, actual, strict=True):
        assert kind == own
        assert ulps(one, other, DIGITS[dtype]) <= allowed


@pytest.mark.parametrize("dtype", HALVES)
def test_compiled_kernels_do_not_round_numbers_either(dtype: str) -> None:
    values = np.random.default_rng(1).uniform(0.1, 3, 32768).astype(np.float32)
    for text in ("x * 0.3", "x / 0.3", "torch.add(x, y, alpha=0.3)", "x.clone().mul_(0.3)", "torch.lerp(x, y, 0.3)"):
        expected, actual = (with_gradients(lib, text, dtype, values, values[::-1]) for lib in (torch, pullback))
        for (_, one), (_, other) in zip(expected, actual, strict=True):
            assert np.array_equal(one, other), text


# ------------------------------------------------------------------ nan in order

ORDERED: dict[str, Callable[[ModuleType, Any], Any]] = {
    "sort": lambda t, x: x.sort(stable=True),
    "sort down": lambda t, x: x.sort(stable=True, descending=True),
    "argsort": lambda t, x: x.argsort(stable=True),
    "topk": lambda t, x: x.topk(3)[0],
    "smallest": lambda t, x: x.topk(3, largest=False)[0],
    "kthvalue": lambda t, x: x.kthvalue(3)[0],
    "median": lambda t, x: [x.median(), x.nanmedian(), x.median(-1)[0], x.nanmedian(-1)[0]],
    "unique": lambda t, x: t.unique(x, return_counts=True),
    "cummax": lambda t, x: x.cummax(-1),
    "cummin": lambda t, x: x.cummin(-1),
    "max": lambda t, x: [x.max(), x.min(), *x.max(-1), *x.min(-1)],
    "amax": lambda t, x: [x.amax(), x.amin(), *x.aminmax()],
    "argmax": lambda t, x: [x.argmax(), x.argmin(-1)],
    "searchsorted": lambda t, x: t.searchsorted(x.reshape(-1).sort()[0], x),
    "bucketize": lambda t, x: t.bucketize(x, x.reshape(-1).sort()[0], right=True),
}


@pytest.mark.parametrize("dtype", (*HALVES, "float32"))
@pytest.mark.parametrize("name", ORDERED)
def test_nan_is_the_greatest_of_halves_too(name: str, dtype: str) -> None:
    generator = np.random.default_rng(2)
    for shape in ((7,), (5, 9), (3, 700)):
        for count in (0, 1, 2):
            values = np.round(generator.standard_normal(shape) * 4).astype(np.float32) / 4 + 0.0
            values.reshape(-1)[generator.integers(0, values.size, count)] = np.nan
            made = [plain(ORDERED[name](lib, lib.from_numpy(values).to(getattr(lib, dtype)))) for lib in LIBRARIES]
            for (kind, one), (own, other) in zip(*made, strict=True):
                assert kind == own
                assert np.array_equal(one, other, equal_nan=kind.startswith(("f", "b"))), (shape, count)


LIBRARIES = (torch, pullback)

# ------------------------------------------------------------------ ranges

KINDS = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64")


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return plain(function())
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ("linspace", "logspace", "arange", "range", "full"))
def test_ranges_have_the_elements_of_torch(name: str, kind: str) -> None:
    dice = random.Random(f"{name} {kind}")
    for _ in range(40):
        whole = not kind.startswith(("f", "b"))
        low, high = (dice.randint(0, 100) if whole else dice.uniform(-100, 100) for _ in range(2))
        count = dice.choice((1, 2, 3, 5, 16, 17, 100, 1000))
        step = dice.choice((1, 2, 1.5) if whole else (1, 0.5, 0.1, 0.3))
        arguments: dict[str, tuple[Any, ...]] = {
            "linspace": (low, high, count),
            "logspace": (low / 50, high / 50, count, dice.choice((2.0, 10.0, 3.3))),
            "arange": (min(low, high), max(low, high), step),
            "range": (min(low, high), max(low, high), step),
            "full": ((2,), low),
        }
        given = arguments[name]
        made = [outcome(lambda t=t, g=given: getattr(t, name)(*g, dtype=getattr(t, kind))) for t in LIBRARIES]
        if name == "arange" and kind in HALVES:  # some of torch's sums are fused and some are not
            assert ulps(made[0][0][1], made[1][0][1], DIGITS[kind]) <= 1, given
            continue
        assert repr(made[0]) == repr(made[1]), given


# ------------------------------------------------------------------ losses of mixed dtypes

LOSSES = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "soft_margin_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss",
    "cosine_similarity", "pairwise_distance", "linear",
)  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_mixed_dtypes_have_the_dtypes_and_errors_of_torch(name: str) -> None:
    values = np.random.default_rng(3).uniform(0.1, 0.9, (2, 6, 5)).astype(np.float32)
    for first in (*HALVES, "float32"):
        for second in (*HALVES, "float32"):
            made = []
            for library in LIBRARIES:
                x = library.from_numpy(values[0].copy()).to(getattr(library, first)).requires_grad_()
                y = library.from_numpy(values[1].copy()).to(getattr(library, second)).requires_grad_()
                loss = getattr(library.nn.functional, name)
                made.append(outcome(lambda loss=loss, x=x, y=y: recorded(loss(x, y), x, y)))
            if isinstance(made[0], tuple):
                assert made[0] == made[1]
                continue
            digits = 7 if "bfloat16" in (first, second) else 10
            for (kind, one), (own, other) in zip(*made, strict=True):
                assert kind == own, (first, second)
                assert ulps(one, other, digits) <= 16, (first, second)


def recorded(loss: Any, *leaves: Any) -> list[Any]:
    loss.sum().backward()
    return [loss, *[leaf.grad for leaf in leaves if leaf.grad is not None]]


# ------------------------------------------------------------------ training under autocast


def model_of(library: ModuleType, name: str) -> Any:
    nn = library.nn
    if name == "perceptron":
        return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
    if name == "convolutions":
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3)]
        layers += [nn.BatchNorm2d(16), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)]
        return nn.Sequential(*layers)

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.qkv, self.out = nn.Embedding(11, 32), nn.Linear(32, 96), nn.Linear(32, 32)
            self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.up, self.down, self.head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 5)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            q, k, v = self.qkv(self.norm1(x)).view(8, 6, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(8, 6, 32))
            x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
            return self.head(x.mean(1))

    return Transformer()


def training_step(library: ModuleType, name: str, enabled: bool = True) -> dict[str, tuple[str, np.ndarray]]:
    library.manual_seed(0)
    generator = np.random.default_rng(4)
    model = model_of(library, name)
    shapes = {"perceptron": (32, 20), "convolutions": (16, 3, 12, 12)}
    if name in shapes:
        given = library.from_numpy(generator.standard_normal(shapes[name]).astype(np.float32))
    else:
        given = library.from_numpy(generator.integers(0, 11, (8, 6)))
    target = library.from_numpy(generator.integers(0, 5, (len(given),)))
    with library.autocast("cpu", dtype=library.bfloat16, enabled=enabled):
        out = model(given)
        loss = library.nn.functional.cross_entropy(out, target)
    loss.backward()
    found = {"out": out, "loss": loss} | {key: parameter.grad for key, parameter in model.named_parameters()}
    return {key: plain(tensor)[0] for key, tensor in found.items()}


@pytest.mark.parametrize(("name", "allowed"), (("perceptron", 0), ("transformer", 3)))
def test_a_training_step_under_autocast_gives_the_gradients_of_torch(name: str, allowed: int) -> None:
    expected, actual = (training_step(library, name) for library in LIBRARIES)
    for key, (kind, one) in expected.items():
        assert actual[key][0] == kind
        unit = 2.0 ** (np.floor(np.log2(np.abs(one).max())) - 7)
        assert np.abs(one - actual[key][1]).max() / unit <= max(allowed, 1e-4), key


def test_convolutions_under_autocast_stray_from_single_precision_no_further_than_those_of_torch() -> None:
    # Behind a batch norm most of a gradient is what rounding leaves: there both are compared with float32.
    expected, actual = (training_step(library, "convolutions") for library in LIBRARIES)
    exact = training_step(torch, "convolutions", enabled=False)
    for key, (kind, one) in expected.items():
        assert actual[key][0] == kind
        strayed = np.abs(one - exact[key][1]).max()
        assert np.abs(actual[key][1] - exact[key][1]).max() <= 4 * strayed + 1e-4, key


@pytest.mark.parametrize("p", [0.5, 0.3, -1.0, 1.0, 1.5, 2.0, 2.5, 3.0, math.inf])
@pytest.mark.parametrize("call", ["linalg.vector_norm(x, p, -1)", "nn.functional.normalize(x, p)", "norm(x, p)"])
def test_tangents_of_norms_are_rounded_where_torch_rounds_them(call: str, p: float) -> None:
    def seen(module: ModuleType) -> Any:
        random = np.random.RandomState(0)
        x, moves = (module.tensor(random.randn(40, 3)).half() for _ in range(2))
        x[0], x[1, 1] = 0, 0
        function = lambda x: eval(f"torch.{call}", {"torch": module, "x": x, "p": p})
        return np.array(module.func.jvp(function, (x,), (moves,))[1].double().tolist())

    np.testing.assert_array_equal(seen(torch), seen(pullback))
