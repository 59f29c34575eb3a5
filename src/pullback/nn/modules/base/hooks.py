"""The hooks of modules: registering them, and a call that runs them.

A call without hooks never comes here. `Module.__call__` asks one flag, which registering a hook sets; registering a
hook for all modules replaces `Module.__call__` itself (see the end of module.py).
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

from pullback import Tensor
from pullback.autograd.locations import NOBODY, call_of, getframe, own_stack
from pullback.utils.hooks import BackwardHook, RemovableHandle

Hook = Callable[..., Any]

HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
"""The dicts of hooks every module has, by name."""


class Everywhere:
    """The hooks that run for all modules."""

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always_called: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.is_full_backward: bool | None = None
        self.parameter_registration: OrderedDict[int, Hook] = OrderedDict()
        self.buffer_registration: OrderedDict[int, Hook] = OrderedDict()
        self.module_registration: OrderedDict[int, Hook] = OrderedDict()
        self.watch_calls: Callable[[], None] = lambda: None
        """Makes every call of a module look for hooks; set by module.py."""


everywhere = Everywhere()


class _WrappedHook:
    """A hook that is given the module it was registered on, which it does not keep alive."""

    __module__ = "pullback.nn.modules.module"  # where checkpoints look for it, as torch has it there

    def __init__(self, hook: Hook, module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if module is not None:
            self.module = ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = ref(state["module"])


# ------------------------------------------------------------------ registering, as methods of Module


def add(hooks: Any, hook: Hook, prepend: bool = False, **marks: Any) -> RemovableHandle:
    """Put a hook into its dict, and its id into the dicts that mark what is special about it."""
    marked = [table for table in marks.values() if table is not None]
    handle = RemovableHandle(hooks, extra_dict=marked)
    hooks[handle.id] = hook
    for table in marked:
        table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_forward_pre_hook(
    self: Any, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Call `hook(module, args)` before each forward; what it returns replaces the arguments."""
    self._has_hooks = True
    marks = self._forward_pre_hooks_with_kwargs if with_kwargs else None
    return add(self._forward_pre_hooks, hook, prepend, with_kwargs=marks)


def register_forward_hook(
    self: Any, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after each forward; what it returns replaces the output."""
    self._has_hooks = True
    return add(
        self._forward_hooks,
        hook,
        prepend,
        with_kwargs=self._forward_hooks_with_kwargs if with_kwargs else None,
        always_call=self._forward_hooks_always_called if always_call else None,
    )


def register_full_backward_pre_hook(self: Any, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Call `hook(module, grad_output)` when the gradients of the outputs are known; it may replace them."""
    self._has_hooks = True
    return add(self._backward_pre_hooks, hook, prepend)


MIXED_HERE = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)
MIXED_EVERYWHERE = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of "
    "them."
)


def register_full_backward_hook(self: Any, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known; it may replace them."""
    if self._is_full_backward_hook is False:
        raise RuntimeError(MIXED_HERE)
    self._is_full_backward_hook = True
    self._has_hooks = True
    return add(self._backward_hooks, hook, prepend)


def register_backward_hook(self: Any, hook: Hook) -> RemovableHandle:
    """The old hook on the node that made the output; use register_full_backward_hook."""
    if self._is_full_backward_hook is True:
        raise RuntimeError(MIXED_HERE)
    self._is_full_backward_hook = False
    self._has_hooks = True
    return add(self._backward_hooks, hook)


# ------------------------------------------------------------------ registering for all modules


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module."""
    everywhere.watch_calls()
    return add(everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module."""
    everywhere.watch_calls()
    return add(
        everywhere.forward,
        hook,
        with_kwargs=everywhere.forward_with_kwargs if with_kwargs else None,
        always_call=everywhere.forward_always_called if always_call else None,
    )


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` for every module."""
    everywhere.watch_calls()
    return add(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for every module."""
    if everywhere.is_full_backward is False:
        raise RuntimeError(MIXED_EVERYWHERE)
    everywhere.is_full_backward = True
    everywhere.watch_calls()
    return add(everywhere.backward, hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The old backward hook, for every module."""
    if everywhere.is_full_backward is True:
        raise RuntimeError(MIXED_EVERYWHERE)
    everywhere.is_full_backward = False
    everywhere.watch_calls()
    return add(everywhere.backward, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, param)` whenever a parameter is registered; it may replace it."""
    return add(everywhere.parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a buffer is registered; it may replace it."""
    return add(everywhere.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a submodule is registered; it may replace it."""
    return add(everywhere.module_registration, hook)


def registered(hooks: OrderedDict[int, Hook], module: Any, name: str, value: Any) -> Any:
    """What registration hooks make of a value."""
    for hook in hooks.values():
        replaced = hook(module, name, value)
        value = value if replaced is None else replaced
    return value


# ------------------------------------------------------------------ a call with hooks


def watched_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`Module.__call__` while there are hooks for all modules."""
    stack = own_stack()
    outer, call = stack.scope, call_of(getframe(0))
    stack.scope = (*((NOBODY.f_code, 0) if call is None else call[:2]), ref(self), outer, False)
    try:
        return call_with_hooks(self, *args, **kwargs)
    finally:
        stack.scope = outer


def call_with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Module.__call__ where somebody wants to know."""
    full, legacy = backward_hooks_of(self)
    pre = [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]
    called: set[int] = set()
    result = None
    try:
        args, kwargs = run_forward_pre_hooks(self, args, kwargs)
        around = BackwardHook(self, full, pre) if full or pre else None
        if around is not None:
            args = around.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for key, hook, with_kwargs, always in forward_hooks_of(self):
            if always:
                called.add(key)
            out = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if out is not None:
                result = out
        if around is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=2,
                )
            result = around.setup_output_hook(result)
        if legacy:
            register_on_node(self, legacy, args, result)
        return result
    except Exception:
        run_always_called(self, called, args, kwargs, result)
        raise


def backward_hooks_of(self: Any) -> tuple[list[Hook], list[Hook]]:
    """The full backward hooks and the old ones; those of all modules first."""
    full: list[Hook] = []
    legacy: list[Hook] = []
    if everywhere.backward:
        (full if everywhere.is_full_backward else legacy).extend(everywhere.backward.values())
    if self._backward_hooks:
        (full if self._is_full_backward_hook else legacy).extend(self._backward_hooks.values())
    return full, legacy


def forward_hooks_of(self: Any) -> list[tuple[int, Hook, bool, bool]]:
    """(id, hook, wants kwargs, is always called) of each forward hook; those of all modules first."""
    shared = [
        (key, hook, key in everywhere.forward_with_kwargs, key in everywhere.forward_always_called)
        for key, hook in everywhere.forward.items()
    ]
    return shared + [
        (key, hook, key in self._forward_hooks_with_kwargs, key in self._forward_hooks_always_called)
        for key, hook in self._forward_hooks.items()
    ]


def run_forward_pre_hooks(
    self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the pre-hooks leave them."""
    for key, hook in (*everywhere.forward_pre.items(), *self._forward_pre_hooks.items()):
        if key in self._forward_pre_hooks_with_kwargs:
            both = hook(self, args, kwargs)
            if both is not None:
                if not (isinstance(both, tuple) and len(both) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {both}."
                    )
                args, kwargs = both
        else:
            out = hook(self, args)
            if out is not None:
                args = out if isinstance(out, tuple) else (out,)
    return args, kwargs


def run_always_called(self: Any, called: set[int], args: Any, kwargs: Any, result: Any) -> None:
    """After an error, run the hooks that asked to be called in any case; their own errors become warnings."""
    for key, hook, with_kwargs, always in forward_hooks_of(self):
        if not always or key in called:
            continue
        try:
            out = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
        except Exception as error:
            whose = "global module" if key in everywhere.forward else "module"
            warnings.warn(
                f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                f"error was raised in forward: {error}",
                stacklevel=3,
            )
            continue
        result = result if out is None else out


# ------------------------------------------------------------------ old backward hooks


def register_on_node(self: Any, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
    """Hang the old backward hooks on the node of the first output, and say where that is not the whole module."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(value for value in first.values() if isinstance(value, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_WrappedHook(hook, self))
    text = why_incomplete(args, (result,) if isinstance(result, Tensor) else result, node)
    if text:
        warnings.warn(text, FutureWarning, stacklevel=3)


USE_FULL = " Please use register_full_backward_hook to get the documented behavior."
DEPRECATED = " is deprecated and will be removed in future versions. This hook will be missing some"


def why_incomplete(args: Any, result: Any, node: Any) -> str | None:
    """Torch's warning where an old backward hook does not see all gradients of the module."""
    not_tensors = "Using non-full backward hooks on a Module that does not {} a single Tensor or a tuple of Tensors"
    if not (isinstance(result, tuple) and all(isinstance(r, Tensor) for r in result)):
        return not_tensors.format("return") + DEPRECATED + " of the grad_output." + USE_FULL
    if not (isinstance(args, tuple) and all(isinstance(a, Tensor) for a in args)):
        return not_tensors.format("take as input") + DEPRECATED + " of the grad_input." + USE_FULL
    made_by = {r.grad_fn for r in result if r.grad_fn is not None}
    if len(made_by) == 0 or (len(made_by) == 1 and node not in made_by):
        return (
            "Using a non-full backward hook when outputs are nested in python data structure"
            + DEPRECATED
            + " grad_output."
        )
    if len(made_by) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes"
            + DEPRECATED
            + " grad_output."
            + USE_FULL
        )
    if {a.grad_fn for a in args if a.grad_fn is not None} != {n[0] for n in node.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes"
            + DEPRECATED
            + " grad_input."
            + USE_FULL
        )
    return None
