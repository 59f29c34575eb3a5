"""What summaries are made of: values with their plugin, and tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto


def one(tag: str, plugin: str | None = None, content: bytes = b"", **value: Any) -> Any:
    """A summary of one value; the plugin says how it is shown."""
    if plugin is not None:
        data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        value["metadata"] = SummaryMetadata(plugin_data=data)
    return Summary(value=[Summary.Value(tag=tag, **value)])


def shape(sizes: Iterable[int]) -> Any:
    """The shape of a tensor."""
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])
