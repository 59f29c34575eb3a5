"""botorch: a Gaussian process and the expected improvement it sees."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
x = torch.rand(8, 2, dtype=torch.float64)
y = (x * 3).sin().sum(-1, keepdim=True)
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
value = LogExpectedImprovement(model, best_f=y.max())(torch.tensor([[[0.4, 0.6]]], dtype=torch.float64))
print(value.item(), model.posterior(x[:2]).mean.tolist())
