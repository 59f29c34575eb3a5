"""higher: gradients through the steps of an optimizer."""

import higher
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
with higher.innerloop_ctx(net, torch.optim.SGD(net.parameters(), lr=0.1), copy_initial_weights=False) as (inner, steps):
    for _ in range(3):
        steps.step(torch.nn.functional.mse_loss(inner(x), y))
    loss = torch.nn.functional.mse_loss(inner(x), y)
    loss.backward()
print(loss.item(), net.weight.grad.tolist())
