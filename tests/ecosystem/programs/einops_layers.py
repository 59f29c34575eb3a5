"""einops: rearrange, reduce, repeat, einsum, pack and its layers, with gradients."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
print(rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4).shape)
print(reduce(x, "b c (h 2) (w 2) -> b c h w", "max").sum().item())
print(repeat(x[0, 0], "h w -> (h 2) (w 3)").shape, einsum(x, x, "b c h w, b d h w -> b c d").sum().item())
packed, shapes = pack([x[0], x[0, 0]], "* h w")
print(packed.shape, [one.shape for one in unpack(packed, shapes, "* h w")])
net = torch.nn.Sequential(
    Reduce("b c (h 2) (w 2) -> b c h w", "mean"),
    Rearrange("b c h w -> b (h w) c"),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=3, d=5),
)
net(x).pow(2).sum().backward()
print(x.grad.abs().sum().item(), [p.grad.abs().sum().item() for p in net.parameters()])
