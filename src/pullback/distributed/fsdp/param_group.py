"""The parameters of one `fully_shard` call: gathered together, and their gradients reduced together.

Between uses a rank holds its part of each parameter, a DTensor. While a module runs, its parameters are whole: plain
parameters, whose memory is given back afterwards, although the graph keeps the objects: before backward they get
their elements again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor, nn
from pullback.distributed import collectives
from pullback.distributed.reduce_op import ReduceOp
from pullback.distributed.tensor.dtensor import DTensor, around, made, spec_of
from pullback.distributed.tensor.moves import padded, share
from pullback.distributed.tensor.placement_types import Replicate, Shard


class FSDPParam:
    """One parameter: where modules hold it, its part, and the whole while it is there."""

    def __init__(self, param: Any, places: list[tuple[Any, str]], mesh: Any, dim: int, dtype: Any) -> None:
        self.places, self.mesh, self.dim, self.dtype = places, mesh, dim, dtype
        self.of_tensor_parallel = param._spec if isinstance(param, DTensor) else None
        local = param._local_tensor if isinstance(param, DTensor) else param
        self.shape, self.orig_dtype, self.wanted = local.shape, param.dtype, param.requires_grad
        group = mesh.get_group(mesh.ndim - 1)
        self.ranks, self.rank = group.size(), group.rank()
        start, length = share(self.shape[dim], self.ranks, self.rank)
        self.kept: Any = None
        """A larger part, on fewer ranks, between forward and backward."""
        part = local.detach().narrow(dim, start, length).clone(memory_format=torch.contiguous_format)
        self.sharded: Any = self.parameter(part)
        self.unsharded: Any = self.empty_whole()
        self.accumulated: Tensor | None = None

    def parameter(self, part: Tensor) -> Any:
        """A part as the parameter that optimizers see."""
        where: list[Any] = [Replicate()] * (self.mesh.ndim - 1) + [Shard(self.dim)]
        mesh, shape, spec = self.mesh, self.shape, self.of_tensor_parallel
        if spec is not None:  # cut for tensor parallelism first, each piece then here
            root = self.mesh._get_root_mesh()
            names = (*spec.mesh.mesh_dim_names, *self.mesh.mesh_dim_names)
            mesh, where, shape = root[names], [*spec.placements, *where], spec.shape
        return nn.Parameter(made(part, mesh, where, shape), requires_grad=self.wanted)

    def empty_whole(self) -> Any:
        """The whole parameter, without memory."""
        whole: Any = nn.Parameter(torch.empty(0, dtype=self.dtype or self.orig_dtype), requires_grad=self.wanted)
        whole._array = self.nothing(whole._array.dtype)
        return whole

    def nothing(self, dtype: Any) -> Any:
        """An array of the shape of the whole without memory: NaN, so that nobody takes it for elements."""
        filler = np.nan if dtype.kind in "fcV" else 0
        return np.broadcast_to(np.asarray(filler).astype(dtype), tuple(self.shape))

    def put(self, param: Any) -> None:
        """Modules see this one."""
        for module, name in self.places:
            module._parameters[name] = param

    def show_whole(self) -> None:
        """Modules see the whole."""
        spec = self.of_tensor_parallel
        if spec is None:
            self.put(self.unsharded)
            return
        outer = around(self.unsharded, spec_of(spec.mesh, spec.placements, spec.shape, self.unsharded.dtype))
        outer._is_param = True
        self.put(outer)

    def each(self, ranks: int) -> int:
        """The length of the parts on so many ranks; the last ones may be shorter."""
        return -(-self.shape[self.dim] // ranks)

    def flat_part(self, ranks: int) -> Tensor:
        """This rank's part with the dimension that is cut first, filled up to the size all parts have."""
        part = (self.sharded if self.kept is None else self.kept)._local_tensor.detach()
        if self.dtype is not None:
            part = part.to(self.dtype)
        return padded(part.movedim(self.dim, 0), 0, self.each(ranks)).reshape(-1)

    def fill(self, parts: Tensor) -> None:
        """The elements of the whole, of the parts of all ranks."""
        rest = [n for dim, n in enumerate(self.shape) if dim != self.dim]
        whole = parts.reshape(len(parts) * self.each(len(parts)), *rest).narrow(0, 0, self.shape[self.dim])
        whole = whole.movedim(0, self.dim).clone(memory_format=torch.contiguous_format)
        self.unsharded._array = whole._array

    def keep(self, mesh: Any) -> None:
        """Of the whole, keep what this rank has on a mesh of fewer ranks: backward gathers it from these."""
        group = mesh.get_group(1)
        start, length = share(self.shape[self.dim], group.size(), group.rank())
        part = self.unsharded.detach().narrow(self.dim, start, length).clone(memory_format=torch.contiguous_format)
        self.kept = nn.Parameter(made(part, mesh, [Replicate(), Shard(self.dim)], self.shape), self.wanted)

    def write_back(self) -> None:
        """What was written to the whole is this rank's part now."""
        start, length = share(self.shape[self.dim], self.ranks, self.rank)
        with torch.no_grad():
            self.sharded._local_tensor.copy_(self.unsharded.detach().narrow(self.dim, start, length))

    def drop(self) -> None:
        """Give the memory of the whole back, and modules what there is instead."""
        self.put(self.sharded if self.kept is None else self.kept)
        self.unsharded._array = self.nothing(self.unsharded._array.dtype)

    def flat_grad(self, grad: Tensor, dtype: Any) -> Tensor:
        """A gradient as a row for each rank."""
        whole = padded(grad.detach().to(dtype).movedim(self.dim, 0), 0, self.each(self.ranks) * self.ranks)
        return whole.reshape(self.ranks, -1)

    def take_grad(self, flat: Tensor) -> None:
        """The reduced gradient of this rank's part."""
        rest = [n for dim, n in enumerate(self.shape) if dim != self.dim]
        length = share(self.shape[self.dim], self.ranks, self.rank)[1]
        grad = flat.reshape(self.each(self.ranks), *rest).narrow(0, 0, length).movedim(0, self.dim)
        grad = grad.to(self.orig_dtype).clone(memory_format=torch.contiguous_format)
        local = self.sharded._local_tensor
        local.grad = grad if local.grad is None else local.grad + grad

    def reset(self) -> None:
        """Follow a module that holds another parameter now: one that was loaded, or moved."""
        module, name = self.places[0]
        found = module._parameters[name]
        known = (self.sharded, self.unsharded, self.kept)
        if any([found is one for one in known]) or not isinstance(found, DTensor):
            return
        self.sharded, self.orig_dtype = found, found.dtype
        if self.dtype is None and self.unsharded.dtype is not found.dtype:
            self.unsharded = self.empty_whole()
        self.put(found)


class FSDPParamGroup:
    """Parameters that are gathered at once."""

    def __init__(self, params: list[FSDPParam], mesh: Any, policy: Any) -> None:
        self.params, self.mesh, self.policy = params, mesh, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.fewer: Any = None
        """The mesh of fewer ranks that hold all parts between forward and backward; None: all ranks do."""
        self.whole = False
        self.versions: list[int] = []
        self.coming: list[Any] = []
        self.going: list[Any] = []
        self.arrived: set[int] = set()
        self.reshard_after_forward, self.reshard_after_backward = True, True
        self.sync, self.all_reduce = True, True
        self.divisor: float | None = None
        self.hook: Any = None
        self.hooked: set[int] = set()

    # ------------------------------------------------------------------ gathering

    def gather(self) -> None:
        """Begin to gather, in the background."""
        if self.whole or self.coming:
            return
        if self.versions != self.versions_now():
            self.forget()
        group = self.group if self.params[0].kept is None else self.fewer.get_group(1)
        dtypes: dict[Any, list[FSDPParam]] = {}
        for param in self.params:
            param.reset()
            dtypes.setdefault(param.dtype or param.orig_dtype, []).append(param)
        self.versions = self.versions_now()
        for params in dtypes.values():
            flat = torch.cat([param.flat_part(group.size()) for param in params])
            out = torch.empty((group.size(), flat.numel()), dtype=flat.dtype)
            work = collectives.all_gather_into_tensor(out.view(-1), flat, group=group, async_op=True)
            self.coming.append((work, out, flat, params))

    def versions_now(self) -> list[int]:
        """How often the parts were written to."""
        return [param.sharded._version for param in self.params]

    def unshard(self) -> None:
        """Whole parameters."""
        if self.whole:
            if self.versions == self.versions_now():
                return
            self.reshard()  # the parts were written to meanwhile
        self.gather()
        for work, out, _, params in self.coming:
            work.wait()
            start = 0
            for param in params:
                count = param.each(len(out)) * (param.shape.numel() // max(param.shape[param.dim], 1))
                param.fill(out[:, start : start + count])
                start += count
        self.coming = []
        self.whole = True
        for param in self.params:
            param.show_whole()
            if param.wanted and id(param.unsharded) not in self.hooked:
                self.hooked.add(id(param.unsharded))
                param.unsharded.register_post_accumulate_grad_hook(self.grad_arrived)

    def reshard(self, between: bool = False) -> None:
        """Parts, and their memory only; `between` forward and backward maybe larger ones."""
        for work, *_ in self.coming:
            work.wait()
        self.coming = []
        if not between:
            self.forget()
        if self.whole:
            for param in self.params:
                if between and self.fewer is not None:
                    param.keep(self.fewer)
                param.drop()
            self.whole = False

    def forget(self) -> None:
        """Nothing is kept for backward any more."""
        for param in self.params:
            if param.kept is not None:
                param.kept = None
                if not self.whole:
                    param.put(param.sharded)

    # ------------------------------------------------------------------ gradients

    def grad_arrived(self, whole: Tensor) -> None:
        """The gradient of a parameter is complete; with the last of them all are reduced."""
        self.arrived.add(id(whole))
        if all([id(param.unsharded) in self.arrived for param in self.params if param.wanted]):
            self.post_backward(frozen_too=all([param.wanted for param in self.params]))

    def post_backward(self, frozen_too: bool = True) -> None:
        """Reduce what has arrived. A parameter that is not trained may still be needed: it stays until the end."""
        self.arrived = set()
        ready = [param for param in self.params if param.unsharded.grad is not None]
        if not self.sync:
            for param in ready:
                self.keep(param)
        elif ready or any([param.accumulated is not None for param in self.params]):
            self.reduce([param for param in self.params if has_grad(param)])
        if frozen_too and self.reshard_after_backward:
            self.reshard()

    def reduce_dtype(self, param: FSDPParam) -> Any:
        """The dtype in which gradients are added."""
        return self.policy.reduce_dtype or param.unsharded.dtype

    def keep(self, param: FSDPParam) -> None:
        """Keep a gradient until gradients are reduced again."""
        if self.policy.reduce_dtype is not None:
            grad = param.unsharded.grad.to(self.policy.reduce_dtype)
            param.accumulated = grad if param.accumulated is None else param.accumulated + grad
            param.unsharded.grad = None

    def reduce(self, params: list[FSDPParam]) -> None:
        """Begin to reduce gradients, in the background; each rank gets those of its parts."""
        dtypes: dict[Any, list[FSDPParam]] = {}
        for param in params:
            dtypes.setdefault(self.reduce_dtype(param), []).append(param)
        for dtype, some in dtypes.items():
            rows = []
            for param in some:
                grad = param.unsharded.grad
                if param.accumulated is not None:
                    grad = param.accumulated if grad is None else param.accumulated + grad.to(dtype)
                rows.append(param.flat_grad(grad, dtype))
                param.unsharded.grad = param.accumulated = None
            flat = torch.cat(rows, 1)
            out = torch.empty(flat.shape[1], dtype=dtype)
            work = collectives.reduce_scatter_tensor(out, flat.view(-1), ReduceOp.SUM, group=self.group, async_op=True)
            self.going.append((work, out, flat, [(param, row.shape[1]) for param, row in zip(some, rows)]))

    def finish(self) -> None:
        """Wait for the reduced gradients, and give them to the parts."""
        for work, out, _, params in self.going:
            work.wait()
            if self.replicas is not None and self.all_reduce:
                collectives.all_reduce(out, group=self.replicas)
            if self.hook is not None:
                self.hook(out)
            ranks = self.group.size() * (self.replicas.size() if self.replicas is not None else 1)
            out = out / (self.divisor or ranks)
            start = 0
            for param, count in params:
                param.take_grad(out[start : start + count])
                start += count
        self.going = []


def has_grad(param: FSDPParam) -> bool:
    """Whether there is something to reduce."""
    return param.unsharded.grad is not None or param.accumulated is not None
