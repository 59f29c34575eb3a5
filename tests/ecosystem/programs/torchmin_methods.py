"""pytorch-minimize: the methods of scipy.optimize, with derivatives by autograd and vmap."""

import torch
from torchmin import least_squares, minimize


def valley(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


start = torch.tensor([1.0, 8.0], dtype=torch.float64)
for method in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact"):
    found = minimize(valley, start, method=method)
    print(method, [round(number, 3) for number in found.x.tolist()], found.nit)
print(least_squares(lambda x: torch.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]), start).x.tolist())
