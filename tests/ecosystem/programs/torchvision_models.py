"""torchvision: transforms and two of its models, trained for two steps."""

import torch
import torchvision
from torchvision.transforms import v2

torch.manual_seed(0)
image = torch.randint(0, 256, (3, 40, 48), dtype=torch.uint8)
pipeline = v2.Compose(
    [
        v2.RandomCrop(32),
        v2.RandomHorizontalFlip(0.5),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25]),
    ]
)
batch = torch.stack([pipeline(image) for _ in range(4)])
print("transforms", batch.mean().item(), batch.std().item())
print("resize", v2.functional.resize(image.float(), [20, 24], antialias=True).mean().item())
print("box", torchvision.ops.box_iou(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 1, 3, 3]])).tolist())
for name in ("resnet18", "mobilenet_v3_small"):
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None, num_classes=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(model(batch), torch.arange(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, loss.item())
