"""The collectives as programs call them: with checks, ranks of the world, and Work where it is asked for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.reduce_op import ReduceOp, kind, supports_complex
from pullback.distributed.work import Work
from pullback.distributed.world import get_group_rank, get_rank, get_world_size, group_or_default, not_in


def check_tensor(value: Any, name: str) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_list(value: Any, name: str) -> None:
    """Refuse what is no list of tensors."""
    start = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
    if not isinstance(value, list):
        raise TypeError(f"{start}{type(value)} instead.")
    if not all(isinstance(one, Tensor) for one in value):
        raise TypeError(f"{start}{type(value)} with elements of type {[type(one) for one in value]}.")


def check_dtypes(*given: Any) -> None:
    """Refuse different dtypes; complex numbers may stand beside their parts."""
    last = None
    for one in given:
        for tensor in one if isinstance(one, list) else (one,):
            dtype = tensor.dtype
            if dtype.is_complex:
                dtype = torch.float32 if dtype == torch.complex64 else torch.complex128
            if last is not None and last != dtype:
                raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
            last = dtype


def group_rank(group: ProcessGroup, rank: int | None, own: int | None) -> int:
    """The rank in a group, given as a rank of the world or of the group."""
    if own is not None:
        if rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return own
    if rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, rank)


def check_root(group: ProcessGroup, what: str, root: int) -> int:
    """A rank that is in the group."""
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}")
    return root


def answer(work: Work, async_op: bool) -> Work | None:
    """The Work where it was asked for; it was done at once where not."""
    return work if async_op else None


def real_views(op: Any, tensors: list[Tensor]) -> list[Tensor]:
    """Refuse reductions that complex numbers do not have."""
    for tensor in tensors:
        if tensor.is_complex() and not supports_complex(op):
            raise ValueError(f"all_reduce does not support {kind(op)} on complex tensors")
    return tensors


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """The tensor of one rank, everywhere."""
    check_tensor(tensor, "tensor")
    if not_in(group, "broadcast"):
        return None
    pg = group_or_default(group)
    root = check_root(pg, "broadcast", group_rank(pg, src, group_src))
    return answer(pg.broadcast([tensor], root, async_op), async_op)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combine the tensors of all ranks, everywhere."""
    check_tensor(tensor, "tensor")
    if not_in(group, "all_reduce"):
        return None
    return answer(group_or_default(group).all_reduce(real_views(op, [tensor]), op, async_op), async_op)


def soon_gone(name: str) -> None:
    """Warn of a function that torch will take away."""
    warnings.warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        category=FutureWarning,
        stacklevel=3,
    )


def all_reduce_coalesced(tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Combine several tensors of all ranks, everywhere."""
    soon_gone("all_reduce_coalesced")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_list(tensors, "tensor")
    check_dtypes(tensors)
    if not_in(group, "all_reduce_coalesced"):
        return None
    work = group_or_default(group).all_reduce(real_views(op, tensors), op, async_op)
    return work.get_future() if async_op else None


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all ranks, at one."""
    check_tensor(tensor, "tensor")
    if not_in(group, "reduce"):
        return None
    pg = group_or_default(group)
    root = check_root(pg, "reduce", group_rank(pg, dst, group_dst))
    return answer(pg.reduce(tensor, root, op, async_op), async_op)


def shown(shape: Any) -> str:
    """A shape as gloo shows it."""
    return f"({', '.join(map(str, shape))})"


def check_like(what: str, tensors: list[Tensor], like: Tensor) -> None:
    """Refuse tensors of another shape or dtype."""
    for index, one in enumerate(tensors):
        if one.dtype != like.dtype:
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor type at index {index} (expected {options(like)}, "
                f"got {options(one)})"
            )
        if one.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor size at index {index} (expected {shown(like.shape)}, "
                f"got {shown(one.shape)})"
            )


CPP = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int"}
CPP |= {"int8": "signed char", "uint8": "unsigned char", "bool": "bool", "float16": "c10::Half"}
CPP |= {"bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


def options(tensor: Tensor) -> str:
    """The dtype and the device of a tensor as gloo shows them."""
    name = str(tensor.dtype).removeprefix("torch.")
    return (
        f"TensorOptions(dtype={CPP.get(name, name)}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all ranks, everywhere, in a list."""
    check_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_dtypes(tensor_list, tensor)
    if not_in(group, "all_gather"):
        return None
    pg = group_or_default(group)
    if len(tensor_list) != pg.size():
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {pg.size()}, "
            f"got {len(tensor_list)})"
        )
    check_like("allgather", tensor_list, tensor)
    return answer(pg.all_gather(tensor_list, tensor, async_op), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks, everywhere, one behind the other."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if not_in(group, "all_gather_into_tensor"):
        return None
    pg = group_or_default(group)
    parts = list(torch.chunk(output_tensor.detach(), pg.size()))
    if len(parts) != pg.size() and input_tensor.numel():
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {pg.size()}, "
            f"got {len(parts)})"
        )
    check_like("allgather", parts, input_tensor)
    return answer(pg.all_gather(parts, input_tensor, async_op), async_op)


all_gather_single = _all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """The tensors of all ranks, everywhere: `output_tensor_lists[rank][i]`."""
    soon_gone("all_gather_coalesced")
    if not_in(group, "all_gather_coalesced"):
        return None
    check_list(input_tensor_list, "input_tensor_list")
    check_dtypes(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for one in output_tensor_lists:
        check_list(one, "output_tensor_lists")
        check_dtypes(one)
    pg = group_or_default(group)
    works = [
        pg.all_gather([one[i] for one in output_tensor_lists], tensor, async_op)
        for i, tensor in enumerate(input_tensor_list)
    ]
    return works[-1].get_future() if async_op else None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of all ranks, at one."""
    check_tensor(tensor, "tensor")
    if gather_list:
        check_list(gather_list, "gather_list")
        check_dtypes(tensor, gather_list)
    else:
        gather_list = []
    if not_in(group, "gather"):
        return None
    pg = group_or_default(group)
    if dst is None and group_dst is None:
        dst = 0
    root = check_root(pg, "gather", group_rank(pg, dst, group_dst))
    if pg.rank() == root and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if pg.rank() != root and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if gather_list:
        if len(gather_list) != pg.size():
            raise RuntimeError(
                f"ProcessGroupGloo::gather: Incorrect output list size {len(gather_list)}. Output list size should be "
                f"{pg.size()}, same as size of the process group."
            )
        check_like("gather", gather_list, tensor)
    return answer(pg.gather(gather_list, tensor, root, async_op), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """To every rank the tensor one has for it."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_list(scatter_list, "scatter_list")
        check_dtypes(tensor, scatter_list)
    else:
        scatter_list = []
    if not_in(group, "scatter"):
        return None
    pg = group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = check_root(pg, "scatter", group_rank(pg, src, group_src))
    if pg.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        if len(scatter_list) != pg.size():
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_list)}. Input list size should be "
                f"{pg.size()}, same as size of the process group."
            )
        check_like("scatter", scatter_list, tensor)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return answer(pg.scatter(tensor, scatter_list, root, async_op), async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors all ranks have for each; each gets its own."""
    check_tensor(output, "output")
    check_list(input_list, "input_list")
    check_dtypes(output, input_list)
    if not_in(group, "reduce_scatter"):
        return None
    pg = group_or_default(group)
    if len(input_list) != pg.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    for one in input_list:
        if one.shape != output.shape:
            raise RuntimeError(
                "Check failed: outputs[0].sizes().vec() == inputs[0][i].sizes().vec() "
                f"({' '.join(map(str, output.shape))} vs. {' '.join(map(str, one.shape))}). "
            )
    return answer(pg.reduce_scatter(output, input_list, op, async_op), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all ranks; each gets its part of the result."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if not_in(group, "reduce_scatter_tensor"):
        return None
    pg = group_or_default(group)
    if output.dtype != input.dtype:
        names = [CPP.get(str(one.dtype).removeprefix("torch."), str(one.dtype)) for one in (output, input)]
        raise RuntimeError(
            f"Check failed: outputTensors[i].dtype() == inputTensors[i].dtype() ({names[0]} vs. {names[1]}). "
        )
    if output.numel() * pg.size() != input.numel():
        raise RuntimeError(
            f"Check failed: outputShape[0] * worldSize == inputShape[0] ({output.shape[0] * pg.size()} vs. "
            f"{input.shape[0]}). "
        )
    parts = [part.reshape(output.shape) for part in torch.chunk(input.detach().reshape(-1), pg.size())]
    return answer(pg.reduce_scatter(output, parts or [input], op, async_op), async_op)


reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """To every rank the tensor this one has for it."""
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    check_dtypes(output_tensor_list, input_tensor_list)
    if not_in(group, "all_to_all"):
        return None
    pg = group_or_default(group)
    for tensors in (output_tensor_list, input_tensor_list):
        if len(tensors) != pg.size():
            raise RuntimeError("Number of tensors in a list for all_to_all must be the world size")
    return answer(pg.all_to_all(output_tensor_list, input_tensor_list, async_op), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """To every rank its part of a tensor."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_dtypes(output, input)
    if not_in(group, "all_to_all_single"):
        return None
    pg = group_or_default(group)
    parts = []
    for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
        if not sizes:
            if tensor.shape[0] % pg.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [tensor.shape[0] // pg.size()] * pg.size()
        if len(sizes) != pg.size():
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != tensor.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        parts.append(list(torch.split(tensor.detach(), list(sizes))))
    return answer(pg.all_to_all(parts[0], parts[1], async_op), async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for all ranks."""
    if not_in(group, "barrier"):
        return None
    return answer(group_or_default(group).barrier(async_op), async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait for all ranks; if some do not come, rank 0 says which."""
    if not_in(group, "monitored_barrier"):
        return
    pg = group_or_default(group)
    pg.monitored_barrier(pg._timeout if timeout is None else timeout, wait_all_ranks)


# ------------------------------------------------------------------ several as one


class _CoalescingManager:
    """What was done in a block; `wait` for it."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Any = None) -> None:
        """One more to wait for."""
        if work:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[Any]:
    """Collectives called in this block are done together at its end."""
    manager = _CoalescingManager()
    with group_or_default(group)._together(async_ops) as works:
        yield manager
    for work in works:
        manager.append(work)


def rank_and_size(group: Any) -> tuple[int, int]:
    """The rank of this process in a group, and how many there are."""
    return get_rank(group), get_world_size(group)
