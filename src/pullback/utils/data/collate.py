"""From a list of items to a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor

NOT_DATA = re.compile(r"[SaUO]")
"""NumPy's kinds of strings and objects."""
MESSAGE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
UNSUPPORTED = (
    "Batches of {} tensors are not currently supported by the default collate_fn; please provide a custom collate_fn "
    "to handle them appropriately."
)
Rules = dict[type | tuple[type, ...], Callable[..., Any]]
"""By the type of an item, what makes a batch of such items: a function of the items and `collate_fn_map`."""


def default_convert(data: Any) -> Any:
    """Arrays as tensors, inside containers too; everything else as it is."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind is not np.str_:
        return data if kind is np.ndarray and NOT_DATA.search(data.dtype.str) else torch.as_tensor(data)
    if isinstance(data, Mapping):
        return filled(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return filled(data, [default_convert(value) for value in data])
    return data


def filled(container: Any, content: Any) -> Any:
    """The content in a container like this one, where its class allows that: a copy, which keeps what else is in it."""
    try:
        if isinstance(container, MutableMapping):
            out: Any = copy(container)
            out.update(content)
        elif isinstance(container, MutableSequence):
            out = copy(container)
            for place, value in enumerate(content):
                out[place] = value
        else:
            out = type(container)(content)
    except TypeError:
        return content
    return out


def collate(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """A batch of the items: by the rule for their type, or of its base class; else container by container."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        rule = collate_fn_map.get(kind)
        if rule is None:
            rule = next((rule for wanted, rule in collate_fn_map.items() if isinstance(first, wanted)), None)
        if rule is not None:
            return rule(batch, collate_fn_map=collate_fn_map)

    def column(values: Any) -> Any:
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return filled(first, {key: column([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(column(values) for values in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [column(values) for values in zip(*batch)]
        return columns if isinstance(first, tuple) else filled(first, columns)
    raise TypeError(MESSAGE.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Tensors, one upon the other."""
    first = batch[0]
    if first.is_nested or first.layout is not torch.strided:
        raise RuntimeError(UNSUPPORTED.format("nested" if first.is_nested else "sparse"))
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Arrays, as tensors."""
    if NOT_DATA.search(batch[0].dtype.str):
        raise TypeError(MESSAGE.format(batch[0].dtype))
    return collate([torch.as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Numbers of NumPy, in one vector."""
    return torch.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Numbers, in one vector of doubles."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Integers, in one vector."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Strings, as they are."""
    return batch


default_collate_fn_map: Rules = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` goes by; packages add the types of their own."""


def default_collate(batch: Any) -> Any:
    """Stack tensors, arrays and numbers; go into dicts, tuples and lists; leave strings as they are."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
