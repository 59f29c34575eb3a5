"""A program with mistakes: each line that says so must be found by a type checker, and no other."""

import pullback as torch
from pullback import nn, optim

x = torch.ones(2, 3)
torch.sigmiod(x)  # wrong
x.relluh()  # wrong
nn.Liner(2, 3)  # wrong
nn.Linear("2", 3)  # wrong
optim.Addam([x])  # wrong
x.reshape(3, 2).backwards()  # wrong
torch.autograd.gard(x, x)  # wrong
nn.Linear(2, 3)(x).itme()  # wrong
print(nn.Linear(2, 3).in_features + 1)
