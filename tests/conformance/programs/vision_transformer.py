"""A vision transformer on patterns: patches by strided convolution, drop path, heads by hand, attribution."""

import torch
import torch.nn.functional as F
from torch import nn


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0.0:
            return x
        keep = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1 - self.p)
        return x * keep.div_(1 - self.p)


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads, self.scale = heads, (size // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(size, size * 3, bias=False), nn.Linear(size, size)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        self.weights = ((q @ k.transpose(-2, -1)) * self.scale).softmax(dim=-1)
        own = self.weights @ v
        fast = F.scaled_dot_product_attention(q, k, v)
        return self.proj(((own + fast) / 2).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, size, heads, drop):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size, eps=1e-6), nn.LayerNorm(size, eps=1e-6)
        self.attn, self.drop_path = Attention(size, heads), DropPath(drop)
        self.mlp = nn.Sequential(nn.Linear(size, size * 2), nn.GELU(approximate="tanh"), nn.Linear(size * 2, size))
        self.gamma = nn.Parameter(1e-1 * torch.ones(size))

    def forward(self, x):
        x = x + self.drop_path(self.gamma * self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, classes=4):
        super().__init__()
        self.patch = nn.Conv2d(1, size, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, size))
        self.pos = nn.Parameter(torch.zeros(1, 17, size))
        nn.init.trunc_normal_(self.pos, std=0.02)
        self.blocks = nn.Sequential(*[Block(size, 2, 0.1 * i) for i in range(2)])
        self.head = nn.Linear(size, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
        return self.head(self.blocks(x).mean(1))


def patterns(n):
    kind = torch.randint(0, 4, (n,))
    ramp = torch.linspace(-1, 1, 16)
    rows = torch.stack([ramp[:, None].expand(16, 16), ramp.expand(16, 16), ramp[:, None] * ramp, torch.zeros(16, 16)])
    return rows[kind][:, None] + 0.3 * torch.randn(n, 1, 16, 16), kind


torch.manual_seed(0)
net = ViT()
decay = {id(p) for m in net.modules() if isinstance(m, nn.Linear) for p in [m.weight]}
groups = [{"params": [p for p in net.parameters() if id(p) in decay]}]
groups.append({"params": [p for p in net.parameters() if id(p) not in decay], "weight_decay": 0.0})
optimizer = torch.optim.AdamW(groups, lr=3e-3, weight_decay=0.05)
for step in range(12):
    x, y = patterns(16)
    mixed = torch.distributions.Beta(0.8, 0.8).sample().item()
    order = torch.randperm(16)
    logits = net(mixed * x + (1 - mixed) * x[order])
    one_hot = F.one_hot(y, 4).float()
    loss = -(F.log_softmax(logits, -1) * (mixed * one_hot + (1 - mixed) * one_hot[order])).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
net.eval()
x, y = patterns(4)
x.requires_grad_()
net(x).gather(1, y[:, None]).sum().backward()
patches = F.unfold(x.grad.abs(), 4, stride=4).sum(1)
print(patches.max(1).values.tolist(), net.blocks[0].attn.weights.sum().item())
adversarial = (x + 0.1 * x.grad.sign()).detach().clamp(-2, 2)
print(net(adversarial).softmax(1).gather(1, y[:, None]).flatten().tolist())
