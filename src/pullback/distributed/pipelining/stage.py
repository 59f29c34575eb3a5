"""`PipelineStage`: the part of a model that lives on this rank, with what it receives from and sends to its neighbours.

A message is a note with the number, dtypes and shapes of its tensors, and the tensors. Each has a tag made of the
stage, the direction and the part of the batch: receivers find what they want in whatever order it came, so a schedule
needs no care for the order of messages.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.autograd import backward
from pullback.distributed.data_parallel.ddp import DistributedDataParallel
from pullback.distributed.work import Work
from pullback.distributed.world import get_rank, get_world_size, group_or_default

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]
NOTE, TENSORS, PARTS = 128, 30, 1 << 16
FIRST_TAG = -(1 << 42)
"""Below it lie the tags of pipelines, which no program uses."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The outputs of a stage, or one in a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def note_of(tensors: list[Tensor | None]) -> Tensor:
    """What a message holds, in numbers."""
    words = [len(tensors)]
    for tensor in tensors:
        words += [-1] if tensor is None else [DTYPES.index(tensor.dtype), tensor.dim(), *tensor.shape]
    if len(words) > NOTE or len(tensors) > TENSORS:
        raise RuntimeError(f"a stage sends at most {TENSORS} tensors to the next one, got {len(tensors)}")
    return torch.tensor(words + [0] * (NOTE - len(words)), dtype=torch.int64)


def of_note(note: list[int]) -> list[Tensor | None]:
    """Room for what a message holds."""
    tensors: list[Tensor | None] = []
    place = 1
    for _ in range(note[0]):
        if note[place] < 0:
            tensors.append(None)
            place += 1
            continue
        dims = note[place + 1]
        shape = note[place + 2 : place + 2 + dims]
        tensors.append(torch.empty(shape, dtype=DTYPES[note[place]]))
        place += 2 + dims
    return tensors


class PipelineStage:
    """A stage of a model. Shapes are found out while it runs; example inputs and outputs are taken and not needed."""

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedError(
                "PipelineStage takes no dw_builder or get_mesh here: its gradients are made at once"
            )
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.group = group
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {index: index % self.group_size for index in range(num_stages)}
        self.has_backward = False
        self.log_prefix = f"[Stage {stage_index}]"
        self.fwd_cache: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.output_chunks: list[Any] = []
        self.sent: list[Work] = []

    @property
    def is_first(self) -> bool:
        """Whether it takes the arguments of the program."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it gives the outputs of the model."""
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Begin a step."""
        self.fwd_cache.clear()
        self.output_chunks.clear()

    # ------------------------------------------------------------------ messages

    def tag(self, stage: int, backwards: bool, part: int) -> int:
        """The tag of the note of a message to a stage; those of its tensors follow downwards."""
        return FIRST_TAG - ((stage * 2 + backwards) * PARTS + part) * (TENSORS + 2)

    def send(self, tensors: list[Tensor | None], stage: int, backwards: bool, part: int, here: dict[Any, Any]) -> None:
        """Send tensors to a stage; `here` are the messages between stages of one rank."""
        rank = self.stage_index_to_group_rank[stage]
        if rank == self.group_rank:
            here[stage, backwards, part] = tensors
            return
        group, tag = group_or_default(self.group), self.tag(stage, backwards, part)
        host = [None if tensor is None else tensor.contiguous() for tensor in tensors]
        for index, one in enumerate([note_of(host), *host]):
            if one is not None:
                self.sent.append(group.send(one, rank, tag - index, later=True))

    def receive(self, source: int, backwards: bool, part: int, here: dict[Any, Any]) -> list[Tensor | None]:
        """What a stage has sent to this one."""
        rank = self.stage_index_to_group_rank[source]
        if rank == self.group_rank:
            return here.pop((self.stage_index, backwards, part))  # type: ignore[no-any-return]
        group, tag = group_or_default(self.group), self.tag(self.stage_index, backwards, part)
        note = torch.empty(NOTE, dtype=torch.int64)
        group.recv(note, rank, tag)
        tensors = of_note(note.tolist())
        for index, tensor in enumerate(tensors):
            if tensor is not None:
                group.recv(tensor, rank, tag - index - 1)
        return [None if tensor is None else tensor.to(self.device) for tensor in tensors]

    def finish_sends(self) -> None:
        """Wait until all that was sent is on its way."""
        for work in self.sent:
            work.wait()
        self.sent.clear()

    # ------------------------------------------------------------------ a part of a batch

    def forward_one_chunk(
        self, part: int, args: tuple[Any, ...], kwargs: dict[str, Any], here: dict[Any, Any], keep: bool = True
    ) -> Any:
        """Run a part of the batch through the stage."""
        if self.is_first:
            given: tuple[Any, ...] = args
        else:
            received = [one for one in self.receive(self.stage_index - 1, False, part, here) if one is not None]
            if self.has_backward:
                received = [one.detach().requires_grad_(one.is_floating_point()) for one in received]
            given = tuple(received)
        try:
            with self.without_sync(self.has_backward):
                output = self.submod(*given, **kwargs)
        except Exception as error:
            shapes = [f"Tensor({list(one.shape)})" if isinstance(one, Tensor) else repr(one) for one in given]
            raise RuntimeError(f"{self.log_prefix} failed to run forward:\nargs: {tuple(shapes)}") from error
        outputs = as_tuple(output)
        if self.has_backward:
            self.fwd_cache[part] = outputs, given
        if self.is_last:
            if keep:
                self.output_chunks.append(output)
            return output
        for one in outputs:
            if not isinstance(one, Tensor):
                raise RuntimeError(f"{self.log_prefix} a stage sends tensors to the next one, got {type(one)}")
        self.send([one.detach() for one in outputs], self.stage_index + 1, False, part, here)
        return output

    def without_sync(self, quiet: bool) -> Any:
        """Gradients of DistributedDataParallel are averaged by the last backward pass of a step only."""
        if quiet and isinstance(self.submod, DistributedDataParallel):
            return self.submod.no_sync()
        return contextlib.nullcontext()

    def backward_one_chunk(self, part: int, loss: Tensor | None, last: bool, here: dict[Any, Any]) -> None:
        """The gradients of a part of the batch."""
        outputs, inputs = self.fwd_cache.pop(part)
        if last and isinstance(self.submod, DistributedDataParallel):
            self.submod.reducer.prepare(None)
        if self.is_last:
            assert loss is not None
            backward(loss)
        else:
            grads = self.receive(self.stage_index + 1, True, part, here)
            pairs = [(out, grad) for out, grad in zip(outputs, grads) if out.requires_grad and grad is not None]
            if pairs:
                backward([out for out, _ in pairs], [grad for _, grad in pairs])
        if not self.is_first:
            self.send([one.grad for one in inputs], self.stage_index - 1, True, part, here)

    def scale_grads(self, factor: int) -> None:
        """Divide the gradients by the number of parts they were added up from."""
        if factor != 1:
            for param in self.submod.parameters():
                if param.grad is not None:
                    param.grad.div_(factor)

    perform_reduce_grad = scale_grads


def build_stage(stage_module: nn.Module, stage_index: int, pipe_info: Any, device: Any, group: Any = None) -> Any:
    """A stage of a model that `pipeline` has split."""
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)


PipelineStage.__module__ = "torch.distributed.pipelining.stage"
