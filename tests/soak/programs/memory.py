"""Compute with ever larger tensors until there is no memory: memory.py SEED MEGABYTES."""

import random
import sys

import pullback as torch
from tests.soak.children import limit_memory

moment, limit = random.Random(int(sys.argv[1])), int(sys.argv[2]) * 2**20
weight = torch.ones(3, requires_grad=True)
(weight * 2).sum().backward()
CALLS = [
    lambda n: torch.ones(n).exp(),
    lambda n: torch.zeros(n) + torch.ones(n),
    lambda n: torch.rand(n).neg(),
    lambda n: torch.ones(n, requires_grad=True).mul(2).tanh().sum().backward(),
    lambda n: torch.ones(int(n**0.5), 1) @ torch.ones(1, int(n**0.5)),
    lambda n: torch.cat([torch.ones(n // 2)] * 4),
    lambda n: torch.nn.functional.softmax(torch.ones(n // 100 + 1, 100), 1),
    lambda n: torch.ones(n).double().cumsum(0),
    lambda n: torch.nn.Linear(int(n**0.5), int(n**0.5))(torch.ones(int(n**0.5))),
]
for call in CALLS:  # what is compiled, or imported, is so before memory runs out: neither could say so well
    for n in (2**10, 2**16, 2**16, 2**16, 2**23, 2**24):
        call(n)
torch.ones(100_000).exp(), torch.ones(1000).sum(), torch.is_grad_enabled(), torch.equal(weight, weight)
limit_memory(limit)
refused = 0
for _ in range(6):
    call, n = moment.choice(CALLS), 2**16
    before = weight.grad.clone()
    while n < 2**32:
        try:
            call(n)
        except RuntimeError as error:
            assert "can't allocate memory" in str(error), error
            refused += 1
            break
        n *= 4
    assert torch.is_grad_enabled() and torch.equal(weight.grad, before)
    assert torch.ones(1000).sum().item() == 1000 and torch.ones(100_000).exp().sum().item() > 271_000
print(refused)
