"""torchmetrics: metrics of classification and regression, over several batches."""

import torch
import torchmetrics

torch.manual_seed(0)
metrics = torchmetrics.MetricCollection(
    [
        torchmetrics.Accuracy(task="multiclass", num_classes=5),
        torchmetrics.F1Score(task="multiclass", num_classes=5, average="macro"),
        torchmetrics.AUROC(task="multiclass", num_classes=5),
        torchmetrics.CalibrationError(task="multiclass", num_classes=5),
    ]
)
for _ in range(3):
    metrics.update(torch.randn(20, 5).softmax(-1), torch.randint(0, 5, (20,)))
for name, value in metrics.compute().items():
    print(name, value.item())
a, b = torch.randn(30), torch.randn(30)
print(torchmetrics.PearsonCorrCoef()(a, b).item(), torchmetrics.R2Score()(a, b).item())
print(torchmetrics.ConfusionMatrix(task="binary")(a.sigmoid(), (b > 0).int()).tolist())
print(torchmetrics.functional.pairwise_cosine_similarity(torch.randn(3, 4)).tolist())
