"""The ops torchvision has compiled, in Python: hand-made values, and gradients beside finite differences.

They are compared with torchvision's own by a program of tests/ecosystem.
"""

import re
import sys

import numpy as np
import pytest

import pullback
from pullback.compat import op_spaces
from pullback.compat.vision import detection, images

detection.LIBRARY.load()
images.LIBRARY.load()
ops = pullback.ops.torchvision
ROIS = pullback.tensor([[0, 1.0, 1.0, 6.0, 6.0], [1, 0.25, 2.0, 5.0, 7.5], [0, -3.0, -2.0, 9.5, 3.0]]).double()


def near(call, *tensors, wanted):
    """Whether what an op says of its gradient is what small steps show: (weights * call(x)).sum()."""
    weights = pullback.randn(call(*tensors).shape, dtype=pullback.float64)
    for tensor, grad in zip(tensors, wanted(weights), strict=True):
        step = pullback.randn(tensor.shape, dtype=pullback.float64)
        moved = [[one + sign * 1e-6 * step if one is tensor else one for one in tensors] for sign in (1, -1)]
        slope = [(weights * call(*one)).sum().item() for one in moved]
        assert (slope[0] - slope[1]) / 2e-6 == pytest.approx((grad * step).sum().item(), rel=1e-4)


def test_the_best_of_boxes_that_overlap_is_kept():
    boxes = pullback.tensor([[0.0, 0, 4, 4], [0, 0, 4, 3], [10, 10, 12, 12], [0, 0, 4, 4]])
    scores = pullback.tensor([0.5, 0.9, 0.1, 0.9])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert ops.nms(boxes, scores, 0.8).tolist() == [1, 3, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    for wrong, text in (
        ((boxes[0], scores), "boxes should be a 2d tensor, got 1D"),
        ((boxes[:, :3], scores), "boxes should have 4 elements in dimension 1, got 3"),
        ((boxes, scores[:2]), "boxes and scores should have same number of elements in dimension 0, got 4 and 2"),
    ):
        with pytest.raises(RuntimeError, match=text):
            ops.nms(*wrong, 0.5)


def test_a_region_of_a_slope_is_the_slope():
    slope = pullback.arange(8.0).expand(1, 1, 8, 8)
    region = pullback.tensor([[0, 1.0, 1.0, 5.0, 5.0]])
    assert ops.roi_align(slope, region, 1.0, 2, 2, 2, False).tolist() == [[[[2.0, 4.0], [2.0, 4.0]]]]
    assert ops.roi_align(slope, region, 1.0, 2, 2, 2, True).tolist() == [[[[1.5, 3.5], [1.5, 3.5]]]]
    out, places = ops.roi_pool(slope, region, 1.0, 1, 2)
    assert out.tolist() == [[[[3.0, 5.0]]]] and places.tolist() == [[[[11, 13]]]] and places.dtype is pullback.int32
    out, channels = ops.ps_roi_pool(slope.expand(1, 4, 8, 8), region, 1.0, 2, 2)
    assert out.tolist() == [[[[1.5, 3.5], [1.5, 3.5]]]] and channels.tolist() == [[[[0, 1], [2, 3]]]]


@pytest.mark.parametrize("points", [2, -1])
@pytest.mark.parametrize("half", [True, False])
def test_gradients_of_aligned_regions(points, half):
    x = pullback.randn(2, 4, 8, 9, dtype=pullback.float64)
    sizes = (0.8, 2, 2)
    near(
        lambda x: ops.roi_align(x, ROIS, *sizes, points, half),
        x,
        wanted=lambda g: [ops._roi_align_backward(g, ROIS, *sizes, *x.shape, points, half)],
    )
    near(
        lambda x: ops.ps_roi_align(x, ROIS, *sizes, points)[0],
        x,
        wanted=lambda g: [ops._ps_roi_align_backward(g, ROIS, ROIS, *sizes, points, *x.shape)],
    )


def test_gradients_of_pooled_regions():
    x = pullback.randn(2, 4, 8, 9, dtype=pullback.float64)
    sizes = (0.8, 2, 2)
    _, places = ops.roi_pool(x, ROIS, *sizes)
    near(
        lambda x: ops.roi_pool(x, ROIS, *sizes)[0],
        x,
        wanted=lambda g: [ops._roi_pool_backward(g, ROIS, places, *sizes, *x.shape)],
    )
    _, channels = ops.ps_roi_pool(x, ROIS, *sizes)
    near(
        lambda x: ops.ps_roi_pool(x, ROIS, *sizes)[0],
        x,
        wanted=lambda g: [ops._ps_roi_pool_backward(g, ROIS, channels, *sizes, *x.shape)],
    )


@pytest.mark.parametrize("use_mask", [True, False])
def test_a_deformed_convolution_that_is_not_deformed_is_a_convolution_and_its_gradients_are_right(use_mask):
    numbers = (2, 1, 1, 2, 1, 1, 2, 2, use_mask)  # strides, paddings, dilations, groups
    x, weight, bias = (pullback.randn(*s, dtype=pullback.float64) for s in ((2, 4, 7, 6), (6, 2, 3, 3), (6,)))
    shape = pullback.nn.functional.conv2d(x, weight, bias, (2, 1), (1, 2), groups=2).shape[2:]
    offset = pullback.zeros(2, 2 * 2 * 9, *shape, dtype=pullback.float64)
    mask = pullback.ones(2, 2 * 9, *shape, dtype=pullback.float64)
    plain = pullback.nn.functional.conv2d(x, weight, bias, (2, 1), (1, 2), groups=2)
    assert pullback.allclose(ops.deform_conv2d(x, weight, offset, mask, bias, *numbers), plain)
    offset = pullback.randn(offset.shape, dtype=pullback.float64)
    mask = pullback.rand(mask.shape, dtype=pullback.float64) if use_mask else mask[:0]

    def call(*tensors):
        tensors = tensors if use_mask else (*tensors[:3], mask, tensors[3])
        return ops.deform_conv2d(*tensors, *numbers)

    def wanted(g):
        grads = ops._deform_conv2d_backward(g, x, weight, offset, mask, bias, *numbers)
        return grads if use_mask else (*grads[:3], grads[4])

    near(call, *((x, weight, offset, mask, bias) if use_mask else (x, weight, offset, bias)), wanted=wanted)


def test_what_does_not_fit_is_said_in_torchvisions_words(tmp_path):
    x, rois = pullback.rand(1, 4, 5, 5), pullback.zeros(2, 5)
    weight, offset, mask, bias = (
        pullback.rand(2, 4, 3, 3),
        pullback.rand(1, 18, 3, 3),
        pullback.rand(1, 9, 3, 3),
        x[0, 0, 0],
    )
    numbers = (1, 1, 0, 0, 1, 1, 1, 1, True)
    data = pullback.zeros(3, dtype=pullback.uint8)
    for call, kind, text in (
        (
            lambda: ops.roi_align(x, rois[:, :4], 1.0, 2, 2, 1, True),
            RuntimeError,
            "rois must have shape as Tensor[K, 5]",
        ),
        (
            lambda: ops.roi_pool(x, rois.double(), 1.0, 2, 2),
            RuntimeError,
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
            "torch.FloatTensor does not equal torch.DoubleTensor (while checking arguments for roi_pool_forward_kernel",
        ),
        (
            lambda: ops.nms(rois[:, :4].half(), rois[:, 0].half(), 0.5),
            NotImplementedError,
            '"nms_kernel" not implemented',
        ),
        (
            lambda: ops.ps_roi_pool(x, rois, 1.0, 3, 2),
            RuntimeError,
            "input channels must be a multiple of pooling height * pooling width",
        ),
        (
            lambda: ops.deform_conv2d(x, weight, offset[:, :16], mask, bias, *numbers),
            RuntimeError,
            "offset.shape[1] is not valid: got: 16 expected: 18",
        ),
        (
            lambda: ops.deform_conv2d(x, weight, offset, mask[:, :, :2], bias, *numbers),
            RuntimeError,
            "mask output dims: (2, 3) - computed output dims: (3, 3)",
        ),
        (
            lambda: ops.deform_conv2d(x[0], weight, offset, mask, bias, *numbers),
            RuntimeError,
            "Expected input_c.ndimension() == 4 to be true",
        ),
        (
            lambda: pullback.ops.image.write_file(str(tmp_path / "x"), data[None]),
            RuntimeError,
            "Input data should be a 1-dimensional tensor",
        ),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()


def test_the_overlap_of_boxes_that_are_turned():
    one = pullback.tensor([[0.0, 0.0, 2.0, 2.0, 0.0], [1.0, 2.0, 3.0, 1.0, 30.0]])
    two = pullback.tensor(
        [
            [0.0, 0.0, 2.0, 2.0, 45.0],
            [1.0, 0.0, 2.0, 2.0, 0.0],
            [2.0, 0.0, 2.0, 2.0, 0.0],
            [0.0, 0.0, 2.0, 2.0, 90.0],
            [0.0, 0.0, 1.0, 1.0, 30.0],
            [1.0, 2.0, 3.0, 1.0, 210.0],
            [1.0, 2.0, 0.0, 1.0, 0.0],
            [1.5, 1.5, 2.0, 0.5, -77.0],
        ]
    )
    # As torchvision's own library computes them.
    want = [[2**-0.5, 1 / 3, 0, 1, 0.25, 0, 0, 0], [0, 0.0029696429, 0.0055557159, 0, 0, 1, 0, 0.150365993]]
    for dtype in (pullback.float32, pullback.float64):
        found = ops.box_iou_rotated(one.to(dtype), two.to(dtype))
        assert found.dtype is pullback.float32
        pullback.testing.assert_close(found, pullback.tensor(want), atol=1e-6, rtol=0)
    assert ops.box_iou_rotated(one[:0], two).shape == (0, 8)
    for call, kind, text in (
        (lambda: ops.box_iou_rotated(one.half(), two.half()), NotImplementedError, '"box_iou_rotated_cpu" not impl'),
        (lambda: ops.box_iou_rotated(one, two.double()), RuntimeError, "boxes1 and boxes2 must have the same dtype"),
        (lambda: ops.box_iou_rotated(one[:, :4], two), RuntimeError, "boxes1 should have shape (N, 5), got [2, 4]"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            call()


def test_what_has_no_replacement_says_so():
    with pytest.raises(NotImplementedError, match="is not available in pullback"):
        ops.qnms(ROIS, ROIS, 0.5)
    with pytest.raises(OSError, match="compiled for torch's C\\+\\+ interface"):
        op_spaces.load_library("/somewhere/other/_C.so")


def test_the_libraries_of_torchvision_are_replaced(tmp_path):
    for name in ("_C.so", "image.so", "_C.pyd"):
        op_spaces.load_library(str(tmp_path / "torchvision" / name))
        assert any(path.endswith(name) for path in op_spaces.loaded_libraries)
    assert pullback.ops.torchvision._cuda_version() == -1


def test_files_are_read_and_written_as_bytes(tmp_path):
    data = pullback.tensor([1, 2, 255], dtype=pullback.uint8)
    pullback.ops.image.write_file(str(tmp_path / "file"), data)
    assert pullback.ops.image.read_file(str(tmp_path / "file")).tolist() == [1, 2, 255]
    with pytest.raises(RuntimeError, match="No such file"):
        pullback.ops.image.read_file(str(tmp_path / "none"))


class FakeImage:
    """As much of Pillow as is asked for, where it is not installed."""

    mode, format = "RGB", "PNG"

    def __array__(self, dtype=None, copy=None):
        return np.arange(12, dtype=np.uint8).reshape(2, 2, 3)

    def convert(self, mode):
        return np.zeros((2, 2), np.uint8) if mode == "L" else self

    @staticmethod
    def open(file, formats):
        if not file.read().startswith(b"\1"):
            raise OSError("cannot identify image file")
        return FakeImage()


def test_pixels_come_channels_first_and_bytes_that_are_no_image_are_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", FakeImage)
    monkeypatch.setattr(FakeImage, "__spec__", None, raising=False)
    image = pullback.ops.image
    good = pullback.tensor([1, 2], dtype=pullback.uint8)
    assert image.decode_png(good, 0).tolist() == [[[0, 3], [6, 9]], [[1, 4], [7, 10]], [[2, 5], [8, 11]]]
    assert image.decode_image(good, 1).shape == (1, 2, 2)
    for data, text in ((good * 2, "cannot identify"), (good[:0], "non-empty"), (good.int(), "uint8")):
        with pytest.raises(RuntimeError, match=text):
            image.decode_jpeg(data, 0)
