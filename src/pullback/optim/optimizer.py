"""Optimizer: parameter groups, state, hooks and files. The update rules stand in the other modules of this package.

param_groups ... a list of dicts: "params" and the options of that group
state .......... what an update rule remembers of each parameter
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from threading import get_ident
from typing import Any, TypeAlias

import pullback as torch
from pullback import Tensor
from pullback._modes import modes
from pullback.autograd.tracebacks import trim, trimming
from pullback.nn.parameter import Parameter
from pullback.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Params = Iterable[Any]
ParamsT = Iterable[Any]
Hook = Callable[..., Any]

global_pre_hooks: dict[int, Hook] = OrderedDict()
global_post_hooks: dict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return added(global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return added(global_post_hooks, hook)


def added(hooks: dict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Put a hook at the end of the list, or at its start."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)  # type: ignore[attr-defined]
    return handle


class Required:
    """Stands for an option that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()


class Optimizer:
    """What all optimizers share.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of their own.
        defaults: the options of groups that do not set them.
    """

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.make_hook_tables()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + torch.typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    OptimizerPreHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A step that calls the hooks before and after it: what every class gets when its first instance is made."""
        return with_hooks(func)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("pullback.") and "__init__" in vars(cls):
            cls.__init__ = trimming(cls.__init__)  # type: ignore[method-assign]

    def make_hook_tables(self) -> None:
        """Empty lists of hooks; a pickled optimizer comes back without any."""
        for table in HOOK_TABLES:
            setattr(self, table, OrderedDict())

    def _patch_step_function(self) -> None:
        """Make `step` of this class call the hooks, once."""
        if not getattr(type(self).step, "hooked", None):
            type(self).step = self.profile_hook_step(type(self).step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"

    # ---------------------------------------------------------------- hooks

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return added(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return added(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` collects."""
        return added(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after; what it returns takes the place of the state dict."""
        return added(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns is loaded instead."""
        return added(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return added(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    # ---------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """State and groups with numbers in place of the parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            groups.append(packed | {"params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        out: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, out)
            out = out if changed is None else changed
        return out

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and the options of a state dict; the parameters stay."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(own["params"]) != len(other["params"]) for own, other in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = chain.from_iterable(group["params"] for group in saved)
        parameters = dict(zip(numbers, chain.from_iterable(group["params"] for group in groups)))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                state[parameters[key]] = cast_state(parameters[key], value)
            else:
                state[key] = value
        for own, other in zip(groups, saved):
            other["params"] = own["params"]
            if "param_names" in own and "param_names" not in other:
                other["param_names"] = own["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                    continue
                if p.grad is None:
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters; defined by each optimizer."""
        raise NotImplementedError

    def _in_one_call(self) -> bool:
        """Do what `step()` does, at once; False if nothing was done, because there is more to it than one call."""
        return False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize further parameters, with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        take_names(param_group)
        check_parameters(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint({id(p) for p in params}):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            kind = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {kind} names to the optimizer"
            )
        self.param_groups.append(param_group)


HOOK_TABLES = tuple(
    [
        f"_optimizer_{event}_{when}_hooks"
        for event in ("step", "state_dict", "load_state_dict")
        for when in ("pre", "post")
    ]
)


def take_names(group: dict[str, Any]) -> None:
    """Split (name, tensor) pairs into "params" and "param_names"."""
    pairs = [isinstance(p, tuple) for p in group["params"]]
    if not any(pairs):
        return
    if not all(pairs):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["param_names"] = [name for name, _ in group["params"]]
    group["params"] = [p for _, p in group["params"]]


def check_parameters(params: list[Any]) -> None:
    """Only leaves can be optimized."""
    for p in params:
        if not isinstance(p, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is " + torch.typename(p))
        if not (p.is_leaf or p.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")


def cast_state(parameter: Tensor, value: Any, key: str | None = None) -> Any:
    """State from a file in the dtype and on the device of its parameter; step counts stay as they are."""
    if isinstance(value, Tensor):
        if key == "step":
            return value
        if not parameter.is_floating_point():
            return value.to(device=parameter.device)
        return value.to(dtype=parameter.dtype, device=parameter.device)
    if isinstance(value, dict):
        return {k: cast_state(parameter, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(cast_state(parameter, v, key) for v in value)
    return value


def is_recorded(step: Any, scheduler: Any, *args: Any) -> bool:
    """Whether a compiled function is being recorded: the recorder has done the step then, and its programs do it."""
    recorder = modes.recorders.get(get_ident()) if modes.recorders else None
    if recorder is None:
        return False
    recorder.scheduler_step(step, scheduler, args)
    return True


def has_hooks(optimizer: Optimizer) -> bool:
    """Whether a step calls functions of the user's before or after it."""
    return bool(
        global_pre_hooks
        or global_post_hooks
        or optimizer._optimizer_step_pre_hooks  # type: ignore[attr-defined]
        or optimizer._optimizer_step_post_hooks  # type: ignore[attr-defined]
    )


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` between its hooks, those of all optimizers first."""

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if modes.recorders and (recorder := modes.recorders.get(get_ident())) is not None:
            if not args and not kwargs:
                return recorder.optimizer_step(self, wrapped)
            recorder.fail("an optimizer was given a closure")
        try:
            for hook in chain(global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):  # type: ignore[attr-defined]
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            out = step(self, *args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), global_post_hooks.values()):  # type: ignore[attr-defined]
                hook(self, args, kwargs)
            return out
        except Exception as error:
            trim(error)
            raise

    wrapped.hooked = True  # type: ignore[attr-defined]
    return wrapped


# ------------------------------------------------------------------ what optimizers of others are written with

_params_doc = "params (iterable): parameters or named parameters to optimize, or dicts that define groups of them"
_foreach_doc = "foreach (bool, optional): chooses between implementations elsewhere; here there is one (default: None)"
_fused_doc = "fused (bool, optional): chooses between implementations elsewhere; here there is one (default: None)"
_capturable_doc = "capturable (bool, optional): for graphs of CUDA, which are not here (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether autograd goes through the step (default: False)"
_maximize_doc = "maximize (bool, optional): maximize instead of minimizing (default: False)"
DeviceDict = dict[Any, Tensor]
_foreach_supported_types = [Tensor, Parameter]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is recorded if the optimizer is differentiable, and not otherwise."""

    @functools.wraps(func)
    def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """A number, also from a tensor."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """A list as it is: nothing is compiled."""
    return x


def _to_scalar(x: Any) -> Any:
    """An option given as a tensor with one element, without dimensions."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Put pairs of real numbers in the place of complex parameters and of what belongs to them."""
    for i, parameter in enumerate(params):
        if parameter.is_complex():
            for row in (params, *state_and_grads):
                row[i] = torch.view_as_real(row[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of counters of steps."""
    return torch.float64 if torch.get_default_dtype() == torch.float64 and not is_fused else torch.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose graphs could capture a step."""
    return ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * supports_xla]


def _default_to_fused_or_foreach(params: list[Any], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Which implementation torch would choose for tensors on the CPU: `(fused, foreach)`."""
    plain = all([p is None or (type(p) in _foreach_supported_types and p.is_floating_point()) for p in params])
    return not differentiable and use_fused and plain, not differentiable and all([p is None for p in params])


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Refuse what fused optimizers do not take."""
    devices = ["mps", *["cuda"] * (not cuda_unsupported), "xpu", "hpu", "cpu", "mtia", "privateuseone"]
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that does nothing: nothing is compiled."""
    return lambda func: func
