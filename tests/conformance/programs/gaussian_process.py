"""A Gaussian process fitted by LBFGS: Cholesky factors, triangular solves, and a robust fit beside it."""

import math

import torch


def kernel(a, b, length, scale):
    return scale**2 * torch.exp(-0.5 * torch.cdist(a / length, b / length) ** 2)


torch.manual_seed(10)
x = torch.linspace(0, 4, 20, dtype=torch.float64)[:, None]
y = torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(20, dtype=torch.float64)
logs = torch.zeros(3, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([logs], lr=0.5, max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    length, scale, noise = logs.exp()
    K = kernel(x, x, length, scale) + (noise**2 + 1e-6) * torch.eye(20, dtype=torch.float64)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y[:, None], L)
    loss = 0.5 * (y @ alpha)[0] + L.diagonal().log().sum() + 10 * math.log(2 * math.pi)
    loss.backward()
    return loss


for step in range(6):
    print(step, optimizer.step(closure).item(), logs.detach().exp().tolist())
with torch.no_grad():
    length, scale, noise = logs.exp()
    L = torch.linalg.cholesky(kernel(x, x, length, scale) + noise**2 * torch.eye(20))
    new = torch.tensor([[0.5], [1.7], [5.0]], dtype=torch.float64)
    v = torch.linalg.solve_triangular(L, kernel(x, new, length, scale), upper=False)
    w = torch.linalg.solve_triangular(L, y[:, None], upper=False)
    print((v.T @ w)[:, 0].tolist(), (scale**2 - (v**2).sum(0)).tolist())
A = torch.cat([x, torch.ones_like(x)], 1)
print(torch.linalg.lstsq(A, y[:, None]).solution.flatten().tolist())
weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
for optimizer in (torch.optim.Rprop([weights], lr=0.05), torch.optim.ASGD([weights], lr=0.05)):
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.huber_loss(A @ weights, y, delta=0.2)
        loss.backward()
        optimizer.step()
    print(type(optimizer).__name__, loss.item(), weights.tolist())
