"""Images, boxes on them, and videos."""

from __future__ import annotations

import io
import tempfile
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from pullback._runtime.building import loaded
from pullback.utils.tensorboard._convert_np import make_np
from pullback.utils.tensorboard._parts import one
from pullback.utils.tensorboard._utils import Array, _prepare_video, convert_to_HWC


def _calc_scale_factor(tensor: Array) -> int:
    """What makes bytes of the elements: bytes are, others are from 0 to 1."""
    return 1 if tensor.dtype == np.uint8 else 255


def as_bytes(tensor: Array) -> Array:
    """The pixels as bytes."""
    return (tensor.astype(np.float32) * _calc_scale_factor(tensor)).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or a batch of them side by side, of bytes or of numbers from 0 to 1."""
    pixels = as_bytes(convert_to_HWC(make_np(tensor), dataformats))
    return one(tag, image=make_image(pixels, rescale=rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Any:
    """An image with boxes drawn on it."""
    pixels = as_bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    return one(tag, image=make_image(pixels, rescale=rescale, rois=make_np(tensor_boxes), labels=labels))


def draw_boxes(disp_image: Any, boxes: Array, labels: Any = None) -> Any:
    """Draw boxes, given as (left, top, right, bottom), with their labels."""
    draw, font = loaded("PIL.ImageDraw").Draw(disp_image), loaded("PIL.ImageFont").load_default()
    for place, (left, top, right, bottom) in enumerate(boxes[:, :4]):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        if labels is not None and labels[place]:
            x, y, x_end, y_end = font.getbbox(labels[place])
            width, height = x_end - x, y_end - y
            margin = np.ceil(0.05 * height)
            draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
            draw.text((left + margin, bottom - height - margin), labels[place], fill="black", font=font)
    return disp_image


def make_image(tensor: Array, rescale: float = 1, rois: Array | None = None, labels: Any = None) -> Any:
    """The message that holds an image as a PNG."""
    pillow = loaded("PIL.Image")
    height, width, channels = tensor.shape
    drawn = pillow.fromarray(tensor)
    if rois is not None:
        drawn = draw_boxes(drawn, rois, labels=labels)
    file = io.BytesIO()
    scaled = drawn.resize((int(width * rescale), int(height * rescale)), pillow.Resampling.LANCZOS)
    scaled.save(file, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Videos in the order NTCHW, side by side."""
    return one(tag, image=make_video(as_bytes(_prepare_video(make_np(tensor))), fps))


def make_video(tensor: Array, fps: float) -> Any:
    """The message that holds a video as a GIF; None, which is said, where moviepy or its editor is not installed."""
    try:
        loaded("moviepy")
    except ImportError:
        print("add_video needs package moviepy")
        return None
    try:
        editor = loaded("moviepy.editor")
    except ImportError:
        print(
            "moviepy is installed, but can't import moviepy.editor.",
            "Some packages could be missing [imageio, requests]",
        )
        return None
    _, height, width, channels = tensor.shape
    with tempfile.NamedTemporaryFile(suffix=".gif") as file:
        editor.ImageSequenceClip(list(tensor), fps=fps).write_gif(file.name, verbose=False, logger=None)
        file.seek(0)
        return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.read())
