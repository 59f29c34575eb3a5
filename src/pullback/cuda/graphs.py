"""CUDA graphs: work that is written down once and done again with one call."""

from __future__ import annotations

import gc
from typing import Any

import pullback as torch
from pullback.cuda.devices import current_device, driver, rooms, synchronize
from pullback.cuda.memory import new_pool
from pullback.cuda.memory import pool as memory_of
from pullback.cuda.streams import Stream, StreamContext

capturing: list[CUDAGraph] = []
"""The graph that is being captured."""


def is_current_stream_capturing() -> bool:
    """True while work is written down instead of done."""
    return bool(capturing)


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that graphs may share."""
    return new_pool(shared=True)


class CUDAGraph:
    """Work on the device that is captured once, and replayed.

    What is captured reads and writes the memory it saw: give a graph new inputs by `copy_` into the tensors it was
    captured with. Numbers are not read from the device meanwhile, and random numbers not drawn.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self.index, self.driver = current_device(), driver()
        self.memory = memory_of(self.index)
        self.ready: Any = None
        self.stream: Any = None
        self.name: tuple[int, int] | None = None
        self.kept: list[Any] = []
        """What it reads that nobody else keeps."""

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Write down what is done from now on, on the current stream.

        Args:
            pool: the name of the memory it uses: that of another graph (`other.pool()`), whose results are then
                overwritten when this one is replayed, or a new one (`graph_pool_handle`). By default its own.
            capture_error_mode: accepted.
        """
        if capturing:
            raise RuntimeError("a CUDA graph is being captured already")
        if self.ready is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
                               "a new instance.")  # fmt: skip
        handle = rooms().stream_on(self.index)
        if not handle:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
                               "to replay them on the default stream.)")  # fmt: skip
        self.driver.begin_capture(self.index, handle)
        self.stream, self.name = handle, new_pool() if pool is None else tuple(pool)
        self.memory.share(self.name)
        self.memory.captured[handle] = self.kept
        self.before = rooms().streams.take_from(self.index, self.name)
        capturing.append(self)

    def capture_end(self) -> None:
        """The end of it."""
        if capturing != [self]:
            raise RuntimeError("capture_end() called before capture_begin().")
        capturing.clear()
        rooms().streams.take_from(self.index, self.before)
        del self.memory.captured[self.stream]
        try:
            self.ready = self.driver.end_capture(self.index, self.stream)
        finally:
            if self.ready is None:
                self.forget()

    def replay(self) -> None:
        """Do what was captured, on the current stream."""
        if self.ready is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self.driver.launch_graph(self.index, self.ready, rooms().stream_on(self.index))

    def reset(self) -> None:
        """Forget what was captured; its memory can be used again."""
        if self.ready is not None:
            self.driver.free_graph(self.ready)
            self.ready = None
            self.forget()

    def forget(self) -> None:
        """Let others have its memory."""
        assert self.name is not None
        self.memory.unshare(self.name)
        self.kept, self.name = [], None

    def pool(self) -> tuple[int, int]:
        """The name of its memory, for other graphs to share."""
        if self.name is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self.name

    def __del__(self) -> None:
        if getattr(self, "ready", None) is not None:
            self.reset()


class graph:
    """Within the block, work is captured in a graph.

    Args:
        cuda_graph: the graph.
        pool: the name of the memory it uses; by default its own.
        stream: the stream to capture on; by default a new one.
        capture_error_mode: accepted.
    """

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> None:
        self.cuda_graph, self.pool, self.mode = cuda_graph, pool, capture_error_mode
        self.context = StreamContext(Stream() if stream is None else stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        self.context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self.context.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.context.__exit__(*error)


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Functions, or modules, whose forward and backward are replayed as graphs.

    Args:
        callables: one, or a tuple of them; a module gets a graphed `forward`.
        sample_args: a tuple of tensors for each; what is given later has their shapes and dtypes.
        num_warmup_iters: how often each runs before it is captured.
        allow_unused_input: whether inputs may have no gradient.
        pool: accepted; every graph has memory of its own.
    """
    if not isinstance(callables, tuple):
        return graphed(callables, tuple(sample_args), num_warmup_iters, allow_unused_input)
    return tuple([graphed(one, tuple(a), num_warmup_iters, allow_unused_input)
                  for one, a in zip(callables, sample_args, strict=True)])  # fmt: skip


def graphed(function: Any, sample: tuple[Any, ...], warmups: int, unused: bool) -> Any:
    """One of them."""
    parameters = tuple(function.parameters()) if isinstance(function, torch.nn.Module) else ()
    inputs = (*sample, *parameters)
    wanted = [t for t in inputs if t.requires_grad]
    side = Stream()
    side.wait_stream(torch.cuda.current_stream())
    with StreamContext(side):
        for _ in range(warmups):
            outs = function(*sample)
            listed = outs if isinstance(outs, tuple) else (outs,)
            moving = [out for out in listed if out.requires_grad]
            if moving and wanted:
                torch.autograd.grad(moving, wanted, [torch.empty_like(out) for out in moving], allow_unused=unused)
    torch.cuda.current_stream().wait_stream(side)
    forward, backward = CUDAGraph(), CUDAGraph()
    with graph(forward):
        outs = function(*sample)
    several = isinstance(outs, tuple)
    listed = outs if several else (outs,)
    moving = [out for out in listed if out.requires_grad]
    weights = [torch.empty_like(out) for out in moving]
    grads: tuple[Any, ...] = ()
    if moving and wanted:
        with graph(backward):
            grads = torch.autograd.grad(moving, wanted, weights, allow_unused=unused)

    class Graphed(torch.autograd.Function):  # type: ignore[name-defined, misc]
        """Replays."""

        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            for own, new in zip(sample, given, strict=False):
                if own.data_ptr() != new.data_ptr():
                    own.detach().copy_(new)
            forward.replay()
            return tuple([out.detach() for out in listed])

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            for own, new in zip(weights, [g for g, out in zip(given, listed, strict=True) if out.requires_grad],
                                strict=True):  # fmt: skip
                own.copy_(new)
            backward.replay()
            left = iter(grads)
            return tuple([next(left) if t.requires_grad else None for t in inputs])

    def run(*given: Any) -> Any:
        made = Graphed.apply(*given, *parameters)
        return made if several else made[0]

    if isinstance(function, torch.nn.Module):
        training, plain = function.training, function.forward
        function.forward = lambda *args: run(*args) if function.training == training else plain(*args)
        return function
    return run
