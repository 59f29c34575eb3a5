"""timm: a small vision transformer and a small ResNet, trained for three steps."""

import timm
import timm.loss
import timm.optim
import torch

for name, options in {
    "vit_tiny_patch16_224": {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3},
    "resnet10t": {},
}.items():
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5, **options)
    x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    for _ in range(3):
        loss = timm.loss.LabelSmoothingCrossEntropy(0.1)(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, loss.item())
    model.eval()
    with torch.no_grad():
        print(name, sum(p.numel() for p in model.parameters()), model(x).abs().mean().item())
