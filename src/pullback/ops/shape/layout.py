"""The order of elements in memory, and how much of it there is: contiguous, resize_."""

from __future__ import annotations

from math import prod
from typing import Any

from pullback._arrays.memory import resized
from pullback._arrays.sizes import LARGEST, check_ints, check_storage, in_torch_words
from pullback._lazy import stored
from pullback._op.define import function
from pullback._tensor import Tensor, bump_version, contiguous_format, preserve_format
from pullback.autograd.view import check_inplace, wants_grad
from pullback.ops.create.copy import clone
from pullback.ops.shape.reshape import ints


@function(raw=True, space=None)
def contiguous(self: Tensor, *, memory_format: Any = contiguous_format) -> Tensor:
    """Return the tensor itself if it is contiguous in memory, else a contiguous copy.

    `memory_format` chooses the order: row-major by default, or for example `channels_last` for images.
    """
    if memory_format is contiguous_format:
        if self._array.flags.c_contiguous and (type(self) is Tensor or self.is_contiguous()):
            return self
    elif self.is_contiguous(memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone(self, memory_format=memory_format)


@function(raw=True, space=None)
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Change the shape of this tensor in place, with a new number of elements if need be.

    The memory is kept where it is large enough and grows otherwise; elements beyond the old ones are uninitialised.
    Not differentiable: use `reshape` or `view` to look at the same elements in another shape.
    """
    if wants_grad(self):
        raise RuntimeError("cannot resize variables that require grad")
    shape = ints("resize_", "size", sizes if size is None else (size,))
    check_ints("resize_", {"size": shape})
    if min(shape, default=0) < 0 or prod(shape) > LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")
    check_storage(shape, self._array.dtype.itemsize)
    check_inplace(self, False)
    array = stored(self)
    if shape != array.shape:
        self._array = in_torch_words(resized)(array, shape)
        bump_version(self)
    return self


@function(raw=True, explained=True)
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """Resize this tensor in place to the shape of `the_template`; elements beyond the old ones are uninitialised."""
    return resize_(input, *the_template.shape) if the_template.ndim else resize_(input, ())
