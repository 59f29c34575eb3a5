"""Hook lists and the handles that remove from them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import ref

next_id = count().__next__

HookDict = OrderedDict[int, Callable[..., Any]]


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away again; also a context manager."""

    __module__ = "pullback.utils.hooks"  # its public home, by which checkpoints name it

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = ref(hooks_dict)
        self.id = next_id()
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict] if extra_dict is not None else []
        self.extra_dict_ref = tuple(ref(d) for d in extra)

    def remove(self) -> None:
        """Remove the hook; removing twice is harmless."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id)

    def __setstate__(self, state: Any) -> None:
        hooks = OrderedDict() if state[0] is None else state[0]
        self.hooks_dict_ref, self.id, self.extra_dict_ref = ref(hooks), state[1], ()


def register(hooks: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Append a hook to a dict of hooks."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class NodeHooks:
    """The hooks of one node, in the order the engine runs them.

    tensor_pre .... [(output_nr, dict)]: hooks of tensors, see their own gradient, may replace it
    retain ........ {output_nr: weakref to a tensor that keeps its gradient}
    pre ........... hooks on the node, see and may replace all incoming gradients
    post .......... hooks on the node, see what came in and what goes out
    """

    __slots__ = ("post", "pre", "retain", "tensor_pre")

    def __init__(self) -> None:
        self.tensor_pre: list[tuple[int, HookDict]] = []
        self.retain: dict[int, ref[Any]] = {}
        self.pre: list[HookDict] = []
        self.post: list[HookDict] = []
