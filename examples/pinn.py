"""A physics-informed network solves u'' = -pi^2 sin(pi x) with u(-1) = u(1) = 0: second derivatives by autograd."""

import math

import support
import torch
from torch import nn

given = support.arguments(__doc__, steps=300, picture="pinn.svg")
torch.manual_seed(0)
u = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
u.to(given.device)
optimizer = torch.optim.Adam(u.parameters(), lr=5e-3)
ends = torch.tensor([[-1.0], [1.0]], device=given.device)
losses = []
for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.5f}"):
    x = (torch.rand(64, 1) * 2 - 1).to(given.device).requires_grad_()
    y = u(x)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
    residual = curvature + math.pi**2 * torch.sin(math.pi * x)
    loss = (residual**2).mean() + 100 * (u(ends) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

x = torch.linspace(-1, 1, 101, device=given.device)[:, None]
with torch.no_grad():
    found, truth = u(x)[:, 0], torch.sin(math.pi * x)[:, 0]
print(f"largest error: {(found - truth).abs().max().item():.4f}")
xs = x[:, 0].tolist()
support.finish(
    given,
    losses,
    support.lines("physics-informed network", ("training loss", losses), log=True),
    support.lines(
        "u(x)", ("truth", list(zip(xs, truth.tolist()))), ("found", list(zip(xs, found.tolist()))), x="x", y="u"
    ),
)
