"""A critic with a gradient penalty: gradients of gradients in training."""

import torch
import torch.nn as nn
from torch.autograd import grad as torch_grad


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1, bias=False), nn.InstanceNorm2d(4, affine=True), nn.LeakyReLU(0.2),
            nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False), nn.GroupNorm(2, 8), nn.SiLU(),
        )  # fmt: skip
        self.score = nn.Linear(8 * 2 * 2, 1)

    def forward(self, x):
        return self.score(self.features(x).flatten(1)).squeeze(1)


def penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1).expand_as(real)
    mixed = (alpha * real.data + (1 - alpha) * fake.data).requires_grad_(True)
    score = critic(mixed)
    (gradients,) = torch_grad(score, mixed, grad_outputs=torch.ones_like(score), create_graph=True, retain_graph=True)
    norms = torch.sqrt(torch.sum(gradients.view(real.size(0), -1) ** 2, dim=1) + 1e-12)
    return 10 * ((norms - 1) ** 2).mean(), norms.mean().item()


torch.manual_seed(7)
critic = Critic()
generator = nn.Sequential(
    nn.Linear(4, 16), nn.Unflatten(1, (4, 2, 2)), nn.ConvTranspose2d(4, 4, 4, 2, 1), nn.ELU(),
    nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1), nn.Tanh(),
)  # fmt: skip
c_opt = torch.optim.RMSprop(critic.parameters(), lr=2e-3, alpha=0.9)
g_opt = torch.optim.RMSprop(generator.parameters(), lr=2e-3)
line = torch.linspace(-1, 1, 8)
for step in range(12):
    for _ in range(2):
        real = (line[None, :] * torch.rand(8, 1))[:, None, None, :].expand(8, 1, 8, 8) + 0.1 * torch.randn(8, 1, 8, 8)
        fake = generator(torch.randn(8, 4))
        c_opt.zero_grad()
        extra, norm = penalty(critic, real, fake)
        loss = critic(fake.detach()).mean() - critic(real).mean() + extra
        loss.backward()
        c_opt.step()
    g_opt.zero_grad()
    g_loss = -critic(generator(torch.randn(8, 4))).mean()
    g_loss.backward()
    g_opt.step()
    print(step, loss.item(), norm, g_loss.item())
