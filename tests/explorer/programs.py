"""Programs whose graphs the tests explore: those of the seed documents, a GPT, and very large ones."""

from typing import Any

import pullback as torch
from pullback import nn
from pullback.models import gpt as models


def first_graph() -> Any:
    """Seed 000: three leaves, three nodes."""
    A = torch.tensor(2.0, requires_grad=True)
    B = torch.tensor(0.5, requires_grad=True)
    E = torch.tensor(1.0, requires_grad=True)
    C = A * B
    D = C.exp()
    F = D + E
    return F


def two_ways() -> Any:
    """Seed 001: D is used twice, so its gradient is a sum."""
    A = torch.tensor([3.0], requires_grad=True)
    B = torch.tensor([2.0], requires_grad=True)
    C = A**2
    D = B**2
    E = C * D
    return D + E


def dynamic_graph() -> Any:
    """Seed 001: a loop that takes some of the elements."""
    x = torch.tensor([0.3071, 1.1043, 1.3605, -0.3471], requires_grad=True)
    result = 1
    for part in x:
        if part.item() > 0:
            result = part * result
    return result


class Square(torch.autograd.Function):
    """A custom Function, as in seed 002."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def custom_function() -> Any:
    """A Function written by hand, and a hook."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = Square.apply(x)
    y.register_hook(lambda grad: grad * 2)
    return y.mean()


def writes_through_views() -> Any:
    """Seed 003: an in-place write through a view becomes CopySlices."""
    x = torch.ones(3, 4, requires_grad=True)
    base = x * 2
    base[0].mul_(3)
    return base.sum()


def multilayer() -> Any:
    """Seed 000: a model of linear layers, and a loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.tensor([0, 1, 1, 0, 1]))


def gpt() -> Any:
    """The GPT of pullback.models, two layers deep."""
    torch.manual_seed(0)
    model = models.GPT(models.GPTConfig(n_layer=2, n_embd=32, block_size=16, vocab_size=65))
    tokens = torch.randint(0, 65, (2, 16))
    loss = model(tokens, tokens)[1]
    loss.model = model  # nodes know their module while it lives
    return loss


class Reader(nn.Module):
    """A recurrent network whose cell is called in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell = nn.Linear(3, 4), nn.LSTMCell(4, 4)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, steps: Any) -> Any:
        h = c = torch.zeros(2, 4)
        for step in steps:
            h, c = self.cell(self.embed(step), (h, c))
        return self.head(h)


def reader(steps: int = 200) -> Any:
    """A cell that is called once for every step."""
    torch.manual_seed(0)
    net = Reader()
    loss = net(torch.randn(steps, 2, 3)).square().mean()
    loss.model = net
    return loss


def deep() -> Any:
    """A loop of 5,000 rounds: 20,000 nodes, one below the other."""
    torch.manual_seed(0)
    x, W = torch.randn(8, requires_grad=True), torch.randn(8, 8).mul_(0.3).requires_grad_()
    h = x
    for _ in range(5000):
        h = torch.tanh(W @ h)
        h = h * 0.99 + x
    return h.sum()


def wide() -> Any:
    """10,000 branches side by side: 20,000 nodes in a few rows."""
    x = torch.linspace(0, 1, 10_000, requires_grad=True)
    return torch.stack([part.sin() * 2 for part in x.unbind()]).sum()


SEEDS = [first_graph, two_ways, dynamic_graph, custom_function, writes_through_views, multilayer]
