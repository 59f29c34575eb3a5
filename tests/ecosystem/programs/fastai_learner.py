"""fastai: a learner with its own loader, optimizers and callbacks, and layers."""

import torch
from fastai.callback.all import GradientAccumulation, GradientClip
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.layers import ConvLayer, ResBlock, SelfAttention
from fastai.learner import Learner
from fastai.losses import MSELossFlat
from fastai.optimizer import SGD, Adam, Lamb, RAdam
from fastai.torch_core import set_seed

set_seed(0)
x = torch.randn(100, 4)
pairs = list(zip(x, x.sum(1, keepdim=True), strict=True))
for optimizer, callbacks in ((Adam, []), (SGD, [GradientClip(0.1)]), (RAdam, [GradientAccumulation(32)]), (Lamb, [])):
    set_seed(1)
    loaders = DataLoaders(DataLoader(pairs[:80], bs=16, shuffle=True), DataLoader(pairs[80:], bs=16, num_workers=0))
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    learner = Learner(loaders, net, loss_func=MSELossFlat(), opt_func=optimizer, cbs=callbacks)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
    print(optimizer.__name__, learner.recorder.values)
images = torch.randn(2, 8, 8, 8)
for layer in (ConvLayer(8, 16), ResBlock(1, 8, 16), SelfAttention(8)):
    print(type(layer).__name__, layer(images).sum().item())
