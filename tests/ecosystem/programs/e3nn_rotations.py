"""e3nn: spherical harmonics, a linear layer and a tensor product of irreducible representations."""

import torch
from e3nn import o3

torch.manual_seed(0)
x = torch.randn(4, 3, requires_grad=True)
harmonics = o3.spherical_harmonics([0, 1, 2], x, normalize=True)
print(harmonics.abs().sum().item())
product = o3.FullyConnectedTensorProduct("1x0e+1x1o+1x2e", "1x1o", "2x0e+2x1o")
out = product(harmonics, x)
out.pow(2).sum().backward()
print(out.abs().sum().item(), x.grad.abs().sum().item())
print(o3.wigner_3j(1, 1, 2).abs().sum().item(), o3.Linear("2x0e+2x1o", "3x0e")(out).abs().sum().item())
