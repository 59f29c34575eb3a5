"""Weights with uncertainty: variational layers, Monte Carlo estimates, Langevin steps and an importance sampler."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Gamma, Laplace, Normal, StudentT, kl_divergence


class BayesLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mean = nn.Parameter(torch.empty(o, i).uniform_(-1, 1) / math.sqrt(i))
        self.rho = nn.Parameter(torch.full((o, i), -3.0))
        self.bias = nn.Parameter(torch.zeros(o))

    def posterior(self):
        return Normal(self.mean, F.softplus(self.rho))

    def forward(self, x):
        mean = F.linear(x, self.mean, self.bias)
        std = F.linear(x.square(), F.softplus(self.rho).square()).add(1e-8).sqrt()
        return mean + std * torch.randn_like(std)

    def kl(self):
        return kl_divergence(self.posterior(), Normal(torch.zeros_like(self.mean), 1.0)).sum()


torch.manual_seed(0)
net = nn.Sequential(BayesLinear(1, 10), nn.Tanh(), BayesLinear(10, 1))
noise = nn.Parameter(torch.tensor(0.0))
optimizer = torch.optim.Adam([*net.parameters(), noise], lr=2e-2)
x = torch.linspace(-2, 2, 24)[:, None]
y = torch.sin(2 * x) + 0.1 * StudentT(3.0).sample((24, 1))
for step in range(20):
    optimizer.zero_grad()
    likelihood = torch.stack([Normal(net(x), noise.exp()).log_prob(y).sum() for _ in range(3)]).mean()
    loss = (sum(m.kl() for m in net if isinstance(m, BayesLinear)) * min(1.0, step / 10) - likelihood) / 24
    loss.backward()
    optimizer.step()
    print(step, loss.item(), noise.item())
with torch.no_grad():
    draws = torch.stack([net(x) for _ in range(20)])
ends = torch.quantile(draws.flatten(), torch.tensor([0.1, 0.9]))
print(draws.mean().item(), draws.std(0).mean().item(), ends.tolist())
target = Gamma(3.0, 2.0)
proposal = Laplace(1.0, 1.0)
samples = proposal.sample((400,)).abs()
weights = (target.log_prob(samples) - proposal.log_prob(samples)).softmax(0)
print((weights * samples).sum().item(), 1 / weights.square().sum().item())
state, kept = torch.zeros(2, requires_grad=True), []
for _ in range(30):
    energy = 0.5 * (state**2).sum() + torch.cos(3 * state[0])
    (force,) = torch.autograd.grad(energy, state)
    state = (state - 0.05 * force + math.sqrt(0.1) * torch.randn(2)).detach().requires_grad_()
    kept.append(state.detach())
print(torch.stack(kept).cov().shape, torch.cov(torch.stack(kept).T).tolist())
