"""Learning to learn with torch.func: functional_call, vmap over tasks, per-sample gradients, a Hessian."""

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, stack_module_state, vmap
from torch.func import replace_all_batch_norm_modules_ as without_statistics

torch.manual_seed(6)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
names = [name for name, _ in net.named_parameters()]


def task_loss(params, x, y):
    return nn.functional.mse_loss(functional_call(net, params, (x,)), y)


def adapted_loss(params, x, y, new_x, new_y):
    grads = grad(task_loss)(params, x, y)
    return task_loss({name: params[name] - 0.1 * grads[name] for name in params}, new_x, new_y)


optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(15):
    amplitude, phase = torch.rand(4, 1, 1) * 4 + 0.5, torch.rand(4, 1, 1) * 3
    x = torch.rand(4, 10, 1) * 10 - 5
    y = amplitude * torch.sin(x + phase)
    params = dict(net.named_parameters())
    losses = vmap(adapted_loss, in_dims=(None, 0, 0, 0, 0))(params, x[:, :5], y[:, :5], x[:, 5:], y[:, 5:])
    loss = losses.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())

params = {name: p.detach() for name, p in net.named_parameters()}
per_sample, values = vmap(grad_and_value(task_loss), in_dims=(None, 0, 0))(params, x[0, :, None], y[0, :, None])
print({name: g.flatten(1).norm(dim=1).mean().item() for name, g in per_sample.items()}, values.mean().item())
print(jacrev(lambda x: functional_call(net, params, (x,)))(x[0, :2]).diagonal(dim1=0, dim2=2).sum().item())
point = torch.tensor([0.3, -0.2])
print(hessian(lambda p: (p**4).sum() + p.prod())(point).tolist())
models = [nn.Linear(2, 3) for _ in range(3)]
stacked, buffers = stack_module_state(models)
call = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))
out = call(stacked, buffers, torch.ones(4, 2))
print(tuple(out.shape), out.sum().item())
normed = nn.Sequential(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))
without_statistics(normed)
own = {name: p.detach() for name, p in normed.named_parameters()}
each = vmap(grad(lambda p, x: functional_call(normed, p, (x,)).pow(2).mean()), in_dims=(None, 0))
grads = each(own, torch.randn(3, 4, 1, 6))
print([name for name, _ in normed.named_buffers()], grads["0.weight"].flatten(1).norm(dim=1).tolist())
