"""A program of the usual size, as a type checker sees it: nn, optim and data, and what each expression is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import pullback as torch
import pullback.nn.functional as F
from pullback import Tensor, nn, optim
from pullback.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Circles(Dataset[tuple[Tensor, Tensor]]):
    """Points in the plane, and whether each lies in a circle."""

    def __init__(self, count: int) -> None:
        self.points = torch.rand(count, 2)
        self.inside = (self.points.pow(2).sum(dim=1) < 0.5).long()

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.points[index], self.inside[index]


class Block(nn.Module):
    """A layer with a residual connection."""

    def __init__(self, features: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.linear = nn.Linear(features, features, bias=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(F.gelu(self.linear(self.norm(x))))


class Network(nn.Module):
    """Some blocks between two layers."""

    def __init__(self, features: int, blocks: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, features)
        self.blocks = nn.ModuleList([Block(features) for _ in range(blocks)])
        self.last = nn.Sequential(nn.ReLU(), nn.Linear(features, 2))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.last(x)
        return scores * self.scale


def train(net: nn.Module, batches: DataLoader[tuple[Tensor, Tensor]], epochs: int) -> list[float]:
    """The loss of each epoch."""
    optimizer = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loss_of = nn.CrossEntropyLoss()
    losses: list[float] = []
    net.train()
    for _ in range(epochs):
        total = 0.0
        for points, labels in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(net(points), labels)
            assert_type(loss, Tensor)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
            optimizer.step()
            total += float(loss)
        scheduler.step()
        losses.append(total / len(batches))
    return losses


@torch.no_grad()
def accuracy(net: nn.Module, data: Dataset[tuple[Tensor, Tensor]]) -> float:
    """The part that is right."""
    net.eval()
    right = count = 0
    for points, labels in DataLoader(data, batch_size=64):
        right += int((net(points).argmax(dim=1) == labels).sum().item())
        count += labels.numel()
    return right / count


def parameters_of(net: nn.Module) -> Iterator[tuple[str, torch.Size]]:
    """Names and shapes."""
    for name, parameter in net.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
        yield name, parameter.shape


def what_is_known_of_tensors(x: Tensor, y: Tensor) -> None:
    """Indexing, numbers, shapes, results with several parts."""
    assert_type(x[0], Tensor)
    assert_type(x[..., 1:], Tensor)
    assert_type(x[y > 0], Tensor)
    assert_type(x.item(), bool | int | float)
    assert_type(x.shape, torch.Size)
    assert_type(x.shape[0], int)
    assert_type(x.size(), torch.Size)
    assert_type(x.size(0), int)
    assert_type(x.dim(), int)
    assert_type(x @ y, Tensor)
    assert_type(-x, Tensor)
    assert_type(x == y, Tensor)
    assert_type(2**x, Tensor)
    assert_type(x.t(), Tensor)
    assert_type(x.view(-1, 2), Tensor)
    assert_type(x.reshape(2, -1), Tensor)
    assert_type(x.to(torch.float64), Tensor)
    assert_type(x.detach().cpu(), Tensor)
    assert_type(x.max(dim=1).indices, Tensor)
    values, indices = torch.sort(x)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(torch.cat([x, y]), Tensor)
    assert_type(torch.stack([x, y], dim=0), Tensor)
    assert_type(torch.where(x > 0, x, y), Tensor)
    assert_type(torch.einsum("ij,kj->ik", x, y), Tensor)
    assert_type(torch.zeros(2, 3, dtype=torch.int64), Tensor)
    assert_type(torch.tensor([1.0, 2.0], requires_grad=True), Tensor)
    assert_type(torch.randn(2, 3), Tensor)
    assert_type(torch.arange(10), Tensor)
    assert_type(torch.linalg.norm(x), Tensor)
    assert_type(torch.allclose(x, y), bool)
    assert_type(x.is_contiguous(), bool)
    assert_type(F.softmax(x, dim=-1), Tensor)
    assert_type(torch.autograd.grad(x.sum(), [x]), tuple[Tensor, ...])
    assert_type(x.split(2), tuple[Tensor, ...])
    for row in x:
        assert_type(row, Tensor)


def what_is_known_of_modules(x: Tensor) -> None:
    """Layers keep the types of their parts, and are called with tensors."""
    linear = nn.Linear(2, 3)
    assert_type(linear, nn.Linear)
    assert_type(linear.weight, Tensor)
    assert_type(linear.in_features, int)
    assert_type(linear(x), Tensor)
    assert_type(nn.Sequential(linear, nn.Tanh()), nn.Sequential)
    assert_type(linear.to(torch.float64), nn.Linear)
    assert_type(linear.eval(), nn.Linear)
    assert_type(optim.Adam(linear.parameters(), lr=1e-3), optim.Adam)
    assert_type(optim.SGD(linear.parameters(), lr=0.1, momentum=0.9), optim.SGD)
    linear.load_state_dict(linear.state_dict())


def main() -> None:
    """Train, look, save and load."""
    torch.manual_seed(0)
    data = Circles(256)
    training, testing = random_split(data, [200, 56])
    net = Network(16, blocks=2)
    losses = train(net, DataLoader(training, batch_size=32, shuffle=True), epochs=3)
    print(f"{losses[-1]:.3f} {accuracy(net, testing):.2f}", dict(parameters_of(net)))
    torch.save(net.state_dict(), "net.pt")
    net.load_state_dict(torch.load("net.pt"))
    pairs = TensorDataset(data.points, data.inside)
    assert_type(pairs[0], tuple[Tensor, ...])


if __name__ == "__main__":
    main()
