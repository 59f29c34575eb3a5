"""A multilayer perceptron learns to read handwritten digits."""

import support
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

given = support.arguments(__doc__, steps=440, picture="digits_mlp.svg")
torch.manual_seed(0)
(images, labels), (test_images, test_labels) = support.digits()
data = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
model.to(given.device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def batches():
    loader = DataLoader(data, batch_size=64, shuffle=True)
    while True:
        yield from loader


losses = []
for _, (x, y) in zip(support.progress(given.steps, lambda: f"loss {losses[-1]:.4f}"), batches()):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.to(given.device)), y.to(given.device))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    guesses = model(torch.from_numpy(test_images).to(given.device)).argmax(1)
accuracy = (guesses.cpu() == torch.from_numpy(test_labels)).float().mean().item()
print(f"test accuracy: {accuracy:.1%}")
support.finish(given, losses, support.lines("digits, MLP", ("training loss", losses), log=True))
