"""`pipeline`: a model is traced and split into stages at modules that are named, or where `pipe_split` is called."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any

from pullback import fx, nn
from pullback.distributed.pipelining.stage import PipelineStage


class SplitPoint(enum.Enum):
    """Whether a stage begins or ends with a module."""

    BEGINNING = 1
    END = 2


class Splitting(fx.Tracer):
    """Records where stages begin."""

    active: list[Splitting] = []

    def __init__(self, spec: dict[str, SplitPoint]) -> None:
        super().__init__()
        self.spec, self.met = spec, set[str]()

    def mark(self) -> None:
        """A stage begins here."""
        self.create_node("call_function", pipe_split, (), {})

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """A module, with what begins before or after it."""
        name = self.path_of_module(m)
        where = self.spec.get(name)
        self.met.add(name)
        if where is SplitPoint.BEGINNING:
            self.mark()
        out = super().call_module(m, forward, args, kwargs)
        if where is SplitPoint.END:
            self.mark()
        return out


def pipe_split() -> None:
    """A stage of the pipeline begins here; outside of `pipeline` nothing happens."""
    if Splitting.active:
        Splitting.active[-1].mark()


class Pipe(nn.Module):
    """A model in stages: `get_stage_module(i)` is one of them, `build_stage(i, device)` one for a schedule."""

    def __init__(self, stages: list[fx.GraphModule]) -> None:
        super().__init__()
        self.num_stages = len(stages)
        self.split_gm = nn.Module()
        for index, stage in enumerate(stages):
            self.split_gm.add_module(f"submod_{index}", stage)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """All stages, one after the other."""
        out: Any = self.get_stage_module(0)(*args, **kwargs)
        for index in range(1, self.num_stages):
            out = self.get_stage_module(index)(*(out if isinstance(out, tuple) else (out,)))
        return out

    def get_stage_module(self, stage_idx: int) -> Any:
        """A stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_{stage_idx}")

    def info(self) -> Any:
        """What stages need to know of the whole."""
        return SimpleNamespace(num_stages=self.num_stages, has_loss_and_backward=False)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """A stage for a schedule."""
        return PipelineStage(self.get_stage_module(stage_index), stage_index, self.num_stages, device, group=group)


def stages_of(root: nn.Module, graph: fx.Graph) -> list[fx.GraphModule]:
    """The graph cut at its marks; what a later stage needs goes through all between."""
    place: dict[fx.Node, int] = {}
    stage = 0
    for node in graph.nodes:
        if node.op == "call_function" and node.target is pipe_split:
            stage += 1
            continue
        place[node] = stage
    count = stage + 1
    last_use: dict[fx.Node, int] = {}
    for node, where in place.items():
        for given in node.all_input_nodes:
            if given.op != "get_attr":
                last_use[given] = max(last_use.get(given, 0), where)
    made = []
    for index in range(count):
        part, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        for node in place:
            if index and place[node] < index and last_use.get(node, -1) >= index:
                copies[node] = part.placeholder(node.name)

        def copied(node: fx.Node, part: Any = part, copies: Any = copies) -> fx.Node:
            if node not in copies and node.op == "get_attr":
                copies[node] = part.node_copy(node)
            return copies[node]  # type: ignore[no-any-return]

        result: Any = None
        for node, where in place.items():
            if where != index or node.op == "get_attr":
                continue
            if node.op == "output":
                result = fx.map_arg(node.args[0], copied)
            else:
                copies[node] = part.node_copy(node, copied)
        if index < count - 1:
            onward = [copies[node] for node in place if node in copies and last_use.get(node, -1) > index]
            result = onward[0] if len(onward) == 1 else tuple(onward)
        part.output(result)
        made.append(fx.GraphModule(root, part))
    return made


def check_split_points(module: nn.Module, spec: dict[str, SplitPoint]) -> None:
    """Refuse names of modules that are not there."""
    for name, where in spec.items():
        found: Any = module
        atoms = name.split(".")
        for index, atom in enumerate(atoms[:-1]):
            try:
                found = getattr(found, atom)
            except AttributeError as error:
                missing = ".".join(atoms[: index + 1])
                raise AttributeError(f"Specified target {name} referenced nonexistent module {missing}") from error
        getattr(found, atoms[-1])
        if not isinstance(where, SplitPoint):
            raise ValueError("Unknown split point type.")


def pipeline(
    module: nn.Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Any = None,
) -> Pipe:
    """A model in stages. It is traced: its forward must not depend on the values in tensors."""
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    if split_policy is not None:
        raise NotImplementedError(
            "pipeline(split_policy=...) is not here: name modules in split_spec, or call pipe_split()"
        )
    spec = split_spec or {}
    check_split_points(module, spec)
    tracer = Splitting(spec)
    Splitting.active.append(tracer)
    try:
        graph = tracer.trace(module)
    finally:
        Splitting.active.pop()
    for name in spec:
        if name not in tracer.met:
            raise ValueError(f"the module {name!r} of split_spec is not called in forward")
    return Pipe(stages_of(module, graph))


SplitPoint.__module__ = Pipe.__module__ = "torch.distributed.pipelining._IR"
