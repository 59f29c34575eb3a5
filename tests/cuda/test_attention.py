"""Attention on the device, forward and backward, and whole models trained there."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.kernels.compiled import room

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


def test_attention_in_half_precision() -> None:
    q = numbers(2, 2, 6, 8, dtype=torch.bfloat16)
    agree(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)


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
