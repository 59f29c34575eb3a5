"""An LSTM learns to continue a wave."""

import math

import support
import torch
from torch import nn

given = support.arguments(__doc__, steps=150, picture="lstm.svg")
torch.manual_seed(0)
time = torch.linspace(0, 12 * math.pi, 240, device=given.device)
wave = torch.sin(time) * (1 + 0.5 * torch.sin(0.3 * time))


class Forecast(nn.Module):
    """One LSTM layer and a number for each moment."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x, state=None):
        y, state = self.lstm(x, state)
        return self.out(y), state


model = Forecast().to(given.device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
windows = wave.unfold(0, 41, 10)[..., None]
losses = []
for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.5f}"):
    guess, _ = model(windows[:, :-1])
    loss = nn.functional.mse_loss(guess, windows[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    seen = wave[:120]
    guess, state = model(seen[None, :, None])
    continued = [guess[0, -1, 0].item()]
    for _ in range(119):
        guess, state = model(torch.tensor([[[continued[-1]]]], device=given.device), state)
        continued.append(guess[0, -1, 0].item())
print(f"error of the continuation: {(torch.tensor(continued) - wave[120:].cpu()).abs().mean().item():.3f}")
support.finish(
    given,
    losses,
    support.lines("LSTM", ("training loss", losses), log=True),
    support.lines(
        "the wave", ("truth", wave.tolist()), ("continued", list(enumerate(continued, start=120))), y="height"
    ),
)
