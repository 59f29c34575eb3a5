"""The few names of `torch._C` that public programs reach for, as `pullback._C`.

Only what has a meaning here: two functions of `_functions`, the switches of `_autograd`, the grad mode, the running
backward, the switches of `__torch_function__` and the error class of linear algebra. Anything else raises an
AttributeError that says so.
"""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, ref

import pullback
from pullback._op.overrides import disabled_torch_function, function_modes, torch_function_enabled
from pullback._runtime.interrupts import Block
from pullback.autograd import Function, graph
from pullback.autograd.engine import target_of
from pullback.autograd.node import AccumulateGrad, Node
from pullback.autograd.saved import SavedTensor
from pullback.autograd.task import Task, current_task
from pullback.compat.dispatch_keys import DispatchKey as DispatchKey
from pullback.compat.dispatch_keys import DispatchKeySet as DispatchKeySet
from pullback.compat.dispatch_keys import _dispatch_keys as _dispatch_keys
from pullback.compat.functorch import wrappers
from pullback.library import calls, schema, types
from pullback.library.dispatch import _DisableTorchDispatch as _DisableTorchDispatch
from pullback.library.dispatch import _len_torch_dispatch_stack as _len_torch_dispatch_stack
from pullback.ops.create.cast import to_arguments


class UndefinedGrad(Function):
    """Gives its input back; the gradient that arrives stops there."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        """The input as a view of itself."""
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> None:
        """No gradient."""
        return None


class Error(Function):
    """Gives its inputs back; a gradient that arrives raises."""

    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Any) -> Any:
        """The inputs, apart from the graph so far."""
        ctx.message = message
        out = tuple([tensor.detach() for tensor in tensors])
        return out[0] if len(out) == 1 else out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Raise what was asked for."""
        raise RuntimeError(ctx.message)


def undefined_grad() -> Any:
    """`torch._C._functions.UndefinedGrad()(x)`: x, whose gradient is undefined."""

    def call(*tensors: Any) -> Any:
        if len(tensors) != 1:
            raise TypeError(f"expected 1 arguments, got {len(tensors)} instead")
        return UndefinedGrad.apply(*tensors)

    return call


def delayed_error(*arguments: Any) -> Any:
    """`torch._C._functions.DelayedError(message, num_inputs)(x)`: x, whose backward raises the message."""
    if len(arguments) != 2:
        raise RuntimeError(f"Requires two arguments, got {len(arguments)}")
    message, count = arguments
    if not isinstance(message, str):
        raise RuntimeError("argument 'msg' must be a string")
    if not isinstance(count, int):
        raise RuntimeError("argument 'num_inputs' must be an int")

    def call(*tensors: Any) -> Any:
        if len(tensors) != count:
            raise TypeError(f"expected {count} arguments, got {len(tensors)} instead")
        return Error.apply(message, *tensors)

    return call


class Hooks:
    """The default saved-tensor hooks as a stack, as `torch._C._autograd` shows them."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def push(self, pack: Any, unpack: Any) -> None:
        """Make these hooks the default."""
        block = graph.saved_tensors_hooks(pack, unpack)
        block.__enter__()
        self.entered.append(block)

    def pop(self) -> None:
        """Take the last default hooks away."""
        self.entered.pop().__exit__(None, None, None)


hooks = Hooks()
_functions = SimpleNamespace(
    UndefinedGrad=undefined_grad, DelayedError=delayed_error, AccumulateGrad=AccumulateGrad, Error=Error
)
_autograd = SimpleNamespace(
    SavedTensor=SavedTensor,
    _push_saved_tensors_default_hooks=hooks.push,
    _pop_saved_tensors_default_hooks=hooks.pop,
    kineto_available=lambda: False,
)


class Inner:
    """Functions by the names they have inside torch: `torch._C._linalg.linalg_norm` is `torch.linalg.norm`.

    The code of traced programs calls them so: see pullback.fx.
    """

    _parse_to: Any

    def __init__(self, space: str, prefix: str = "", **others: str) -> None:
        self._space, self._prefix, self._others = space, prefix, others

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(self._prefix) or name.startswith("__"):
            raise AttributeError(name)
        module: Any = pullback
        for part in self._space.split("."):
            module = getattr(module, part)
        return getattr(module, self._others.get(name, name.removeprefix(self._prefix)))


_nn = Inner("nn.functional", log_sigmoid="logsigmoid")
_linalg, _fft, _special = [Inner(space, f"{space}_") for space in ("linalg", "fft", "special")]
_TensorBase = pullback.Tensor
_FunctionBase = Function
Generator, Size, device, dtype = pullback.Generator, pullback.Size, pullback.device, pullback.dtype
layout, memory_format = pullback.layout, pullback.memory_format
_functorch = wrappers
StorageBase = pullback.UntypedStorage
_VariableFunctions = pullback
_TensorMeta = type(pullback.Tensor)
get_num_threads, set_num_threads = pullback.get_num_threads, pullback.set_num_threads


class _WeakTensorRef:
    """Knows whether a tensor still lives, without keeping it alive."""

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, pullback.Tensor):
            raise TypeError(f"_WeakTensorRef(): argument must be a Tensor, not {type(tensor).__name__}")
        self._ref = ref(tensor)

    def expired(self) -> bool:
        """Whether it is gone."""
        return self._ref() is None


def _get_default_device() -> str:
    """The device where tensors are made."""
    return str(pullback.get_default_device())


def _get_privateuse1_backend_name() -> str:
    """The name of a backend that programs could add elsewhere."""
    return "privateuseone"


def _is_multithreading_enabled() -> bool:
    """Whether backward may use several threads: it runs in one."""
    return False


def _get_cpu_capability() -> str:
    """What torch calls kernels without special instructions."""
    return "DEFAULT"


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of `module.to(...)` mean: device, dtype, non_blocking, memory format."""
    target, _, format, place, unwaited = to_arguments(args, kwargs)
    return None if place is None else pullback.device(place), target, unwaited, format


_nn._parse_to = _parse_to

# ------------------------------------------------------------------ the running backward

task_numbers: WeakKeyDictionary[Task, int] = WeakKeyDictionary()
next_number = count()


def _current_graph_task_id() -> int:
    """A number that stands for the running backward; -1 outside of one."""
    task = current_task.get()
    if task is None:
        return -1
    if task not in task_numbers:
        task_numbers[task] = next(next_number)
    return task_numbers[task]


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the running backward comes by this node."""
    task = current_task.get()
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return graph.will_run(task, target_of(node))


# ------------------------------------------------------------------ switches


class DisableTorchFunctionSubclass(Block):
    """In this block functions treat instances of subclasses as plain tensors."""

    def _before(self) -> Any:
        """What was asked before."""
        return torch_function_enabled.get(), function_modes.get()

    def _begin(self, before: Any) -> None:
        """Ask no subclass."""
        torch_function_enabled.set(False)

    def _end(self, before: Any) -> None:
        """Ask again."""
        torch_function_enabled.set(before[0])
        function_modes.set(before[1])


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """In this block neither subclasses nor modes are asked."""

    def _begin(self, before: Any) -> None:
        """Ask nobody."""
        super()._begin(before)
        function_modes.set(())


_disabled_torch_function_impl = disabled_torch_function


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode is asked about every call."""
    return bool(function_modes.get())


def _len_torch_function_stack() -> int:
    """How many modes there are around."""
    return len(function_modes.get())


def _is_torch_function_enabled() -> bool:
    """Whether subclasses decide about calls with their instances."""
    return torch_function_enabled.get()


def is_grad_enabled() -> bool:
    """Whether operations are recorded."""
    return pullback.is_grad_enabled()


def _set_grad_enabled(enabled: bool) -> None:
    """Record operations from here on, or not."""
    pullback.set_grad_enabled(enabled)


has_lapack = has_spectral = True
has_mkl = has_openmp = False
_has_cuda = _has_cudnn = _has_cusparselt = _has_kleidiai = _has_magma = _has_mkldnn = _has_mps = _has_xpu = False
"""What torch was built with: NumPy and SciPy do the linear algebra and the transforms."""


def _get_tracing_state() -> None:
    """There is no tracing compiler, so it never traces."""


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def __getattr__(name: str) -> Any:
    if name == "_LinAlgError":
        return pullback.linalg.LinAlgError
    raise AttributeError(f"pullback has no torch._C.{name}: only the Python parts of torch's interface exist")


# ------------------------------------------------------------------ ops and their schemas


class _AutoDispatchBelowAutograd(Block):
    """In this block ops that a program defined are not recorded: their kernels compute."""

    def _before(self) -> Any:
        """Whether it was so before."""
        return calls.below_autograd.get()

    def _begin(self, before: Any) -> None:
        """Below autograd."""
        calls.below_autograd.set(True)

    def _end(self, before: Any) -> None:
        """As it was."""
        calls.below_autograd.set(before)


parse_schema = schema.parse_schema
Argument, FunctionSchema = schema.Argument, schema.FunctionSchema
JitType, TensorType, IntType, FloatType, BoolType = (
    types.JitType,
    types.TensorType,
    types.IntType,
    types.FloatType,
    types.BoolType,
)
StringType, NumberType, DeviceObjType = types.StringType, types.NumberType, types.DeviceObjType
OptionalType, ListType, TupleType = types.OptionalType, types.ListType, types.TupleType
