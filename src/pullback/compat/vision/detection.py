"""The ops of torchvision's library `_C`: `torch.ops.torchvision.nms` and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import Tensor, float16, float32, float64, from_numpy
from pullback.compat.vision import deformed, regions, rotated
from pullback.compat.vision.replaced import Replaced

SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
MOVES = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
LIBRARY = Replaced("torchvision", "CPU")
op = LIBRARY.op


def array(tensor: Tensor) -> Any:
    """The elements, in a precision to compute in."""
    found = tensor.detach().numpy() if tensor.dtype.itemsize >= 4 else tensor.detach().float().numpy()
    return np.ascontiguousarray(found)


def like(tensor: Tensor, found: Any) -> Tensor:
    """A tensor of a result, in the dtype of an operand."""
    return from_numpy(np.ascontiguousarray(found)).to(tensor.dtype)


def check(holds: bool, message: str) -> None:
    """Raise as torchvision does."""
    if not holds:
        raise RuntimeError(message)


def check_regions(rois: Tensor, tensor: Tensor, name: str, kernel: str) -> None:
    """Regions are the number of an image and four coordinates, in the dtype of the images."""
    check(rois.dim() == 2 and rois.size(1) == 5, "rois must have shape as Tensor[K, 5]")
    check(
        tensor.dtype == rois.dtype,
        f"Expected tensor for argument #1 '{name}' to have the same type as tensor for argument #2 'rois'; but type "
        f"{tensor.type()} does not equal {rois.type()} (while checking arguments for {kernel}_kernel)",
    )
    check_dtype(tensor, f"{kernel}_kernel", (float32, float64, float16))


def check_dtype(tensor: Tensor, kernel: str, known: tuple[Any, ...]) -> None:
    """Only floats are computed with, and not all of them."""
    if tensor.dtype not in known:
        kind = tensor.type().removeprefix("torch.").removesuffix("Tensor")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")


@op("_cuda_version() -> int")
def _cuda_version() -> int:
    return -1


@op("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    check(dets.dim() == 2, f"boxes should be a 2d tensor, got {dets.dim()}D")
    check(dets.size(1) == 4, f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    check(scores.dim() == 1, f"scores should be a 1d tensor, got {scores.dim()}D")
    counts = dets.size(0), scores.size(0)
    check(
        counts[0] == counts[1],
        f"boxes and scores should have same number of elements in dimension 0, got {counts[0]} and {counts[1]}",
    )
    check(dets.dtype == scores.dtype, "dets should have the same type as scores")
    check_dtype(dets, "nms_kernel", (float32, float64))
    return from_numpy(regions.best_boxes(array(dets), array(scores), iou_threshold))


@op(f"roi_align(Tensor input, Tensor rois, {POOLED}, int sampling_ratio, bool aligned) -> Tensor")
def roi_align(images: Tensor, rois: Tensor, scale: float, height: int, width: int, points: int, half: bool) -> Tensor:
    check_regions(rois, images, "input", "roi_align_forward")
    return like(images, regions.aligned(array(images), array(rois), scale, (height, width), points, half))


@op(f"_roi_align_backward(Tensor grad, Tensor rois, {POOLED}, {SIZES}, int sampling_ratio, bool aligned) -> Tensor")
def _roi_align_backward(grad: Tensor, rois: Tensor, scale: float, _h: int, _w: int, *rest: Any) -> Tensor:
    *shape, points, half = rest
    check_regions(rois, grad, "grad", "roi_align_backward")
    return like(grad, regions.aligned_backward(array(grad), array(rois), scale, tuple(shape), points, half))


@op(f"roi_pool(Tensor input, Tensor rois, {POOLED}) -> (Tensor, Tensor)")
def roi_pool(images: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    check_regions(rois, images, "input", "roi_pool_forward")
    out, places = regions.largest(array(images), array(rois), scale, (height, width))
    return like(images, out), from_numpy(places)


@op(f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {POOLED}, {SIZES}) -> Tensor")
def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, _scale: float, _h: int, _w: int, *shape: int
) -> Tensor:
    check_regions(rois, grad, "grad", "roi_pool_backward")
    return like(grad, regions.largest_backward(array(grad), array(rois), argmax.numpy(), shape))


@op(f"ps_roi_align(Tensor input, Tensor rois, {POOLED}, int sampling_ratio) -> (Tensor, Tensor)")
def ps_roi_align(
    images: Tensor, rois: Tensor, scale: float, height: int, width: int, points: int
) -> tuple[Tensor, Tensor]:
    check_positions(images, rois, height, width, "ps_roi_align_forward")
    out, channels = regions.positioned(array(images), array(rois), scale, (height, width), points)
    return like(images, out), from_numpy(channels)


@op(
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {POOLED}, int sampling_ratio, {SIZES}) "
    "-> Tensor"
)
def _ps_roi_align_backward(
    grad: Tensor, rois: Tensor, _channels: Tensor, scale: float, _h: int, _w: int, points: int, *shape: int
) -> Tensor:
    check_regions(rois, grad, "grad", "ps_roi_align_backward")
    return like(grad, regions.positioned_backward(array(grad), array(rois), scale, shape, points))


@op(f"ps_roi_pool(Tensor input, Tensor rois, {POOLED}) -> (Tensor, Tensor)")
def ps_roi_pool(images: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    check_positions(images, rois, height, width, "ps_roi_pool_forward")
    out, channels = regions.averaged(array(images), array(rois), scale, (height, width))
    return like(images, out), from_numpy(channels)


@op(f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {POOLED}, {SIZES}) -> Tensor")
def _ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, channels: Tensor, scale: float, _h: int, _w: int, *shape: int
) -> Tensor:
    check_regions(rois, grad, "grad", "ps_roi_pool_backward")
    return like(grad, regions.averaged_backward(array(grad), array(rois), channels.numpy(), scale, shape))


def check_positions(images: Tensor, rois: Tensor, height: int, width: int, kernel: str) -> None:
    """Each place of a region has channels of its own."""
    check_regions(rois, images, "input", kernel)
    check(
        images.size(1) % (height * width) == 0,
        "input channels must be a multiple of pooling height * pooling width",
    )


TENSORS = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"


def numbers_of(given: tuple[Any, ...]) -> deformed.Numbers:
    """How a convolution moves, from the arguments behind its tensors."""
    return deformed.Numbers(given[0:2], given[2:4], given[4:6], given[6], given[7])


def expected(condition: str, holds: bool) -> None:
    """Raise as torch does where nobody has written a better text."""
    check(
        holds,
        f"Expected {condition} to be true, but got false.  (Could this error message be improved?  If so, please "
        "report an enhancement request to PyTorch.)",
    )


def check_convolution(
    images: Tensor, weight: Tensor, offset: Tensor, mask: Tensor | None, numbers: deformed.Numbers
) -> None:
    """The shapes fit."""
    for name, tensor in (("input", images), ("offset", offset), ("weight", weight)):
        expected(f"{name}_c.ndimension() == 4", tensor.dim() == 4)
    kernel, (batch, channels, *sizes) = (weight.size(2), weight.size(3)), images.shape
    expected("weight_c.size(1) * n_weight_grps == input_c.size(1)", weight.size(1) * numbers.groups == channels)
    expected("weight_c.size(0) % n_weight_grps == 0", weight.size(0) % numbers.groups == 0)
    outputs = []
    for size, points, stride, padding, dilation in zip(sizes, kernel, *numbers[:3], strict=True):
        for name, value, least in (("stride", stride, 1), ("pad", padding, 0), ("dilation", dilation, 1)):
            check(value >= least, f"{name} must be at least {least}, got {value}")
        outputs.append((size + 2 * padding - dilation * (points - 1) - 1) // stride + 1)
    given = [("offset", offset, 2)] + ([] if mask is None else [("mask", mask, 1)])
    for name, one, each in given:
        wanted, found = numbers.offset_groups * each * kernel[0] * kernel[1], one.size(1)
        check(found == wanted, f"{name}.shape[1] is not valid: got: {found} expected: {wanted}")
        check(one.size(0) == batch, f"invalid batch size of {name}")
        shapes = tuple(one.shape[2:]), tuple(outputs)
        check(shapes[0] == shapes[1], f"{name} output dims: {shapes[0]} - computed output dims: {shapes[1]}")


@op(f"deform_conv2d({TENSORS}, {MOVES}) -> Tensor")
def deform_conv2d(images: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *given: Any) -> Tensor:
    numbers = numbers_of(given)
    check_convolution(images, weight, offset, mask if given[8] else None, numbers)
    arrays = array(images), array(weight), array(offset), array(mask) if given[8] else None, array(bias)
    return like(images, deformed.convolved(*arrays, numbers))


@op(f"_deform_conv2d_backward(Tensor grad, {TENSORS}, {MOVES}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
def _deform_conv2d_backward(
    grad: Tensor, images: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *given: Any
) -> tuple[Tensor, ...]:
    arrays = array(grad), array(images), array(weight), array(offset), array(mask) if given[8] else None
    of_images, of_weight, of_offset, of_mask, of_bias = deformed.convolved_backward(*arrays, numbers_of(given))
    of_mask = np.zeros(mask.shape, np.float32) if of_mask is None else of_mask
    grads = (of_images, of_weight, of_offset, of_mask, of_bias)
    return tuple([like(a, b) for a, b in zip((images, weight, offset, mask, bias), grads, strict=True)])


QUANTISED = "float input_scale, int input_zero_point, float rois_scale, int rois_zero_point"


@op("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def qnms(*args: Any) -> Tensor:
    raise NotImplementedError("torchvision::qnms is not available in pullback: it has no quantised tensors; use nms")


@op(f"qroi_align(Tensor input, Tensor rois, {QUANTISED}, {POOLED}, int sampling_ratio, bool aligned) -> Tensor")
def qroi_align(*args: Any) -> Tensor:
    raise NotImplementedError(
        "torchvision::qroi_align is not available in pullback: it has no quantised tensors; use roi_align"
    )


@op("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor")
def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    for name, boxes in (("boxes1", boxes1), ("boxes2", boxes2)):
        check(boxes.dim() == 2 and boxes.size(1) == 5, f"{name} should have shape (N, 5), got {list(boxes.shape)}")
    check(boxes1.dtype == boxes2.dtype, "boxes1 and boxes2 must have the same dtype")
    check_dtype(boxes1, "box_iou_rotated_cpu", (float32, float64))
    return from_numpy(rotated.overlaps(*(array(boxes.double()) for boxes in (boxes1, boxes2))))
