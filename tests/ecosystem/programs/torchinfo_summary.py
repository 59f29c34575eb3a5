"""torchinfo: the summary of a small convolutional network."""

import torch
from torchinfo import summary

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
)
print(summary(net, (2, 3, 16, 16), verbose=0))
