"""Two encoders trained against each other's views: cosine similarities, a learned temperature, a slow copy."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, i, o=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(i, 16), nn.BatchNorm1d(16), nn.Hardswish(), nn.Linear(16, o))
        self.head = nn.utils.parametrizations.weight_norm(nn.Linear(o, o, bias=False))

    def forward(self, x):
        return F.normalize(self.head(self.body(x)), dim=-1)


def augment(x):
    return x * (torch.rand_like(x) > 0.2) + 0.1 * torch.randn_like(x)


torch.manual_seed(5)
image, text = Encoder(12), Encoder(6)
logit_scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))
slow = copy.deepcopy(image.body)
parameters = [*image.parameters(), *text.parameters(), logit_scale]
optimizer = torch.optim.NAdam([{"params": parameters[:-1]}, {"params": [logit_scale], "lr": 1e-3}], lr=5e-3)
mixing = torch.randn(12, 6)
for step in range(15):
    x = torch.randn(16, 12)
    a, b = image(augment(x)), text(x @ mixing / 3)
    logits = logit_scale.exp().clamp(max=100) * torch.einsum("nd,md->nm", a, b)
    labels = torch.arange(16)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    own = image(augment(x))
    similar = torch.cat([a, own]) @ torch.cat([a, own]).T / 0.5
    similar = similar.masked_fill(torch.eye(32, dtype=torch.bool), float("-inf"))
    loss = loss + 0.1 * F.cross_entropy(similar, (torch.arange(32) + 16) % 32)
    loss = loss + 0.1 * F.triplet_margin_loss(a, own, b.roll(1, 0), margin=0.5)
    with torch.no_grad():
        target = slow(x)
    loss = loss + 0.1 * (2 - 2 * F.cosine_similarity(image.body(x), target, dim=-1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for s, f in zip(slow.state_dict().values(), image.body.state_dict().values()):
            s.copy_(s * 0.9 + f * 0.1) if s.is_floating_point() else s.copy_(f)
    print(step, loss.item(), logit_scale.item())
nearest = torch.cdist(a.detach(), b.detach()).argmin(1)
print((nearest == labels).sum().item() >= 0, torch.corrcoef(a.detach().T)[0, 1].item())
