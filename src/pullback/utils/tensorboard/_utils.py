"""Figures, images and videos as arrays in the order that image files have."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._runtime.building import loaded

Array = np.ndarray[Any, Any]


def figure_to_image(figures: Any, close: bool = True) -> Array:
    """What matplotlib draws, as an image in the order CHW; of a list, as a batch of them."""
    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    canvas = loaded("matplotlib.backends.backend_agg").FigureCanvasAgg(figures)
    canvas.draw()
    width, height = figures.canvas.get_width_height()
    pixels = np.frombuffer(canvas.buffer_rgba(), dtype=np.uint8).reshape(height, width, 4)
    if close:
        loaded("matplotlib.pyplot").close(figures)
    return np.moveaxis(pixels[:, :, :3], 2, 0)


def _prepare_video(V: Array) -> Array:
    """Videos in the order NTCHW side by side as one, in the order THWC: as many rows as fit a power of two."""
    batch, time, channels, height, width = V.shape
    if V.dtype == np.uint8:
        V = V.astype(np.float32) / 255.0
    if batch & (batch - 1):
        missing = 2 ** batch.bit_length() - batch
        V = np.concatenate((V, np.zeros((missing, time, channels, height, width))))
    rows = 2 ** ((batch.bit_length() - 1) // 2)
    columns = len(V) // rows
    grid = V.reshape(rows, columns, time, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(time, rows * height, columns * width, channels)


def make_grid(I: Array, ncols: int = 8) -> Array:
    """Images in the order NCHW side by side as one, in rows of `ncols`; gray ones in color."""
    if not isinstance(I, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if I.shape[1] == 1:
        I = np.concatenate([I, I, I], 1)
    if I.ndim != 4 or I.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = I.shape
    columns = min(count, ncols)
    canvas = np.zeros((3, height * -(-count // columns), width * columns), I.dtype)
    for place, image in enumerate(I):
        top, left = place // columns * height, place % columns * width
        canvas[:, top : top + height, left : left + width] = image
    return canvas


def convert_to_HWC(tensor: Array, input_format: str) -> Any:
    """An image or a batch of images, whose dimensions are named, as one in the order HWC; gray ones in color."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            "You can not use the same dimension shorthand twice.             " + f"input_format: {input_format}"
        )
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different.         "
            f"tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    named = input_format.upper()
    if len(named) == 4:
        return make_grid(tensor.transpose([named.find(name) for name in "NCHW"])).transpose(1, 2, 0)
    if len(named) == 3:
        image = tensor.transpose([named.find(name) for name in "HWC"])
        return np.concatenate([image, image, image], 2) if image.shape[2] == 1 else image
    if len(named) == 2:
        image = tensor.transpose([named.find(name) for name in "HW"])
        return np.stack([image, image, image], 2)
    return None
