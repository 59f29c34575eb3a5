"""A small convolutional network, as far as one is asked for: `python startup_program.py MODULE STAGE`.

Run as a process of its own by startup.py, which looks at the clock from outside: nothing else may be imported here.
"""

import importlib
import sys

torch = importlib.import_module(sys.argv[1])
stage = sys.argv[2]
_ = torch.Tensor
if stage == "import":
    sys.exit()
nn = torch.nn
torch.manual_seed(0)
if stage == "layer":
    nn.Linear(8, 4)(torch.randn(2, 8))
    sys.exit()
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.GELU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.GELU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.LayerNorm(16 * 7 * 7),
    nn.Dropout(0.1),
    nn.Linear(16 * 7 * 7, 10),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loss_of = nn.CrossEntropyLoss()
images, labels = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))
for _ in range(20 if stage == "script" else 1):
    loss = loss_of(net(images), labels)
    loss.backward()
    if stage == "backward":
        sys.exit()
    optimizer.step()
    optimizer.zero_grad()
