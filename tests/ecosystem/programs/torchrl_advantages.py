"""torchrl: generalized advantages."""

import torch
from torchrl.objectives.value.functional import generalized_advantage_estimate

torch.manual_seed(0)
value, after, reward = (torch.randn(2, 5, 1) for _ in range(3))
done = torch.zeros(2, 5, 1, dtype=torch.bool)
advantage, target = generalized_advantage_estimate(0.9, 0.8, value, after, reward, done)
print(advantage.sum().item(), target.sum().item())
