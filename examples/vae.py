"""A variational autoencoder learns to draw digits."""

import support
import torch
from torch import nn
from torch.nn import functional as F

given = support.arguments(__doc__, steps=300, picture="vae.svg")
torch.manual_seed(0)
(images, _), _ = support.digits()
images = torch.from_numpy(images).flatten(1).to(given.device)


class VAE(nn.Module):
    """An image to the mean and variance of four numbers, and such numbers to an image."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 96), nn.Tanh(), nn.Linear(96, 64))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        drawn = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(drawn), mean, log_variance


model = VAE().to(given.device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.3f}"):
    x = images[torch.randint(0, len(images), (128,))]
    logits, mean, log_variance = model(x)
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum() / len(x)
    loss = reconstruction + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    drawn = torch.sigmoid(model.decoder(torch.randn(32, 4, device=given.device))).view(32, 8, 8)
print(f"loss: {losses[-1]:.2f}")
support.finish(
    given,
    losses,
    support.lines("VAE", ("training loss", losses)),
    support.images("digits it draws", drawn.cpu().numpy()),
)
