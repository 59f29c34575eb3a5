"""torchvision: its compiled ops with their gradients, image files, a detector and features of a traced model."""

import tempfile

import torch
import torchvision
from torchvision import io, ops
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms.v2 import functional

torch.manual_seed(0)
boxes = torch.rand(40, 4)
boxes[:, 2:] += boxes[:, :2]
scores = torch.rand(40)
print("nms", ops.nms(boxes, scores, 0.3).tolist(), ops.batched_nms(boxes, scores, torch.arange(40) % 3, 0.3).tolist())
print("boxes", ops.generalized_box_iou(boxes, boxes).sum().item(), ops.box_area(boxes).sum().item())

images = torch.rand(2, 8, 10, 12, requires_grad=True)
rois = torch.tensor(
    [[0, 1.0, 1.0, 6.0, 6.0], [1, 0.0, 2.0, 5.0, 7.5], [0, -3.0, -2.0, 14.5, 3.0], [1, 4.0, 4.0, 4.0, 4.0]]
)
calls = {
    "roi_align": lambda: ops.roi_align(images, rois, 3, 0.8, 2, True),
    "roi_align of all points": lambda: ops.roi_align(images, rois, (2, 4), 1.3),
    "roi_pool": lambda: ops.roi_pool(images, rois, (3, 2), 0.8),
    "ps_roi_align": lambda: ops.ps_roi_align(images, rois, 2, 0.8, 2),
    "ps_roi_pool": lambda: ops.ps_roi_pool(images, rois, 2, 0.8),
}
for name, call in calls.items():
    out = call()
    (grad,) = torch.autograd.grad(out.pow(2).sum(), images)
    print(name, tuple(out.shape), out.sum().item(), out[0].flatten()[:5].tolist(), grad.abs().sum().item())

weight = torch.randn(6, 4, 3, 3, requires_grad=True)
offset = torch.randn(2, 2 * 2 * 9, 5, 6, requires_grad=True)
mask = torch.rand(2, 2 * 9, 5, 6, requires_grad=True)
bias = torch.randn(6, requires_grad=True)
for used in (mask, None):
    out = ops.deform_conv2d(images, offset, weight, bias, stride=2, padding=1, mask=used)
    wanted = [images, offset, weight, bias] + ([] if used is None else [used])
    grads = torch.autograd.grad(out.pow(2).sum(), wanted)
    print("deform_conv2d", out.abs().sum().item(), [grad.abs().sum().item() for grad in grads])

picture = (torch.arange(3 * 16 * 16).reshape(3, 16, 16) * 7 % 256).to(torch.uint8)
with tempfile.TemporaryDirectory() as folder:
    io.write_png(picture, f"{folder}/picture.png")
    read = io.read_image(f"{folder}/picture.png")
    print("png", torch.equal(read, picture), io.read_image(f"{folder}/picture.png", io.ImageReadMode.RGB_ALPHA).shape)
    smooth = functional.gaussian_blur(picture, [5, 5])
    jpeg = io.decode_jpeg(io.encode_jpeg(smooth, quality=90))
    print("jpeg", jpeg.shape, (jpeg.float() - smooth.float()).abs().max().item() < 40)

torch.manual_seed(0)
detector = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=3, min_size=96, max_size=128
)
target = [{"boxes": torch.tensor([[8.0, 8.0, 40.0, 48.0]]), "labels": torch.tensor([1])}]
losses = detector([torch.rand(3, 64, 64)], target)
sum(losses.values()).backward()
print("detector", {name: loss.item() for name, loss in losses.items()})
features = create_feature_extractor(torchvision.models.resnet18(), {"layer1": "early", "layer3": "late"})
print("features", {name: (tuple(x.shape), x.mean().item()) for name, x in features(torch.rand(1, 3, 32, 32)).items()})
