"""torchdiffeq: an ordinary differential equation whose right side is learned, with the adjoint method."""

import torch
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net

    def forward(self, t, y):
        return self.net(y)


y0, t = torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 5)
for solve, options in ((odeint, {}), (odeint_adjoint, {}), (odeint, {"method": "rk4"})):
    net.zero_grad()
    out = solve(Field(), y0, t, **options)
    out[-1].pow(2).sum().backward()
    print(out[-1].tolist(), [p.grad.abs().sum().item() for p in net.parameters()])
