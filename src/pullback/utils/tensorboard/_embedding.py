"""The files of the embedding projector: points, their labels, and their images on one sheet."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from pullback._runtime.building import loaded
from pullback.utils.tensorboard._convert_np import make_np
from pullback.utils.tensorboard._utils import Array, make_grid


def write(path: str, content: bytes) -> None:
    """Write a file, wherever TensorBoard can write one."""
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)


def make_tsv(metadata: Any, save_path: str, metadata_header: Any = None) -> None:
    """The labels, one in a line; with a header several."""
    if metadata_header and len(metadata_header) != len(metadata[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    rows = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]] if metadata_header else map(str, metadata)
    write(f"{save_path}/metadata.tsv", ("\n".join(rows) + "\n").encode())


def make_sprite(label_img: Any, save_path: str) -> None:
    """The images as one, which is square."""
    sheet = make_grid(make_np(label_img), ncols=math.ceil(len(label_img) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((sheet.shape[1], sheet.shape[1], 3))
    square[: len(sheet)] = sheet
    file = io.BytesIO()
    loaded("PIL.Image").fromarray(np.uint8((square * 255).clip(0, 255))).save(file, format="PNG")
    write(f"{save_path}/sprite.png", file.getvalue())


def make_mat(matlist: Array, save_path: str) -> None:
    """The points, one in a line."""
    rows = ["\t".join([str(number.item()) for number in row]) + "\n" for row in matlist]
    write(f"{save_path}/tensors.tsv", "".join(rows).encode())


def get_embedding_info(metadata: Any, label_img: Any, subdir: str, global_step: int, tag: str) -> Any:
    """What the projector is told of these files."""
    info = EmbeddingInfo(tensor_name=f"{tag}:{str(global_step).zfill(5)}", tensor_path=f"{subdir}/tensors.tsv")
    if metadata is not None:
        info.metadata_path = f"{subdir}/metadata.tsv"
    if label_img is not None:
        info.sprite.image_path = f"{subdir}/sprite.png"
        info.sprite.single_image_dim.extend([label_img.size(3), label_img.size(2)])
    return info
