"""`DTensor`: one tensor of many ranks, each of which holds a local tensor.

It is a tensor of a class of its own around the local one, which has the memory, the history and the gradient. Calls
come to `__torch_function__`, as for any class of tensors that a program defines; `rules` say what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pullback as torch
from pullback import Size, Tensor
from pullback._tensor import new
from pullback.autograd import Function
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh, current_mesh
from pullback.distributed.tensor.moves import moved
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

Placements = tuple[Placement, ...]
rules: dict[str, Callable[..., Any]] = {}
"""What DTensors do, by the names of functions; `(func, name, args, kwargs)`."""


class TensorMeta(NamedTuple):
    """The whole tensor, without its elements."""

    shape: Size
    stride: tuple[int, ...]
    dtype: Any


class DTensorSpec(NamedTuple):
    """Where a tensor lies."""

    mesh: DeviceMesh
    placements: Placements
    tensor_meta: TensorMeta

    @property
    def shape(self) -> Size:
        """The shape of the whole."""
        return self.tensor_meta.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self) -> int:
        """In how many parts the tensor is cut."""
        count = 1
        for dim, placement in enumerate(self.placements):
            count *= self.mesh.size(dim) if isinstance(placement, Shard) else 1
        return count


def of_local(slot: str) -> Any:
    """A slot of the local tensor."""
    return property(
        lambda self: getattr(self.__dict__["_local_tensor"], slot),
        lambda self, value: setattr(self.__dict__["_local_tensor"], slot, value),
    )


class DTensor(Tensor):  # type: ignore[misc]
    """A tensor that lies on the ranks of a mesh."""

    _array = of_local("_array")
    _requires_grad = of_local("_requires_grad")
    _edge = of_local("_edge")
    _grad = of_local("_grad")
    _counter = of_local("_counter")
    _view = of_local("_view")
    _extra = of_local("_extra")
    _detached_at = of_local("_detached_at")
    _local_tensor: Tensor
    _spec: DTensorSpec
    __hash__ = Tensor.__hash__

    def __new__(cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool = False) -> Any:
        if not isinstance(spec, DTensorSpec):
            raise TypeError(
                "DTensor(local_tensor, spec): make one by distribute_tensor(tensor, mesh, placements) or "
                "DTensor.from_local(tensor, mesh, placements)"
            )
        local = local_tensor.detach() if requires_grad != local_tensor.requires_grad else local_tensor
        return around(local.requires_grad_() if requires_grad and not local.requires_grad else local, spec)

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        return rules.get(name, rules["*"])(func, OPERATORS.get(name, name), args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        local: Any = self._local_tensor.detach()
        local = local.item() if not local.ndim else local
        return f"DTensor(local_tensor={local}, device_mesh={self.device_mesh}, placements={self.placements})"

    # ------------------------------------------------------------------ where it lies

    device_mesh = property(lambda self: self._spec.mesh, doc="The mesh it lies on.")
    placements = property(lambda self: self._spec.placements, doc="How it lies along each dimension of the mesh.")
    shape = property(lambda self: self._spec.tensor_meta.shape, doc="The shape of the whole.")
    ndim = property(lambda self: len(self._spec.tensor_meta.shape), doc="The number of dimensions.")
    device = property(lambda self: self._local_tensor.device, doc="Where the local tensor is.")
    dtype = property(lambda self: self._local_tensor.dtype, doc="The type of the elements.")
    layout = property(lambda self: self._local_tensor.layout, doc="How the local tensor lies in memory.")
    data = property(
        lambda self: around(self._local_tensor.data, self._spec),
        lambda self, value: setattr(self._local_tensor, "data", value._local_tensor),
        doc="The same memory, without history.",
    )
    nbytes = property(lambda self: self.numel() * self._local_tensor.element_size(), doc="The bytes of the whole.")

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    ndimension = dim

    def numel(self) -> int:
        """How many elements the whole has."""
        return int(self.shape.numel())

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the whole."""
        strides = self._spec.tensor_meta.stride
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """Whether the local tensor lies in one piece."""
        return bool(self._local_tensor.is_contiguous(memory_format=memory_format))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def untyped_storage(self) -> Any:
        """The memory of the local tensor."""
        return self._local_tensor.untyped_storage()

    def numpy(self, *, force: bool = False) -> Any:
        """Refused."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self) -> Any:
        """Refused."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got DTensor")

    def item(self) -> Any:
        """The element this rank holds."""
        return self._local_tensor.item()

    # ------------------------------------------------------------------ the graph is that of the local tensor

    @property
    def grad(self) -> Any:
        """The gradient, placed as the tensor is."""
        grad = self._local_tensor.grad
        if grad is None:
            return None
        kept = self.__dict__.get("_kept_grad")
        if kept is None or kept._local_tensor is not grad:
            kept = self.__dict__["_kept_grad"] = around(grad, self._spec)
        return kept

    @grad.setter
    def grad(self, grad: Any) -> None:
        if grad is not None and not isinstance(grad, DTensor):
            raise RuntimeError(
                f"assigned grad has data of a different type: a DTensor takes a DTensor, not {type(grad).__name__}. "
                "Place it first by distribute_tensor or DTensor.from_local"
            )
        if grad is not None and grad.placements != self.placements:
            grad = around(moved(grad._local_tensor, grad.device_mesh, grad.shape, grad.placements, self.placements),
                          self._spec)  # fmt: skip
        self._local_tensor.grad = None if grad is None else grad._local_tensor
        self.__dict__["_kept_grad"] = grad

    @grad.deleter
    def grad(self) -> None:
        self._local_tensor.grad = None

    requires_grad = property(
        lambda self: self._local_tensor.requires_grad,
        lambda self, wanted: setattr(self._local_tensor, "requires_grad", wanted),
        doc="Whether gradients are wanted.",
    )
    grad_fn = property(lambda self: self._local_tensor.grad_fn, doc="The node that made the local tensor.")
    is_leaf = property(lambda self: self._local_tensor.is_leaf, doc="Whether no recorded operation made it.")
    retains_grad = property(lambda self: self._local_tensor.retains_grad, doc="Whether the gradient is kept.")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Want gradients, or no longer."""
        self._local_tensor.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keep the gradient."""
        self._local_tensor.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Call a hook with the gradient, once it is there."""

        def on_local(grad: Any) -> Any:
            changed = hook(around(grad, self._spec))
            return changed._local_tensor if isinstance(changed, DTensor) else changed

        return self._local_tensor.register_hook(on_local)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call a hook with this tensor, once its gradient is complete."""
        return self._local_tensor.register_post_accumulate_grad_hook(lambda local: hook(self))

    def detach(self) -> Any:
        """The same tensor without history."""
        return around(self._local_tensor.detach(), self._spec)

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """The gradients of this tensor, which is made whole first."""
        root = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        if isinstance(gradient, DTensor):
            gradient = gradient.redistribute(placements=root.placements)._local_tensor
        root._local_tensor.backward(gradient, retain_graph, create_graph, locals_of(inputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            return self._local_tensor.__deepcopy__(memo)  # which says why not
        if id(self) not in memo:
            local = self._local_tensor.detach().clone().requires_grad_(self.requires_grad)
            made = memo[id(self)] = around(local, self._spec)
            if self.grad is not None:
                made.grad = around(self.grad._local_tensor.clone(), self._spec)
            if "_is_param" in self.__dict__:
                made._is_param = True
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        meta = self._spec.tensor_meta
        marked = "_is_param" in self.__dict__
        state = self._local_tensor.detach(), self.device_mesh, self.placements, tuple(meta.shape), meta.stride
        return rebuilt, (*state, self.requires_grad, marked)

    # ------------------------------------------------------------------ from and to local tensors

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: tuple[int, ...] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor of which each rank holds `local_tensor`. Gradients flow to it."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                f"the local_tensor argument only accepts torch.Tensor but got {type(local_tensor)} value."
            )
        mesh = device_mesh or current_mesh()
        where = normalized(placements or [Replicate()] * mesh.ndim, local_tensor.ndim)
        whole = list(local_tensor.shape)
        for dim, placement in enumerate(where):
            if isinstance(placement, Shard):
                if not 0 <= placement.dim < max(len(whole), 1):
                    raise RuntimeError(
                        f"Sharding dim {placement.dim} greater than tensor ndim {len(whole)} for placement number "
                        f"{dim}."
                    )
                whole[placement.dim] *= mesh.size(dim)
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}.Please pass both shape and stride at the same time."
            )
        if run_check:
            for dim, placement in enumerate(where):
                if isinstance(placement, Replicate):
                    collectives.broadcast(local_tensor, group=mesh.get_group(dim), group_src=0)
        spec = spec_of(mesh, where, whole if shape is None else shape, local_tensor.dtype, stride)
        return around(local_tensor.view_as(local_tensor), spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """What this rank holds. `grad_placements` says how the gradients of all ranks' results belong together."""
        if not torch.is_grad_enabled() or not self._local_tensor.requires_grad:
            return self._local_tensor
        local = self._local_tensor
        if grad_placements is not None:
            where = normalized(grad_placements, self.ndim)
            return Returned.apply(local, self._spec, where)  # type: ignore[no-any-return]
        return local.view_as(local)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor, placed otherwise. Gradients are placed as this one."""
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if mesh != self.device_mesh:
            raise NotImplementedError(
                f"Cross device mesh comm not supported yet: {self.device_mesh} to {mesh}. Use full_tensor() and "
                "distribute_tensor"
            )
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError("redistribute with forward_dtype or backward_dtype: cast by .to(dtype) first")
        where = normalized(placements, self.ndim)
        for before, after in zip(self.placements, where):
            if isinstance(after, Partial) and before != after:
                raise RuntimeError(
                    f"Can not redistribute from {before} to {after}, redistributing to Partial is for internal use "
                    "only!"
                )
        return placed(self, where)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)


class Returned(Function):
    """The local tensor, whose gradients lie otherwise than the tensor."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: DTensorSpec, where: Placements) -> Tensor:
        """The local tensor."""
        ctx.spec, ctx.where = spec, where
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """From where the gradients lie to where the tensor does; a sum has its gradient whole on each rank."""
        after = tuple([Replicate() if isinstance(one, Partial) else one for one in ctx.spec.placements])
        return moved(grad, ctx.spec.mesh, ctx.spec.shape, ctx.where, after), None, None


def around(local: Tensor, spec: DTensorSpec) -> Any:
    """A DTensor with this local tensor."""
    made = new(DTensor)
    made.__dict__["_local_tensor"] = local
    made.__dict__["_spec"] = spec
    return made


def contiguous_strides(shape: Any) -> tuple[int, ...]:
    """The strides of a tensor in one piece."""
    steps, step = [], 1
    for n in reversed(tuple(shape)):
        steps.append(step)
        step *= max(n, 1)
    return tuple(reversed(steps))


def spec_of(mesh: DeviceMesh, placements: Any, shape: Any, dtype: Any, stride: Any = None) -> DTensorSpec:
    """Where a tensor of this shape lies."""
    steps = contiguous_strides(shape) if stride is None else tuple(stride)
    return DTensorSpec(mesh, tuple(placements), TensorMeta(Size(shape), steps, dtype))


def made(local: Tensor, mesh: DeviceMesh, placements: Any, shape: Any) -> Any:
    """A DTensor of this shape."""
    return around(local, spec_of(mesh, placements, shape, local.dtype))


def normalized(placements: Sequence[Placement], ndim: int) -> Placements:
    """Placements that name dimensions from the front."""
    out = []
    for placement in placements:
        if type(placement) is Shard and placement.dim < 0:
            placement = Shard(placement.dim + ndim)
        out.append(placement)
    return tuple(out)


def placed(tensor: DTensor, placements: Placements) -> DTensor:
    """A tensor with other placements, Partial ones among them."""
    if tensor.placements == placements:
        return tensor
    spec = tensor._spec
    local = moved(tensor._local_tensor, spec.mesh, spec.shape, spec.placements, placements)
    return around(local, spec._replace(placements=placements))  # type: ignore[no-any-return]


def rebuilt(local: Tensor, mesh: Any, placements: Any, shape: Any, stride: Any, wanted: bool, marked: bool) -> Any:
    """A DTensor that was pickled."""
    out = around(local.requires_grad_(wanted), spec_of(mesh, placements, shape, local.dtype, stride))
    if marked:
        out._is_param = True
    return out


def locals_of(given: Any) -> Any:
    """Arguments with local tensors in the place of DTensors."""
    if isinstance(given, (list, tuple)):
        return type(given)([locals_of(one) for one in given])
    return given._local_tensor if isinstance(given, DTensor) else given


OPERATORS = {"power_operator": "pow", "power_from": "pow", "reflected_sub": "rsub", "reflected_truediv": "rdiv"}
"""Operators that are ops of their own here."""
DTensor.__module__ = "torch.distributed.tensor"
