"""How a module is cut over the ranks of a mesh, and how what goes in and comes out is placed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pullback import Tensor, nn
from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.tensor.api import as_parameter, distribute_module, distribute_tensor
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(ABC):
    """What `parallelize_module` does to a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module: ...


def as_placed(value: Any, mesh: DeviceMesh, layouts: Any, wanted: Any) -> Any:
    """A tensor of this rank as a DTensor that lies as wanted."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, layouts, run_check=False)
    return value.redistribute(placements=wanted) if tuple(value.placements) != tuple(wanted) else value


def given_out(value: Any, layouts: Any, local: bool) -> Any:
    """A result as it was asked for."""
    if value.placements != tuple(layouts):
        value = value.redistribute(placements=layouts)
    return value.to_local() if local else value


class CutWeights(ParallelStyle):
    """What ColwiseParallel and RowwiseParallel have in common."""

    cuts: dict[type, dict[str, Placement]]
    desired: dict[type, Placement]

    def __init__(self, input_layouts: Any, output_layouts: Any, use_local_output: bool) -> None:
        self.input_layouts, self.output_layouts = (input_layouts,), (output_layouts,)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        kind = next((kind for kind in self.cuts if isinstance(module, kind)), None)
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        wanted = (self.desired[kind],)

        def partition(name: str, one: nn.Module, mesh: DeviceMesh) -> None:
            for key, param in one.named_parameters(recurse=False):
                where = [self.cuts[kind][key]]
                cut = distribute_tensor(param.detach(), mesh, where, src_data_rank=self.src_data_rank)
                one.register_parameter(key, as_parameter(cut, param))

        def on_input(one: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            placements = tuple([Shard(p.dim % inputs[0].ndim) if isinstance(p, Shard) else p for p in wanted])
            return (as_placed(inputs[0], mesh, self.input_layouts, placements), *inputs[1:])

        def on_output(one: nn.Module, outputs: Any, mesh: DeviceMesh) -> Any:
            where = [Shard(p.dim % outputs.ndim) if isinstance(p, Shard) else p for p in self.output_layouts]
            return given_out(outputs, where, self.use_local_output)

        return distribute_module(module, device_mesh, partition, on_input, on_output)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(CutWeights):
    """Each rank computes some of the outputs of a Linear, or some columns of an Embedding."""

    cuts = {nn.Linear: {"weight": Shard(0), "bias": Shard(0)}, nn.Embedding: {"weight": Shard(1)}}
    desired = {nn.Linear: Replicate(), nn.Embedding: Replicate()}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(CutWeights):
    """Each rank has some of the inputs of a Linear, or some rows of an Embedding; results are summed."""

    cuts = {nn.Linear: {"weight": Shard(1), "bias": Replicate()}, nn.Embedding: {"weight": Shard(0)}}
    desired = {nn.Linear: Shard(-1), nn.Embedding: Replicate()}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)


class SequenceParallel(ParallelStyle):
    """A normalization or dropout, each rank for a part of the sequence. Its parameters are whole on every rank."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def on_input(one: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            if not isinstance(inputs[0], Tensor):
                raise ValueError(f"expecting input of {one} to be a torch.Tensor or DTensor, but got {inputs[0]}")
            return (as_placed(inputs[0], mesh, self.sequence_sharding, self.sequence_sharding), *inputs[1:])

        def on_output(one: nn.Module, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, None, on_input, on_output)

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_dim}, use_local_output={self.use_local_output})"


def several(layouts: Any) -> Any:
    """Layouts, one for each value."""
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """Place the inputs of a module before it runs."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = several(input_layouts), several(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def one(self, value: Any, mesh: DeviceMesh, layout: Any, wanted: Any) -> Any:
        """An input, placed."""
        if layout is None:
            return value
        out = as_placed(value, mesh, (layout,), (layout if wanted is None else wanted,))
        return out.to_local() if self.use_local_output else out

    def inputs(self, given: Any, mesh: DeviceMesh) -> Any:
        """All inputs, placed."""
        if self.input_layouts is None:
            return given
        given = given if isinstance(given, tuple) else (given,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        pairs = zip(given, self.input_layouts, self.desired_input_layouts)
        return tuple([self.one(value, mesh, layout, wanted) for value, layout, wanted in pairs])

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def prepare(one: nn.Module, args: Any, kwargs: Any) -> Any:
            placed = dict(kwargs)
            for name, value in kwargs.items():
                layout, wanted = self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts.get(name)
                placed[name] = self.one(value, device_mesh, layout, wanted)
            return self.inputs(args, device_mesh), placed

        if self.with_kwargs:
            module.register_forward_pre_hook(prepare, with_kwargs=True)
        else:
            module.register_forward_pre_hook(lambda one, args: self.inputs(args, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Place the outputs of a module."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = several(output_layouts), several(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def outputs(self, given: Any, mesh: DeviceMesh) -> Any:
        """All outputs, placed."""
        values = given if isinstance(given, tuple) else (given,)
        if len(values) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        out = []
        for value, layout, wanted in zip(values, self.output_layouts, self.desired_output_layouts):
            if layout is not None:
                value = as_placed(value, mesh, (layout,), (wanted,))
                value = value.to_local() if self.use_local_output else value
            out.append(value)
        return out[0] if len(out) == 1 else tuple(out)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(lambda one, inputs, outputs: self.outputs(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """Place the inputs and the outputs of a module."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
