"""kornia: filters, colours, geometry and an augmentation, with gradients."""

import kornia
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 16, 16, requires_grad=True)
out = kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5))
print(out.mean().item(), kornia.filters.sobel(x).mean().item(), kornia.color.rgb_to_hsv(x).mean().item())
turned = kornia.geometry.transform.rotate(x, torch.tensor([30.0, -10.0]))
turned.pow(2).sum().backward()
print(turned.mean().item(), x.grad.abs().sum().item())
print(kornia.losses.ssim_loss(x, out, 5).item())
print(kornia.augmentation.RandomHorizontalFlip(p=1.0)(x).sum().item())
