"""backpack: gradients of each sample, their variance, and diagonals of second derivatives, in one backward pass."""

import torch
from backpack import backpack, extend
from backpack.extensions import BatchGrad, DiagGGNExact, DiagHessian, Variance

torch.manual_seed(0)
net = extend(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sigmoid(), torch.nn.Linear(4, 2)))
loss = extend(torch.nn.CrossEntropyLoss())(net(torch.randn(6, 3)), torch.randint(0, 2, (6,)))
with backpack(BatchGrad(), DiagGGNExact(), Variance(), DiagHessian()):
    loss.backward()
for p in net.parameters():
    print([t.abs().sum().item() for t in (p.grad, p.grad_batch, p.diag_ggn_exact, p.variance, p.diag_h)])
