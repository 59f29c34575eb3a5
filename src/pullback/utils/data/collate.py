"""From a list of items to a batch."""

from __future__ import annotations

import collections.abc
import re
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor

NOT_DATA = re.compile(r"[SaUO]")
"""NumPy's kinds of strings and objects."""
MESSAGE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data: Any) -> Any:
    """Arrays as tensors, inside containers too; everything else as it is."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if NOT_DATA.search(data.dtype.str) else torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        converted = {key: default_convert(data[key]) for key in data}
        return rebuilt(kind, converted)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return rebuilt(kind, [default_convert(value) for value in data])
    return data


def rebuilt(kind: Any, content: Any) -> Any:
    """The content in a container of the kind it came in, where that kind takes it."""
    try:
        return kind(content)
    except TypeError:
        return content


def default_collate(batch: Any) -> Any:
    """Stack tensors, arrays and numbers; go into dicts, tuples and lists; leave strings as they are."""
    first = batch[0]
    kind = type(first)
    if isinstance(first, Tensor):
        return torch.stack(batch, 0)
    if isinstance(first, (np.ndarray, np.generic)):
        if isinstance(first, np.generic) and first.shape == ():
            return torch.as_tensor(np.asarray(batch))
        if NOT_DATA.search(first.dtype.str):
            raise TypeError(MESSAGE.format(first.dtype))
        return default_collate([torch.as_tensor(item) for item in batch])
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return rebuilt(kind, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(values) for values in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(values) for values in zip(*batch)]
        return columns if isinstance(first, tuple) else rebuilt(kind, columns)
    raise TypeError(MESSAGE.format(kind))
