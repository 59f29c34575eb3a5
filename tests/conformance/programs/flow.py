"""A normalizing flow between two moons and a Gaussian, with torch.distributions."""

import math

import torch
from torch import distributions as D
from torch import nn


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0] if flip else [0.0, 1.0]))
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 4))
        self.net[-1].weight.data.mul_(0.1)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=-1)
        s = torch.tanh(s) * (1 - self.mask)
        return x * s.exp() + t * (1 - self.mask), s.sum(-1)

    @torch.no_grad()
    def inverse(self, z):
        s, t = self.net(z * self.mask).chunk(2, dim=-1)
        return (z - t * (1 - self.mask)) * (-torch.tanh(s) * (1 - self.mask)).exp()


class Rotation(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(2, 2))[0])

    def forward(self, x):
        return x @ self.weight, torch.linalg.slogdet(self.weight).logabsdet.expand(x.shape[0])

    @torch.no_grad()
    def inverse(self, z):
        return torch.linalg.solve(self.weight.T, z.T).T


def moons(n):
    angle = torch.rand(n) * math.pi
    side = torch.arange(n) % 2
    x = torch.where(side == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(side == 0, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(8)
base = D.MultivariateNormal(torch.zeros(2), torch.eye(2))
layers = nn.ModuleList([Coupling(True), Rotation(), Coupling(False), Coupling(True)])
optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-2)
for step in range(20):
    z, total = moons(64), torch.zeros(64)
    for layer in layers:
        z, change = layer(z)
        total = total + change
    loss = -(base.log_prob(z) + total).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(layers.parameters(), 5.0, error_if_nonfinite=True)
    optimizer.step()
    print(step, loss.item())
x = z = base.sample((5,))
for layer in reversed(layers):
    x = layer.inverse(x)
for layer in layers:
    x = layer(x)[0]
print(torch.allclose(x, z, atol=1e-4))
mixture = D.MixtureSameFamily(D.Categorical(logits=torch.zeros(3)), D.Independent(D.Normal(torch.randn(3, 2), 1.0), 1))
print(mixture.log_prob(torch.zeros(2)).item(), D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)).item())
