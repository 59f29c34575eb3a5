"""The ops of torchvision's library `image`: files and images, read and written by Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from pullback import Tensor, from_numpy, uint8
from pullback._runtime.building import loaded
from pullback.compat.vision.replaced import Replaced

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
"""The modes of Pillow by the numbers of torchvision's ImageReadMode; 0 leaves an image as it is."""
AS_IT_IS = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB", "I;16B": "I;16"}
"""What has no tensor of its own in torchvision, and what it is read as."""
LIBRARY = Replaced("image", "CompositeExplicitAutograd")
op = LIBRARY.op


def opened(data: Tensor, *kinds: str) -> Any:
    """The image that bytes hold; of these kinds only."""
    if data.dtype is not uint8:
        raise RuntimeError(f"Input tensor must have uint8 data type, got {str(data.dtype).removeprefix('torch.')}")
    if data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"Input tensor must be 1-dimensional and non-empty, got {data.dim()} dims  and {data.numel()} numels."
        )
    try:
        return loaded("PIL.Image").open(io.BytesIO(data.numpy().tobytes()), formats=kinds or None)
    except OSError as error:
        raise RuntimeError(f"the bytes are no image that can be read: {error}") from None


def decoded(image: Any, mode: int, turned: bool) -> Tensor:
    """The pixels, channels first."""
    wanted = MODES.get(mode) or AS_IT_IS.get(image.mode, image.mode)
    if wanted == "L" and image.format == "JPEG":
        image.draft("L", None)  # the brightness as the file has it, not computed from colours
    try:
        if turned:
            image = loaded("PIL.ImageOps").exif_transpose(image)
        pixels = np.array(image if image.mode == wanted else image.convert(wanted))
    except OSError as error:
        raise RuntimeError(f"the image cannot be read: {error}") from None
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def encoded(data: Tensor, kind: str, **options: Any) -> Tensor:
    """The bytes of a file."""
    if data.dtype is not uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 3 or data.size(0) not in (1, 3):
        raise RuntimeError(
            "Input data should be a 3-dimensional tensor"
            if data.dim() != 3
            else f"The number of channels should be 1 or 3, got: {data.size(0)}"
        )
    pixels = data.numpy()
    image = loaded("PIL.Image").fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0).copy())
    file = io.BytesIO()
    image.save(file, kind, **options)
    return from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


@op("read_file(str filename) -> Tensor")
def read_file(filename: str) -> Tensor:
    try:
        return from_numpy(np.frombuffer(Path(filename).read_bytes(), np.uint8).copy())
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{filename}'") from None


@op("write_file(str filename, Tensor data) -> ()")
def write_file(filename: str, data: Tensor) -> None:
    if data.dtype is not uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 1:
        raise RuntimeError("Input data should be a 1-dimensional tensor")
    try:
        Path(filename).write_bytes(data.numpy().tobytes())
    except OSError:
        raise RuntimeError("Error opening output file") from None


@op("decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor")
def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return decoded(opened(data, "PNG"), mode, apply_exif_orientation)


@op("decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor")
def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return decoded(opened(data, "JPEG"), mode, apply_exif_orientation)


@op("decode_webp(Tensor encoded_data, int mode) -> Tensor")
def decode_webp(data: Tensor, mode: int) -> Tensor:
    return decoded(opened(data, "WEBP"), mode, False)


@op("decode_gif(Tensor data) -> Tensor")
def decode_gif(data: Tensor) -> Tensor:
    image = opened(data, "GIF")
    frames = [np.array(frame.convert("RGB")) for frame in loaded("PIL.ImageSequence").Iterator(image)]
    pixels = np.stack(frames).transpose(0, 3, 1, 2)
    return from_numpy(np.ascontiguousarray(pixels if len(pixels) > 1 else pixels[0]))


@op("decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor")
def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = opened(data, "JPEG", "PNG", "GIF", "WEBP")
    return decode_gif(data) if image.format == "GIF" else decoded(image, mode, apply_exif_orientation)


@op("encode_png(Tensor data, int compression_level) -> Tensor")
def encode_png(data: Tensor, compression_level: int) -> Tensor:
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return encoded(data, "PNG", compress_level=compression_level)


@op("encode_jpeg(Tensor data, int quality) -> Tensor")
def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    return encoded(data, "JPEG", quality=quality)


@op("decode_jpegs_cuda(Tensor[] encoded_images, int mode, Device device) -> Tensor[]")
def decode_jpegs_cuda(*args: Any) -> Any:
    raise NotImplementedError("image::decode_jpegs_cuda is not available in pullback, which has no GPUs; use the CPU")


@op("encode_jpegs_cuda(Tensor[] decoded_images, int quality) -> Tensor[]")
def encode_jpegs_cuda(*args: Any) -> Any:
    raise NotImplementedError("image::encode_jpegs_cuda is not available in pullback, which has no GPUs; use the CPU")
