"""Numbers, histograms, texts, curves, sounds and meshes as the messages that event files hold."""

from __future__ import annotations

import io
import json
import struct
import wave
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins.custom_scalar import layout_pb2 as charts
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

import pullback as torch
from pullback import Tensor
from pullback.utils.tensorboard._convert_np import make_np
from pullback.utils.tensorboard._parts import one, shape
from pullback.utils.tensorboard._utils import Array
from pullback.utils.tensorboard.hyperparameters import hparams as hparams
from pullback.utils.tensorboard.pictures import draw_boxes as draw_boxes
from pullback.utils.tensorboard.pictures import image as image
from pullback.utils.tensorboard.pictures import image_boxes as image_boxes
from pullback.utils.tensorboard.pictures import make_image as make_image
from pullback.utils.tensorboard.pictures import make_video as make_video
from pullback.utils.tensorboard.pictures import video as video

# ------------------------------------------------------------------ numbers


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """One number; `new_style` stores it as a tensor."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions).             "
            f"Was given size: {array.size} and {array.ndim} dimensions."
        )
    number = float(array)
    if not new_style:
        return one(name, simple_value=number)
    kept = {"double_val": [number], "dtype": "DT_DOUBLE"} if double_precision else None
    return one(name, "scalars", tensor=TensorProto(**(kept or {"float_val": [number], "dtype": "DT_FLOAT"})))


def half_to_int(f: float) -> int:
    """The bits of a number in single precision, as an integer."""
    return struct.unpack("i", struct.pack("f", f))[0]  # type: ignore[no-any-return]


def int_to_half(i: int) -> float:
    """The number whose bits an integer has."""
    return struct.unpack("f", struct.pack("i", i))[0]  # type: ignore[no-any-return]


def elements(tensor: Tensor) -> list[Any]:
    """The elements in a row; of complex numbers the parts, of half precision the bits."""
    if tensor.is_complex():
        return torch.view_as_real(tensor).flatten().tolist()  # type: ignore[no-any-return]
    row = tensor.flatten().tolist()
    return [half_to_int(x) for x in row] if tensor.dtype in (torch.float16, torch.bfloat16) else row


FIELDS = {
    torch.float16: ("DT_HALF", "half_val"),
    torch.bfloat16: ("DT_BFLOAT16", "half_val"),
    torch.float32: ("DT_FLOAT", "float_val"),
    torch.float64: ("DT_DOUBLE", "double_val"),
    torch.int8: ("DT_INT8", "int_val"),
    torch.uint8: ("DT_UINT8", "uint32_val"),
    torch.int16: ("DT_INT16", "int_val"),
    torch.int32: ("DT_INT32", "int_val"),
    torch.int64: ("DT_INT64", "int64_val"),
    torch.bool: ("DT_BOOL", "bool_val"),
    torch.complex64: ("DT_COMPLEX64", "scomplex_val"),
    torch.complex128: ("DT_COMPLEX128", "dcomplex_val"),
}
"""How a dtype is called in files, and where its elements are kept."""


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """A whole tensor."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field = FIELDS[tensor.dtype]
    kept = TensorProto(**{"dtype": dtype, "tensor_shape": shape(tensor.shape), field: elements(tensor)})
    return one(tag, "tensor", tensor=kept)


# ------------------------------------------------------------------ histograms


def histogram_raw(
    name: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Any,
    bucket_counts: Any,
) -> Any:  # fmt: skip
    """A histogram from its numbers: how many values lie below each limit and above the one before."""
    made = HistogramProto(num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts)
    made.min, made.max = min, max
    return one(name, histo=made)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values in the bins that np.histogram makes."""
    return one(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: Array, bins: Any, max_bins: int | None = None) -> Any:
    """The message that holds a histogram: the bins with values and those between them, with an empty one before."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = joined(counts, limits, len(counts) // max_bins)
    full = np.flatnonzero(counts > 0)
    # Where no bin has a value, the empty one before the first is the second, as in torch.
    start, end = (int(full[0]), int(full[-1]) + 1) if len(full) else (len(counts), 1)
    counts = counts[start - 1 : end] if start > 0 else np.concatenate([[0], counts[:end]])
    limits = limits[start : end + 1]
    if counts.size == 0 or limits.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    made = HistogramProto(num=len(values), sum=values.sum(), sum_squares=values.dot(values))
    made.min, made.max = values.min(), values.max()
    made.bucket_limit.extend(limits.tolist())
    made.bucket.extend(counts.tolist())
    return made


def joined(counts: Array, limits: Array, several: int) -> tuple[Array, Array]:
    """Several bins as one; the last may be made of fewer."""
    rest = len(counts) % several
    if rest:
        counts = np.pad(counts, (0, several - rest))
    counts = counts.reshape(-1, several).sum(axis=-1)
    return counts, np.append(limits[:-1:several], limits[-1])


# ------------------------------------------------------------------ texts and charts


def text(tag: str, text: str) -> Any:
    """A text, which is shown as Markdown."""
    kept = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape([1]))
    return one(f"{tag}/text_summary", "text", TextPluginData(version=0).SerializeToString(), tensor=kept)


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """How scalars are shown together: {category: {title: ["Multiline", tags] or ["Margin", three tags]}}."""
    categories = [
        charts.Category(title=category, chart=[chart(title, *said[:2]) for title, said in row.items()])
        for category, row in layout.items()
    ]
    kept = charts.Layout(category=categories).SerializeToString()
    kept = TensorProto(dtype="DT_STRING", string_val=[kept], tensor_shape=shape([]))
    return one("custom_scalars__config__", "custom_scalars", tensor=kept)


def chart(title: str, kind: str, tags: list[str]) -> Any:
    """One chart: lines, or a line between two that limit it."""
    if kind != "Margin":
        return charts.Chart(title=title, multiline=charts.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError("len(tags) != 3")
    series = charts.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return charts.Chart(title=title, margin=charts.MarginChartContent(series=[series]))


# ------------------------------------------------------------------ precision and recall


def pr_curve_raw(
    tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
    weights: Any = None,
) -> Any:  # fmt: skip
    """A curve of precision and recall from its numbers, one for each threshold."""
    data = np.stack((tp, fp, tn, fn, precision, recall))
    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
    kept = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=shape(data.shape[:2]))
    return one(tag, "pr_curves", content, tensor=kept)


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """A curve of precision and recall of predictions from 0 to 1."""
    num_thresholds = min(num_thresholds, 127)
    curve = compute_curve(labels, predictions, num_thresholds=num_thresholds, weights=weights)
    tp, fp, tn, fn, precision, recall = curve
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds)


def compute_curve(labels: Any, predictions: Any, num_thresholds: Any = None, weights: Any = None) -> Array:
    """True and false positives, true and false negatives, precision and recall at each threshold."""
    weights, few = 1.0 if weights is None else weights, 1e-7
    places = np.int32(np.floor(predictions * (num_thresholds - 1)))
    true = labels.astype(np.float64)

    def at_least(counted: Any) -> Array:
        bins: Any = dict(bins=num_thresholds, range=(0, num_thresholds - 1), weights=counted)
        return np.cumsum(np.histogram(places, **bins)[0][::-1])[::-1]

    tp, fp = at_least(true * weights), at_least((1.0 - true) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision, recall = tp / np.maximum(few, tp + fp), tp / np.maximum(few, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


# ------------------------------------------------------------------ sounds and meshes


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound of one channel, of numbers from -1 to 1."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples, file = (array * np.iinfo(np.int16).max).astype("<i2"), io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes(samples.tobytes())
    facts = dict(sample_rate=sample_rate, num_channels=1, length_frames=len(samples), content_type="audio/wav")
    return one(tag, audio=Summary.Audio(**facts, encoded_audio_string=file.getvalue()))


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: Any = None,
    description: Any = None,
) -> Any:  # fmt: skip
    """A mesh or a cloud of points: vertices, their colors, and the faces that indices of vertices make."""
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    given = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    parts = [(torch.as_tensor(part), kind) for part, kind in given if part is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    values = []
    for part, kind in parts:
        kept = TensorProto(
            dtype="DT_FLOAT", float_val=part.reshape(-1).tolist(), tensor_shape=shape([part.shape[i] for i in range(3)])
        )
        said = (tag, display_name, kind, components, part.shape, description)
        metadata = mesh_metadata.create_summary_metadata(*said, json_config=config)
        name = mesh_metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=kept, metadata=metadata))
    return Summary(value=values)
