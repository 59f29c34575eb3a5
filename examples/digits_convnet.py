"""A convolutional network learns to read handwritten digits."""

import support
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

given = support.arguments(__doc__, steps=275, picture="digits_convnet.svg")
torch.manual_seed(0)
(images, labels), (test_images, test_labels) = support.digits()
data = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
test_x, test_y = torch.from_numpy(test_images).to(given.device), torch.from_numpy(test_labels).to(given.device)


class Net(nn.Module):
    """Two convolutions, each with a norm; then two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.fc1(self.dropout(x.flatten(1))))
        return self.fc2(x)


model = Net().to(given.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(given.steps, 1))


def batches():
    loader = DataLoader(data, batch_size=64, shuffle=True)
    while True:
        yield from loader


def accuracy():
    model.eval()
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    model.train()
    return right


losses, scores = [], []
for step, (x, y) in zip(support.progress(given.steps, lambda: f"loss {losses[-1]:.4f}"), batches()):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.to(given.device)), y.to(given.device))
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    if step % 22 == 21 or step == given.steps - 1:
        scores.append((step, accuracy()))

print(f"test accuracy: {scores[-1][1]:.1%}")
support.finish(
    given,
    losses,
    support.lines("training loss", ("loss", losses), log=True),
    support.lines("test accuracy", ("accuracy", scores)),
)
