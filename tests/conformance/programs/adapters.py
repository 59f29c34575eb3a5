"""Fine-tuning with low-rank adapters, distillation, pruning and a mixture of experts."""

import copy
import math

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch import nn
from torch.nn.utils import prune


class LowRank(nn.Module):
    def __init__(self, rows, columns, rank=2, alpha=4.0):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.empty(rank, columns)), nn.Parameter(torch.zeros(rows, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, weight):
        return weight + (self.b @ self.a) * self.scale


class Experts(nn.Module):
    def __init__(self, size, count=3, k=2):
        super().__init__()
        self.gate, self.k = nn.Linear(size, count, bias=False), k
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(size, size), nn.SiLU()) for _ in range(count)])

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        weights, chosen = scores.topk(self.k, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, place = (chosen == number).nonzero(as_tuple=True)
            if rows.numel():
                out.index_put_((rows,), weights[rows, place, None] * expert(x[rows]), accumulate=True)
        self.balance = (scores.mean(0) * F.one_hot(chosen, scores.shape[-1]).float().mean((0, 1))).sum()
        return out


torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(6, 12), nn.Mish(), Experts(12), nn.Linear(12, 3))
x, y = torch.randn(40, 6), torch.randint(0, 3, (40,))
optimizer = torch.optim.Adadelta(teacher.parameters(), lr=1.0)
for step in range(8):
    loss = F.cross_entropy(teacher(x), y, label_smoothing=0.05) + 0.1 * teacher[2].balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
del teacher[2].balance
tuned = copy.deepcopy(teacher).requires_grad_(False)
for module in (tuned[0], tuned[3]):
    parametrize.register_parametrization(module, "weight", LowRank(*module.weight.shape))
trainable = [name for name, p in tuned.named_parameters() if p.requires_grad]
print(trainable, parametrize.is_parametrized(tuned[0]))
optimizer = torch.optim.SGD([p for p in tuned.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
other = (y + 1) % 3
for step in range(6):
    with parametrize.cached():
        loss = F.cross_entropy(tuned(x), other)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
for module in (tuned[0], tuned[3]):
    parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
print(sorted(tuned.state_dict())[:4], tuned(x).sum().item())
student = nn.Sequential(nn.Linear(6, 8), nn.ReLU6(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(6):
    with torch.no_grad():
        target = (teacher(x) / 2).softmax(-1)
    out = student(x)
    loss = F.kl_div((out / 2).log_softmax(-1), target, reduction="batchmean") * 4 + 0.5 * F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
prune.l1_unstructured(student[0], "weight", amount=0.3)
prune.ln_structured(student[2], "weight", amount=0.25, n=2, dim=1)
print(int((student[0].weight == 0).sum()), int((student[2].weight == 0).all(0).sum()), sorted(student.state_dict()))
prune.remove(student[0], "weight")
print(student(x).sum().item())
