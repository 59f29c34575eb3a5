"""A neural ODE learns a spiral: a network gives the velocity, Runge-Kutta steps follow it."""

import support
import torch
from torch import nn

given = support.arguments(__doc__, steps=150, picture="neural_ode.svg")
torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], device=given.device)


def follow(velocity, start, times):
    """Fourth-order Runge-Kutta through the given times."""
    path = [start]
    for h in times[1:] - times[:-1]:
        x = path[-1]
        k1 = velocity(x)
        k2 = velocity(x + h / 2 * k1)
        k3 = velocity(x + h / 2 * k2)
        k4 = velocity(x + h * k3)
        path.append(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return torch.stack(path)


times = torch.linspace(0, 5, 40, device=given.device)
with torch.no_grad():
    truth = follow(lambda x: (x**3) @ matrix.T, torch.tensor([[2.0, 0.0]], device=given.device), times)

model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)).to(given.device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.4f}"):
    starts = torch.randint(0, 30, (16,))
    pieces = torch.stack([truth[s : s + 10, 0] for s in starts], dim=1)
    loss = (follow(lambda x: model(x**3), pieces[0], times[:10]) - pieces).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    learnt = follow(lambda x: model(x**3), truth[0], times)
print(f"mean distance: {(learnt - truth).norm(dim=-1).mean().item():.3f}")
support.finish(
    given,
    losses,
    support.lines("neural ODE", ("training loss", losses), log=True),
    support.lines("the spiral", ("truth", truth[:, 0].tolist()), ("learnt", learnt[:, 0].tolist()), x="time", y="x"),
)
