"""The state of modules: `state_dict`, `load_state_dict` and their hooks, as methods of Module."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pullback
from pullback import Tensor
from pullback.autograd.tracebacks import trim
from pullback.nn.modules.base.hooks import _WrappedHook, add
from pullback.nn.parameter import Parameter, is_lazy
from pullback.utils.hooks import RemovableHandle

EXTRA_STATE = "_extra_state"
"""The key, behind the module's prefix, of what get_extra_state gives."""


class _IncompatibleKeys(NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])):
    """What load_state_dict returns: the keys that did not match."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    __str__ = __repr__


# ------------------------------------------------------------------ hooks


def register_state_dict_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, state_dict, prefix, local_metadata)` at the end of state_dict; it may return another dict."""
    if getattr(hook, "_from_public_api", False):
        raise RuntimeError(
            "Cannot register the same function as the state dict post hook that was previously registered via "
            "register_state_dict_post_hook"
        )
    return add(self._state_dict_hooks, hook)


def register_state_dict_post_hook(self: Any, hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, state_dict, prefix, local_metadata)` at the end of state_dict; it may change the dict."""
    hook._from_public_api = True  # type: ignore[attr-defined]
    return add(self._state_dict_hooks, hook)


def register_state_dict_pre_hook(self: Any, hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, prefix, keep_vars)` before the state is collected."""
    return add(self._state_dict_pre_hooks, hook)


def _register_load_state_dict_pre_hook(
    self: Any, hook: Callable[..., None], with_module: bool = False
) -> RemovableHandle:
    """Call the hook before the state of this module is loaded, with what `_load_from_state_dict` gets."""
    return add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))


def register_load_state_dict_pre_hook(self: Any, hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, state_dict, prefix, ...)` before the state of this module is loaded."""
    return _register_load_state_dict_pre_hook(self, hook, with_module=True)


def register_load_state_dict_post_hook(self: Any, hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, incompatible_keys)` after the state of this module and those below is loaded."""
    return add(self._load_state_dict_post_hooks, hook)


# ------------------------------------------------------------------ saving


def get_extra_state(self: Any) -> Any:
    """What else belongs into the state dict; subclasses may write it, together with set_extra_state."""
    raise RuntimeError(
        "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )


def set_extra_state(self: Any, state: Any) -> None:
    """Take back what get_extra_state gave."""
    raise RuntimeError(
        "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )


def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Put the state of this module, not of those below, into `destination`."""
    for name, value in state_of(self).items():
        destination[prefix + name] = value if keep_vars else value.detach()
    if type(self).get_extra_state is not get_extra_state:
        destination[prefix + EXTRA_STATE] = self.get_extra_state()


def state_of(self: Any) -> dict[str, Tensor]:
    """The parameters and persistent buffers of this module by name."""
    state = {name: param for name, param in self._parameters.items() if param is not None}
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            state[name] = buffer
    return state


def state_dict(self: Any, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
    """All parameters and persistent buffers by dotted name."""
    if args:
        warnings.warn(
            "Positional args are being deprecated, use kwargs instead. Refer to "
            "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
            FutureWarning,
            stacklevel=2,
        )
        destination = args[0] if destination is None else destination
        prefix = args[1] if len(args) > 1 and prefix == "" else prefix
        keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        out = hook(self, destination, prefix, local_metadata)
        if out is not None:
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = out
    return destination


# ------------------------------------------------------------------ loading


def _load_from_state_dict(
    self: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the state of this module, not of those below; what does not fit is added to the three lists."""
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    state = state_of(self)
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, param in state.items():
        key = prefix + name
        if key in state_dict:
            problem = load_one(self, name, param, key, state_dict[key], assign)
            if problem:
                error_msgs.append(problem)
        elif strict:
            missing_keys.append(key)
    extra_key = prefix + EXTRA_STATE
    if type(self).set_extra_state is not set_extra_state:
        if extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (self._modules if dot else state):
                    unexpected_keys.append(key)


NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
    "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
    "the module instead of copying them in place?)"
)


def load_one(self: Any, name: str, param: Tensor, key: str, value: Any, assign: bool) -> str | None:
    """Load one parameter or buffer; the text of the problem if it does not fit."""
    if not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
    if not is_lazy(param):
        if len(param.shape) == 0 and tuple(value.shape) == (1,):
            value = value[0]  # checkpoints older than 0-d tensors
        if value.shape != param.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {param.shape}."
            )
    try:
        with pullback.no_grad():
            if assign:
                setattr(self, name, as_assigned(param, value))
            else:
                if param.is_meta and not value.is_meta:
                    warnings.warn(NO_OP.format(key), stacklevel=2)
                param.copy_(value)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
    return None


def as_assigned(param: Tensor, value: Tensor) -> Tensor:
    """The checkpoint's tensor as it takes the place of `param`, whose requires_grad stays."""
    if not isinstance(param, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(param.requires_grad)
    return Parameter(value, requires_grad=param.requires_grad)


def load_state_dict(
    self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
) -> _IncompatibleKeys:
    """Copy a state dict into parameters and buffers (with `assign`, take its tensors over)."""
    try:
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        keys = _IncompatibleKeys([], [])
        error_msgs: list[str] = []
        load_tree(self, state, "", metadata, assign, keys, error_msgs)
        if strict:
            for wrong, kind in ((keys.unexpected_keys, "Unexpected"), (keys.missing_keys, "Missing")):
                if wrong:
                    quoted = ", ".join(f'"{key}"' for key in wrong)
                    error_msgs.insert(0, f"{kind} key(s) in state_dict: {quoted}. ")
        if error_msgs:
            shown = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{shown}")
        return keys
    except Exception as error:
        trim(error)
        raise


def load_tree(
    module: Any,
    state: dict[str, Any],
    prefix: str,
    metadata: Any,
    assign: bool,
    keys: _IncompatibleKeys,
    error_msgs: list[str],
) -> None:
    """Load a module, then those below it."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, local_metadata, True, *keys, error_msgs)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(below)}
            load_tree(child, part, below, metadata, assign, keys, error_msgs)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )
