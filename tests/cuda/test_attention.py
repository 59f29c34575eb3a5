"""Attention on the device, forward and backward, and whole models trained there."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.kernels.compiled import room
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import launches

from .agreeing import agree

pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")


def numbers(*shape: int, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(sum(shape))
    return torch.randn(*shape).to(dtype)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", [(5, 5, 8), (7, 4, 3), (4, 9, 16)])
def test_attention_and_its_gradients(sizes: tuple[int, int, int], is_causal: bool) -> None:
    queries, keys, features = sizes
    q, k, v = numbers(2, 3, queries, features), numbers(2, 3, keys, features), numbers(2, 3, keys, features) + 1
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=is_causal), q, k, v)


def test_attention_with_a_mask_and_of_heads_that_lie_among_features() -> None:
    q, mask = numbers(2, 5, 3, 8), numbers(5, 5)
    agree(lambda q, m: F.scaled_dot_product_attention(q, q, q, m.detach()), q, numbers(3, 3))
    agree(lambda q: F.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3, is_causal=True), q)
    agree(lambda q, m: F.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3, m.detach() > 0), q, mask)


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def agrees(dtype: Any, sizes: tuple[int, ...], mask: Any = None, **options: Any) -> None:
    """Compare with the host: batch, heads of queries and of keys, queries, keys, features."""
    batch, heads, own, queries, keys, features = sizes
    q = numbers(batch, heads, queries, features, dtype=dtype)
    k, v = numbers(batch, own, keys, features, dtype=dtype), numbers(batch, own, keys, features + 1, dtype=dtype) + 1

    def compute(q: Any, k: Any, v: Any) -> Any:
        more = None if mask is None else mask.to(q.device)
        return F.scaled_dot_product_attention(q, k, v[..., :-1], more, enable_gqa=own != heads, **options)

    agree(compute, q, k, v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_meets_keys_tile_by_tile(dtype: Any) -> None:
    agrees(dtype, (1, 1, 1, 1, 1, 1))
    agrees(dtype, (2, 2, 1, 70, 67, 12), is_causal=True)
    agrees(dtype, (1, 4, 2, 3, 130, 16), numbers(1, 4, 1, 130).to(dtype))
    agrees(dtype, (1, 1, 1, 67, 34, 24), numbers(67, 34), scale=0.3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_of_queries_that_see_nothing(dtype: Any) -> None:
    mask = numbers(2, 1, 9, 35) > 0
    mask[0, 0, 2] = mask[1, 0, :, :33] = False
    agrees(dtype, (2, 2, 2, 9, 35, 16), mask)


@pytest.mark.parametrize("features", [64, 90, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_of_longer_heads(dtype: Any, features: int) -> None:
    agrees(dtype, (1, 1, 1, 9, 33, features), is_causal=features != 90)


def test_attention_of_heads_that_no_kernel_holds_writes_its_scores() -> None:
    before = dict(launches)
    agrees(torch.float32, (1, 2, 2, 5, 6, 136), is_causal=True)
    assert launches.get("attention") == before.get("attention") and launches["product"] > before.get("product", 0)


@pytest.mark.parametrize("limits", [{"shared_memory_per_multiprocessor": 65536}, {"major": 7, "minor": 0}])
def test_attention_where_there_is_less_shared_memory_or_no_copy_ahead(monkeypatch: Any, limits: Any) -> None:
    for name, value in limits.items():
        monkeypatch.setitem(required().devices[0].attributes, name, value)
    sizes = (1, 2, 1, 35 + len(limits), 37, 96)
    agrees(torch.float32, sizes, is_causal=True)
    agrees(torch.float32, (*sizes[:-1], 9), numbers(sizes[3], 37))


def test_attention_of_arrays_in_any_order() -> None:
    q, k = numbers(2, 1, 5, 8), numbers(3, 2, 7, 8)
    agree(lambda q, k: F.scaled_dot_product_attention(q.expand(2, 3, 5, 8), *[k.transpose(0, 1)] * 2), q, k)
    agree(lambda q: F.scaled_dot_product_attention(q, q, q).sum(), q)
    agree(lambda q: F.scaled_dot_product_attention(*[q.transpose(-1, -2)] * 3), q)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_attention_launches_one_kernel_forward_and_three_backward_and_has_no_scores_in_memory(dtype: Any) -> None:
    length = 131
    given = [numbers(1, 1, length, 4, dtype=dtype).cuda().requires_grad_() for _ in range(3)]
    results, grad = [], numbers(1, 1, length, 4, dtype=dtype).cuda()
    for _ in range(2):
        for t in given:
            t.grad = None
        torch.cuda.reset_peak_memory_stats()
        held, before = torch.cuda.memory_allocated(), dict(launches)
        out = F.scaled_dot_product_attention(*given)
        assert launches["attention"] - before.get("attention", 0) <= 1  # none where native code does it again
        out.backward(grad)
        counted = {name: n - before.get(name, 0) for name, n in launches.items() if n != before.get(name, 0)}
        kernels = 2 if required().emulated else 4  # which computes all gradients at once
        assert counted in ({"attention": kernels}, {})
        assert torch.cuda.max_memory_allocated() - held < length * length * out.itemsize
        results.append([t.detach().cpu() for t in (out, *[t.grad for t in given])])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


KERNELS = [
    ("float", 64, (64, 64), "wa", ""),
    ("float", 96, (32, 16), "w", "float"),
    ("double", 32, (32, 16), "c", ""),
    ("half", 128, (64, 32), "wac", "half"),
    ("bfloat", 16, (64, 64), "", "float"),
]
"""Elements, features, rows of a block and of a tile, how they are read, and what is added to the scores."""


@pytest.mark.parametrize("kind", ["forward", "dq", "dk", "dv"])
@pytest.mark.parametrize("case", KERNELS)
def test_kernels_of_attention_become_ptx(case: Any, kind: str) -> None:
    element, features, sizes, letters, mask = case
    kernels = room("cuda.attention")
    shape = kernels.Shape(element, features, *sizes)
    text = kernels.text_of(kind, shape, letters, mask)
    assert f"@{kernels.name_of(kind, shape, letters, mask)}(" in text
    for capability in ((7, 0), (8, 0), (9, 0)):
        if capability >= (8, 0) or ("a" not in letters and not shape.of_halves):
            ptx = room("cuda.ptx").compiled(text, capability)
            assert "bar.sync" in ptx and ".local" not in ptx  # nothing lies in memory that a register should hold
            assert ("ex2.approx.ftz" in ptx) == shape.of_halves  # numbers too small for float32 need no steps more
            assert ("mma.sync" in ptx) == shape.of_halves and ("cp.async" in ptx) == ("a" in letters)


# ------------------------------------------------------------------ models


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).split(width, 2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


class Language(nn.Module):
    """A small GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.block, self.norm, self.head = Block(8, 2), nn.LayerNorm(8), nn.Linear(8, 11, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.block(x)))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2),
        nn.GroupNorm(2, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 11),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["language", "images"])
@pytest.mark.parametrize("half", [False, True])
def test_models_train_on_the_device_as_on_the_host_and_nothing_goes_through_the_host(name: str, half: bool) -> None:
    losses = []
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = (Language() if name == "language" else images()).to(place)
        x = torch.randint(11, (3, 6)) if name == "language" else torch.randn(3, 2, 10, 10)
        y = torch.randint(11, (18,) if name == "language" else (3,))
        x, y = x.to(place), y.to(place)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        found = []
        for turn in range(3):
            if turn == 1:
                torch.cuda.reset_fallbacks()
            optimizer.zero_grad()
            with torch.autocast(place, torch.bfloat16, enabled=half):
                loss = F.cross_entropy(model(x).view(-1, 11), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found.append(loss.detach())
        if place == "cuda":
            assert torch.cuda.fallbacks() == {}
        losses.append([one.item() for one in found])
    assert losses[0][0] > losses[0][-1]
    bound = 3e-2 if half else 5e-3
    assert all(abs(a - b) < bound for a, b in zip(*losses, strict=True)), losses
