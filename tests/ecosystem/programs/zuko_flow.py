"""zuko: a neural spline flow that is trained, and samples from it."""

import torch
import zuko

torch.manual_seed(0)
flow = zuko.flows.NSF(3, 2, transforms=2, hidden_features=(16, 16))
optimizer = torch.optim.Adam(flow.parameters(), 1e-3)
x, context = torch.randn(64, 3), torch.randn(64, 2)
for _ in range(4):
    loss = -flow(context).log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(flow(context[0]).sample((2,)).tolist())
