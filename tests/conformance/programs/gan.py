"""A generator and a discriminator with spectral norm, on points of a ring."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm


class Generator(nn.Module):
    def __init__(self, latent=4, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent, width, bias=False), nn.BatchNorm1d(width), nn.LeakyReLU(0.2), nn.Linear(width, 2)
        )

    def forward(self, z):
        return torch.tanh(self.net(z)) * 2


def real_points(n):
    angle = torch.rand(n) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def init(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.2)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


torch.manual_seed(3)
G = Generator().apply(init)
D = nn.Sequential(spectral_norm(nn.Linear(2, 16)), nn.ReLU(inplace=True), spectral_norm(nn.Linear(16, 1)))
opt_g = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.999))
for step in range(25):
    real = real_points(32)
    fake = G(torch.randn(32, 4))
    d_loss = F.binary_cross_entropy_with_logits(D(real), torch.full((32, 1), 0.9))
    d_loss = d_loss + F.binary_cross_entropy_with_logits(D(fake.detach()), torch.zeros(32, 1))
    opt_d.zero_grad(set_to_none=True)
    d_loss.backward()
    opt_d.step()
    g_loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    print(step, d_loss.item(), g_loss.item())
G.eval()
with torch.no_grad():
    sample = G(torch.randn(64, 4))
print(sample.norm(dim=1).mean().item(), sample.std(0).tolist())
