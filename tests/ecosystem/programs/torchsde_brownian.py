"""torchsde: a stochastic differential equation with a learned drift."""

import torch
import torchsde

torch.manual_seed(0)


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 2)

    def f(self, t, y):
        return self.net(y)

    def g(self, t, y):
        return 0.1 * y


equation = Equation()
noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(3, 2), entropy=1)
out = torchsde.sdeint(equation, torch.ones(3, 2), torch.linspace(0, 1, 3), bm=noise, dt=0.1, method="euler")
out[-1].sum().backward()
print(out[-1].tolist(), equation.net.weight.grad.tolist())
