"""captum: integrated gradients, saliency and occlusion of a small network."""

import torch
from captum.attr import IntegratedGradients, LayerConductance, Occlusion, Saliency

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x = torch.randn(2, 4, requires_grad=True)
found, delta = IntegratedGradients(net).attribute(x, target=1, return_convergence_delta=True)
print(found.tolist(), delta.tolist())
print(Saliency(net).attribute(x, target=0).tolist())
print(Occlusion(net).attribute(x, target=2, sliding_window_shapes=(1,)).tolist())
print(LayerConductance(net, net[1]).attribute(x, target=1).sum().item())
