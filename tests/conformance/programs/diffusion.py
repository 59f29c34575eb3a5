"""A small diffusion model: a noise schedule, sinusoidal times, an exponential average and ancestral sampling."""

import math

import torch
import torch.nn.functional as F
from torch import nn

T = 20


class Block(nn.Module):
    def __init__(self, size, times):
        super().__init__()
        self.norm = nn.RMSNorm(size)
        self.time = nn.Linear(times, 2 * size)
        self.body = nn.Sequential(nn.Linear(size, size * 2), nn.GLU(), nn.Linear(size, size))

    def forward(self, x, t):
        scale, shift = self.time(F.silu(t)).chunk(2, -1)
        return x + self.body(self.norm(x) * (1 + scale) + shift)


class Denoiser(nn.Module):
    def __init__(self, size=24, times=8):
        super().__init__()
        self.times = times
        self.inlet, self.outlet = nn.Linear(2, size), nn.Linear(size, 2)
        self.blocks = nn.ModuleList([Block(size, times) for _ in range(2)])
        nn.init.zeros_(self.outlet.weight)

    def embed(self, t):
        frequency = torch.exp(torch.arange(self.times // 2) * (-math.log(1e4) / (self.times // 2 - 1)))
        angles = t[:, None].float() * frequency[None]
        return torch.cat([angles.sin(), angles.cos()], -1)

    def forward(self, x, t):
        t, x = self.embed(t), self.inlet(x)
        for block in self.blocks:
            x = block(x, t)
        return self.outlet(x)


class EMA:
    def __init__(self, model, decay):
        self.decay, self.shadow = decay, {k: v.clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)


torch.manual_seed(11)
betas = torch.linspace(1e-3, 0.3, T)
alphas = 1.0 - betas
bars = torch.cumprod(alphas, 0)
model = Denoiser()
ema = EMA(model, 0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for step in range(20):
    x0 = F.normalize(torch.randn(48, 2), dim=1)
    t = torch.randint(0, T, (48,))
    noise = torch.randn_like(x0)
    xt = bars[t].sqrt()[:, None] * x0 + (1 - bars[t]).sqrt()[:, None] * noise
    loss = F.mse_loss(model(xt, t), noise)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    ema.update(model)
    print(step, loss.item())
model.load_state_dict(ema.shadow)
model.eval()
with torch.inference_mode():
    x = torch.randn(16, 2)
    for i in reversed(range(T)):
        t = torch.full((16,), i)
        mean = (x - betas[i] / (1 - bars[i]).sqrt() * model(x, t)) / alphas[i].sqrt()
        x = mean + betas[i].sqrt() * torch.randn_like(x) if i else mean
print(x.norm(dim=1).mean().item(), x.mean(0).tolist())
