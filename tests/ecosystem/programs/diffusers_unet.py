"""diffusers: a tiny UNet, a step of training and a few steps of sampling."""

import torch
from diffusers import DDIMScheduler, UNet2DModel

torch.manual_seed(0)
model = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
schedule = DDIMScheduler(num_train_timesteps=20)
image, noise, steps = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.tensor([3, 15])
loss = torch.nn.functional.mse_loss(model(schedule.add_noise(image, noise, steps), steps).sample, noise)
loss.backward()
print(loss.item(), sum(p.grad.abs().sum().item() for p in model.parameters()))
schedule.set_timesteps(3)
with torch.no_grad():
    for t in schedule.timesteps:
        image = schedule.step(model(image, t).sample, t, image).prev_sample
print(image.abs().mean().item())
