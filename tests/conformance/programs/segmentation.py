"""A small U-net with checkpointed middle, Dice loss, and a confusion matrix."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def block(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.SiLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, groups=2), nn.GroupNorm(2, o), nn.PReLU(o),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, classes=3, width=4):
        super().__init__()
        self.down = nn.ModuleList([block(1, width), block(width, width * 2)])
        self.middle = block(width * 2, width * 4)
        self.up = nn.ModuleList(
            [nn.ConvTranspose2d(width * 4, width * 2, 2, stride=2), nn.ConvTranspose2d(width * 2, width, 2, stride=2)]
        )
        self.merge = nn.ModuleList([block(width * 4, width * 2), block(width * 2, width)])
        self.head = nn.Conv2d(width, classes, 1)
        self.drop = nn.Dropout2d(0.1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2) + F.max_pool2d(x, 2)
        x = self.drop(checkpoint(self.middle, x, use_reentrant=False))
        for up, merge, skip in zip(self.up, self.merge, reversed(kept)):
            x = merge(torch.cat([up(x), skip], dim=1))
        return self.head(x)


def dice(logits, target, eps=1e-6):
    probabilities = logits.softmax(1)
    one_hot = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).to(probabilities.dtype)
    inter = (probabilities * one_hot).sum((0, 2, 3))
    return 1 - (2 * inter / (probabilities.sum((0, 2, 3)) + one_hot.sum((0, 2, 3)) + eps)).mean()


def picture(n):
    rows, columns = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
    centers = torch.randint(4, 12, (n, 2, 1, 1))
    distance = ((rows - centers[:, 0]) ** 2 + (columns - centers[:, 1]) ** 2).float().sqrt()
    target = (distance < 5).long() + (distance < 2.5).long()
    return target[:, None].float() * 0.5 + 0.2 * torch.randn(n, 1, 16, 16), target


torch.manual_seed(2)
net = UNet()
for m in net.modules():
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
print(sum(p.numel() for p in net.parameters()), len(list(net.buffers())), net.up[0])
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
weight = torch.tensor([0.5, 1.0, 2.0])
for step in range(8):
    x, y = picture(4)
    logits = net(x)
    loss = F.cross_entropy(logits, y, weight=weight) + dice(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
net.eval()
with torch.no_grad():
    x, y = picture(4)
    guess = net(x).argmax(1)
    small = F.interpolate(net(x), size=(8, 8), mode="bilinear", align_corners=False, antialias=True)
print(torch.bincount((y * 3 + guess).flatten(), minlength=9).view(3, 3).sum(1).tolist(), small.mean().item())
