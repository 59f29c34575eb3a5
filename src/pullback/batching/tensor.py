"""BatchedTensor: to the program a tensor of shape [3], in truth a tensor of shape [B, 3].

Each has a *level*: the number of the transform (vmap, or a jvp inside another) that made it. An op works at the
highest level among its inputs; what it does to the values below is again an op, one level down. A tensor at a level
may also have no batch dimension (`bdim` None): it then only carries that level's gradient or tangent.

The array of a BatchedTensor is a stand-in with the shape and dtype the program sees. Reading its elements raises:
there is no one value to read. It knows the tensor it stands for, so `wrap(tensor._array)`, which many places do to
get the same memory without history, gives a BatchedTensor again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign
from pullback._arrays.layout import channels_last, channels_last_3d, contiguous_format, memory_format
from pullback._device import CPU, device
from pullback._modes import claim, claimed_by, modes
from pullback._op.overrides import torch_function_enabled
from pullback._runtime.interrupts import Block
from pullback._tensor import PRISTINE, Tensor, new, present_dim

NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
NO_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)


NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"
NO_REQUIRES_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)


class Logical(np.ndarray[Any, Any]):
    """The stand-in for an array: shape and dtype, and the tensor it stands for."""

    value: Any = None
    bdim: int | None = None
    level: int = 0

    def tensor(self) -> Tensor:
        """A BatchedTensor on the same value, without history: what `wrap` gives."""
        if self.value is None:
            raise RuntimeError(NO_ITEM)
        return around(self)

    def plain(self) -> Any:
        """The elements, where there is no batch."""
        if self.value is None or self.bdim is not None:
            raise RuntimeError(NO_ITEM)
        below = self.value._array
        return below.plain() if type(below) is Logical else below

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[read(i) for i in inputs], **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in SHAPES_ONLY:
            args = tuple([np.ndarray(a.shape, a.dtype) if type(a) is Logical else a for a in args])
        elif function in MEMORY:
            args = tuple([held(a) for a in args])
        else:
            args = tuple([read(a) for a in args])
        return function(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self.plain()[key]

    def item(self, *args: Any) -> Any:
        """The element, where there is no batch."""
        return self.plain().item(*args)

    def tolist(self) -> Any:
        """The elements, where there is no batch."""
        return self.plain().tolist()

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """The elements in another dtype, where there is no batch."""
        return self.plain().astype(*args, **kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        """The elements, where there is no batch."""
        return self.plain().copy(*args, **kwargs)

    def __bool__(self) -> bool:
        if self.value is not None and self.bdim is None:
            return bool(self.plain())
        raise RuntimeError(NO_BRANCH)

    def __int__(self) -> int:
        return int(self.plain())

    def __float__(self) -> float:
        return float(self.plain())

    def __complex__(self) -> complex:
        return complex(self.plain())

    def __index__(self) -> int:
        return int(self.plain())


SHAPES_ONLY = {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.shape, np.ndim, np.size}

MEMORY = {np.may_share_memory, np.shares_memory}


def held(array: Any) -> Any:
    """The memory of all entries."""
    while type(array) is Logical:
        array = () if array.value is None else array.value._array
    return array


def read(value: Any) -> Any:
    """An argument of a NumPy function, elements and all."""
    if type(value) in (list, tuple):
        return type(value)([read(v) for v in value])
    return value.plain() if type(value) is Logical else value


class BatchedTensor(Tensor):
    """A tensor inside vmap."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Functions run as for plain tensors; what they make without looking at values is a plain tensor."""
        before = torch_function_enabled.get()
        try:
            torch_function_enabled.set(False)
            out = func(*args, **(kwargs or {}))
        finally:
            torch_function_enabled.set(before)
        like = getattr(getattr(func, "op", None), "vmap", "") == "like"
        if like and isinstance(out, Tensor) and type(out) is not BatchedTensor and type(args[0]) is BatchedTensor:
            return for_each(out, args[0])
        return out

    @property
    def device(self) -> device:
        """Where the elements of the batch are."""
        value = self._array.value  # type: ignore[attr-defined]
        return CPU if value is None else value.device

    def get_device(self) -> int:
        """The number of that device; -1 stands for the CPU."""
        return Tensor.get_device(self) if self.device is CPU else self.device.index or 0

    def stride(self, dim: int | None = None) -> Any:
        """The step in elements along each dimension of an entry, or along one."""
        array: Any = self._array
        if array.value is None:
            return Tensor.stride(self, dim)
        strides = array.value.stride()
        if array.bdim is not None:
            strides = strides[: array.bdim] + strides[array.bdim + 1 :]
        return strides if dim is None else strides[present_dim(dim, array.ndim)]

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        """True if the elements of an entry are contiguous without gaps."""
        order = ORDERS.get(memory_format, range(self._array.ndim))
        return len(order) == self._array.ndim and lie_in_order(self._array.shape, self.stride(), order)

    def storage_offset(self) -> int:
        """How many elements lie before the first of the first entry."""
        value = self._array.value  # type: ignore[attr-defined]
        return 0 if value is None else int(value.storage_offset())

    def __bool__(self) -> bool:
        return Tensor.__bool__(self) if self._array.bdim is None else bool(self._array)  # type: ignore[attr-defined]

    def item(self) -> Any:
        """The only element, where there is no batch."""
        self._array.plain()  # type: ignore[attr-defined]
        return Tensor.item(self)

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """The elements, where there is no batch."""
        if self._array.bdim is not None:  # type: ignore[attr-defined]
            raise RuntimeError(NO_STORAGE)
        return self._array.plain()  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        """The elements, where there is no batch."""
        return self.numpy().tolist()

    def new_zeros(self, *sizes: Any, **options: Any) -> Any:
        """Zeros for each entry."""
        return new_for_each(self, "new_zeros", sizes, options)

    def new_ones(self, *sizes: Any, **options: Any) -> Any:
        """Ones for each entry."""
        return new_for_each(self, "new_ones", sizes, options)

    def new_empty(self, *sizes: Any, **options: Any) -> Any:
        """Uninitialised memory for each entry."""
        return new_for_each(self, "new_empty", sizes, options)

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Any:  # type: ignore[override]
        """One number, for each entry."""
        return new_for_each(self, "new_full", (size,), {**options, "fill_value": fill_value})

    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Any:  # type: ignore[override]
        """A tensor for each entry, with these strides."""
        array: Any = self._array
        value = array.value
        if array.bdim is not None:
            extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True) if n)
            size, stride = (value._array.shape[array.bdim], *size), (extent, *stride)
        return batched(value.new_empty_strided(size, stride, **options), None if array.bdim is None else 0, array.level)

    def resize_(self, *sizes: Any, **options: Any) -> Any:
        """Not inside a transform: the batch has one size."""
        raise NotImplementedError("resize_ inside vmap: make a new tensor instead")

    def cut_off(self) -> Any:
        """The same memory without history and tangent, here and on every level below."""
        array: Any = self._array
        return batched(array.value.detach(), array.bdim, array.level)

    def shows(self) -> bool:
        """True for a view: of another tensor, or of a batch that only the levels below gave a history."""
        array: Any = self._array
        view = "source" in self.__dict__.get("formers", (self,))[0].__dict__
        if view or array.bdim is None or self._requires_grad or self._tangent is not None:
            return view
        return array.value.requires_grad or array.value._tangent is not None

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Not inside a transform: which gradient would be meant?"""
        raise RuntimeError(NO_REQUIRES_GRAD)

    def __repr__(self) -> str:
        array: Any = self._array
        inner = repr(array.value).replace("\n", "\n    ")
        batch = "" if array.bdim is None else f"lvl={array.level}, bdim={array.bdim}, "
        return f"BatchedTensor({batch}value=\n    {inner}\n)"


ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}
"""The dimensions from the slowest to the quickest, where these are not their own order."""


def lie_in_order(shape: tuple[int, ...], strides: tuple[int, ...], order: Any) -> bool:
    """Whether elements lie one after the other, the last dimension of an order running quickest."""
    step = 1
    for dim in reversed(order):
        if shape[dim] != 1 and strides[dim] != step:
            return 0 in shape
        step *= shape[dim]
    return True


def around(array: Logical) -> BatchedTensor:
    """A BatchedTensor with this stand-in, without history."""
    out: BatchedTensor = new(BatchedTensor)
    out._array = array
    out._requires_grad = False
    out._edge = out._grad = out._view = out._extra = out._detached_at = None
    out._counter = PRISTINE
    return out


def batched(value: Tensor, bdim: int | None, level: int) -> BatchedTensor:
    """The tensor a program sees of `value`, of whose dimensions `bdim` is hidden."""
    while type(value) is BatchedTensor and value._array.level >= level:  # type: ignore[attr-defined]
        value = value._array.value  # type: ignore[attr-defined] # made here, and so of this level already
    whole = value._array
    shape = whole.shape
    if bdim is not None:
        array = np.ndarray.__new__(Logical, shape[:bdim] + shape[bdim + 1 :], whole.dtype)
    elif is_foreign(whole):
        array = np.ndarray.__new__(Logical, shape, whole.dtype)
    else:
        array = whole.view(Logical)
    array.value, array.bdim, array.level = value, bdim, level
    return around(array)


def new_for_each(self: BatchedTensor, name: str, sizes: tuple[Any, ...], options: dict[str, Any]) -> BatchedTensor:
    """What a method that makes tensors makes, once for each entry of the batch."""
    array: Any = self._array
    size = options.pop("size", None) if not sizes else sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
    if array.bdim is not None:
        size = (array.value._array.shape[array.bdim], *size)
    return batched(getattr(array.value, name)(size, **options), None if array.bdim is None else 0, array.level)


def for_each(made: Tensor, like: BatchedTensor) -> Any:
    """A new tensor, once for each entry of the batch that another tensor has."""
    array: Any = like._array
    below = array.value
    if type(below) is BatchedTensor:
        made = for_each(made, below)
    if array.bdim is None:
        return lifted(made, array.level)
    size = below._array.shape[array.bdim]
    out = made.unsqueeze(0).expand((size, *made._array.shape)).clone()
    return batched(out, 0, array.level)


def level_of(value: Any) -> int:
    """The level of a tensor: 0 for plain ones."""
    return value._array.level if type(value) is BatchedTensor else 0


def at_level(value: Any, level: int) -> tuple[Any, int | None]:
    """What a tensor holds below `level`, and where its batch is; it itself if it is of a lower level."""
    if type(value) is BatchedTensor and value._array.level == level:
        return value._array.value, value._array.bdim
    return value, None


def lifted(value: Any, level: int) -> Any:
    """A tensor of a lower level as one of this level, without batch."""
    return value if level_of(value) == level else batched(value, None, level)


# ------------------------------------------------------------------ the transforms that are running


class Level:
    """One running transform: its number, the size of its batch (None for a jvp) and what it says about randomness."""

    __slots__ = ("number", "randomness", "size")

    def __init__(self, number: int, size: int | None, randomness: str) -> None:
        self.number, self.size, self.randomness = number, size, randomness


levels: ContextVar[tuple[Level, ...]] = ContextVar("levels", default=())
"""The transforms around the running code, outermost first."""


class entered(Block):
    """A `with` block in which a new level exists.

    Unless it `claims` them, what is computed from captured tensors stays plain: where tangents are batches and what
    moves is not, as in torch.autograd.functional.
    """

    def __init__(self, size: int | None, randomness: str = "error", claims: bool = True) -> None:
        self.size, self.randomness, self.claims = size, randomness, claims

    def _before(self) -> Any:
        """The levels around, and what new tensors become there."""
        return levels.get(), claim.get()

    def _begin(self, before: Any) -> Level:
        """One more."""
        level = Level(len(before[0]) + 1, self.size, self.randomness)
        levels.set((*before[0], level))
        claim.set(lifts[level.number] if self.claims else None)
        return level

    def _end(self, before: Any) -> None:
        """Those around again."""
        levels.set(before[0])
        claim.set(before[1])


class Lifts(dict[int, Callable[[Any], Any] | None]):
    """`lifts[n]` makes a new tensor one of n transforms, without batch: each can give it a tangent or a history."""

    def __missing__(self, number: int) -> Callable[[Any], Any] | None:
        def lift(value: Any) -> Any:
            for level in range(1, number + 1):
                value = lifted(value, level)
            return value

        self[number] = lift
        return lift


lifts = Lifts({0: None})


def one_down(level: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of what tensors of a level hold: what it makes belongs to the levels below."""
    if modes.dual_level < 0:
        return function(*args)
    return claimed_by(lifts[level - 1], function, *args)


def current_level() -> Level | None:
    """The innermost running transform."""
    running = levels.get()
    return running[-1] if running else None
