"""opacus: gradients of each sample, clipped, with noise."""

import torch
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant

torch.manual_seed(0)
net = GradSampleModule(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)))
net(torch.randn(5, 3)).pow(2).mean().backward()
print([(tuple(p.grad_sample.shape), p.grad_sample.abs().sum().item()) for p in net.parameters()])
accountant = RDPAccountant()
for _ in range(10):
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
print(accountant.get_epsilon(delta=1e-5))
