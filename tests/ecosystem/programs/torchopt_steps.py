"""torchopt: optimizers as functions of a functorch module, and a gradient through the steps of one."""

import functorch
import torch
import torchopt

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
func, params = functorch.make_functional(net)
optimizer = torchopt.adam(lr=0.1)
state = optimizer.init(params)
x = torch.randn(3, 4)
for _ in range(3):
    loss = func(params, x).pow(2).sum()
    updates, state = optimizer.update(torch.autograd.grad(loss, params), state, inplace=False)
    params = torchopt.apply_updates(params, updates, inplace=False)
    print(loss.item())
factor = torch.nn.Parameter(torch.tensor(1.0))
meta = torchopt.MetaSGD(net, lr=0.1)
meta.step((net(x) * factor).pow(2).sum())
net(x).pow(2).sum().backward()
print(factor.grad.item())
