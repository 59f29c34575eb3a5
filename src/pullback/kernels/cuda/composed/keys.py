"""`array[key]` with arrays in the key, `array[key] = value`, `np.add.at` and their kin, by kernels that look up."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.index import are_numbers, each, index_put_into, put
from pullback.kernels.cuda.index import index as selected_by
from pullback.kernels.cuda.native import copied
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.cuda.recording import lasts

BOOL = np.dtype(np.bool_)


def numbers_there(part: Any, place: Any) -> Any:
    """Numbers of the host on the device: those that nobody can change are brought there once."""
    if type(part) is DeviceArray:
        return part
    host = np.asarray(part)
    if host.flags.writeable:
        return upload(host, place)
    key = (id(host), place, required())
    if key not in brought:
        if len(brought) >= BROUGHT:
            brought.clear()
        brought[key] = (host, lasts(upload(host, place)))
    return brought[key][1]


brought: dict[Any, tuple[Any, Any]] = {}
BROUGHT = 64


def number_there(value: Any, array: Any) -> Any:
    """What is to be written to an array: one of the device, or a number brought there; None for arrays of the host."""
    if type(value) is DeviceArray:
        return value
    host = np.asarray(value)
    return None if host.ndim else upload(host.astype(array.dtype), array.device)


def keyed(array: Any, key: Any) -> tuple[Any, list[Any]] | None:
    """A view of an array, and the numbers or masks that select from its dimensions; None for other keys."""
    parts = list(key) if type(key) is tuple else [key]
    if any([part is None or type(part) is bool or isinstance(part, (int, np.integer, np.bool_)) for part in parts]):
        return None
    wide = [part.ndim if getattr(part, "dtype", None) == BOOL else 1 for part in parts]
    if sum([part is Ellipsis for part in parts]) > 1:
        return None
    if Ellipsis in [part if part is Ellipsis else None for part in parts]:
        at = next(k for k, part in enumerate(parts) if part is Ellipsis)
        rest = array.ndim - sum(wide) + 1
        parts[at : at + 1] = [slice(None)] * rest
        wide[at : at + 1] = [1] * rest
    if sum(wide) > array.ndim:
        return None
    plain: list[Any] = []
    for part, many in zip(parts, wide, strict=True):
        plain += [part] if isinstance(part, slice) else [slice(None)] * many
    indices: list[Any] = []
    for part in parts:
        found = None if isinstance(part, slice) else numbers_there(part, array.device)
        if found is not None and (found.dtype.kind not in "iub" or not found.size):
            return None
        indices.append(found)
    return array[tuple(plain)], indices


def look_up(array: Any, key: Any) -> Any:
    """array[key], for a key with arrays in it; None if no kernel can."""
    found = keyed(array, key)
    if found is None:
        return None
    view, indices = found
    return selected_by(contiguous(view), indices)


def write_to(array: Any, key: Any, value: Any) -> bool:
    """array[key] = value; False if no kernel can."""
    found = keyed(array, key)
    if found is None:
        return False
    given = number_there(value, array)
    if given is not None and given.dtype != array.dtype:
        given = copied(given, array.dtype)
    return given is not None and bool(index_put_into(found[0], found[1], given))


JOINING = {"add": "add", "multiply": "prod", "maximum": "max", "minimum": "min"}


def join_at(name: str, array: Any, key: Any, value: Any) -> bool:
    """np.add.at and its kin; False if no kernel can."""
    how, found = JOINING.get(name), keyed(array, key)
    if how is None or found is None:
        return False
    given = number_there(value, array)
    if given is None or given.dtype != array.dtype:
        return False
    return bool(index_put_into(found[0], found[1], given, True, how))


def written(name: str, args: Any, kwargs: Any) -> bool:
    """np.putmask and np.put_along_axis, which write to their first argument; False if no kernel can."""
    array = args[0]
    if name == "put_along_axis" and [*kwargs] == ["axis"]:
        args, kwargs = (*args, kwargs["axis"]), {}
    if kwargs or type(array) is not DeviceArray:
        return False
    if name == "putmask" and np.ndim(args[2]) == 0 and type(args[1]) is DeviceArray:
        value = args[2] if type(args[2]) is DeviceArray else np.asarray(args[2]).astype(array.dtype)
        return pointwise(chosen, (array, args[1], value), {}, array) is not None
    if name == "put_along_axis" and len(args) == 4 and type(args[2]) is DeviceArray and args[2].dtype == array.dtype:
        _, at, values, axis = args
        how = each(array, axis, at) if are_numbers(at) else None
        return how is not None and put(array, np.broadcast_to(values, at.shape), *how, False)
    return False


def chosen(array: Any, mask: Any, value: Any) -> Any:
    """A value where a mask holds."""
    return np.where(mask, value.astype(array.dtype), array)
