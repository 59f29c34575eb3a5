"""`distribute_tensor`, `distribute_module`, and new DTensors: zeros, ones, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh, current_mesh
from pullback.distributed.tensor.dtensor import DTensor, around, made, normalized, spec_of
from pullback.distributed.tensor.moves import moved, sizes_inside
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard


def on_mesh(device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None) -> tuple[DeviceMesh, Any]:
    """A mesh, and a placement for each of its dimensions."""
    mesh = device_mesh or current_mesh()
    where = [Replicate() for _ in range(mesh.ndim)] if placements is None else list(placements)
    if len(where) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(where)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    return mesh, where


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A leaf placed on a mesh: of the tensor of one rank, or with `src_data_rank=None` of what each rank has."""
    mesh, where = on_mesh(device_mesh, placements)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != normalized(where, tensor.ndim):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {where}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    where = normalized(where, tensor.ndim)
    for placement in where:
        if isinstance(placement, Shard) and placement.dim >= tensor.ndim:
            raise AssertionError(f"Sharding dim {placement.dim} greater than tensor ndim {tensor.ndim}")
    with torch.no_grad():
        local = tensor.detach()
        if src_data_rank is not None and mesh.size() > 1:
            local = local.clone(memory_format=torch.contiguous_format)
            for dim in range(mesh.ndim):
                if mesh.size(dim) > 1:
                    collectives.broadcast(local, group=mesh.get_group(dim), group_src=src_data_rank)
        before = tuple([Replicate() for _ in where])
        local = moved(local, mesh, tensor.shape, before, where)
        if local is tensor or local.data_ptr() == tensor.data_ptr():
            local = local.detach()
    spec = spec_of(mesh, where, tensor.shape, tensor.dtype, tensor.stride())
    return around(local.requires_grad_(tensor.requires_grad), spec)  # type: ignore[no-any-return]


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
) -> nn.Module:
    """All parameters as DTensors: placed by `partition_fn`, the others whole on every rank."""
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    mesh = device_mesh or current_mesh()

    def replicate(one: nn.Module) -> None:
        every = [Replicate()] * mesh.ndim
        for key, param in one._parameters.items():
            if param is not None and not isinstance(param, DTensor):
                one.register_parameter(key, as_parameter(distribute_tensor(param.detach(), mesh, every), param))
        for key, buffer in one._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                one._buffers[key] = distribute_tensor(buffer, mesh, every)

    for name, one in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, one, mesh)
        replicate(one)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda self, inputs: input_fn(self, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda self, inputs, outputs: output_fn(self, outputs, mesh))
    module._distribute_module_applied = True
    return module


def as_parameter(tensor: DTensor, like: Tensor) -> Any:
    """A DTensor as the parameter of a module."""
    return nn.Parameter(tensor, requires_grad=like.requires_grad)


# ------------------------------------------------------------------ new tensors


def shape_of(size: Any) -> tuple[int, ...]:
    """A shape given in one or in numbers."""
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list, torch.Size)) else tuple(size)


def new(
    call: Callable[..., Tensor],
    size: tuple[int, ...],
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    alike: bool,
    **options: Any,
) -> DTensor:
    """A new DTensor: of parts that are all alike, or of a whole that every rank draws."""
    if options.get("layout") not in (None, torch.strided):
        raise NotImplementedError("DTensors are strided")
    mesh, where = on_mesh(device_mesh, placements)
    where = normalized(where, len(size))
    if any(isinstance(one, Partial) for one in where):
        raise NotImplementedError("new DTensors that are Partial: make them by DTensor.from_local")
    options = {key: value for key, value in options.items() if value is not None}
    if alike:
        local = call(sizes_inside(size, mesh, where, mesh.ndim), **options)
    else:
        local = moved(call(size, **options), mesh, size, tuple([Replicate() for _ in where]), where)
    return made(local.requires_grad_(requires_grad), mesh, where, size)  # type: ignore[no-any-return]


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Zeros."""
    return new(torch.zeros, shape_of(size), requires_grad, device_mesh, placements, True, dtype=dtype, layout=layout)


def ones(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Ones."""
    return new(torch.ones, shape_of(size), requires_grad, device_mesh, placements, True, dtype=dtype, layout=layout)


def empty(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Elements that nobody has set."""
    return new(torch.empty, shape_of(size), requires_grad, device_mesh, placements, True, dtype=dtype, layout=layout)


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Random numbers between 0 and 1: those of the whole, whatever the number of ranks."""
    return new(torch.rand, shape_of(size), requires_grad, device_mesh, placements, False, dtype=dtype, layout=layout)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Random numbers of the normal distribution: those of the whole, whatever the number of ranks."""
    return new(torch.randn, shape_of(size), requires_grad, device_mesh, placements, False, dtype=dtype, layout=layout)


def full(
    size: Any,
    fill_value: float,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """One number everywhere."""

    def call(shape: Any, **options: Any) -> Tensor:
        return torch.full(shape, fill_value, **options)

    return new(call, shape_of((size,)), requires_grad, device_mesh, placements, True, dtype=dtype, layout=layout)
