"""Module: the base class of networks. It knows its parameters, buffers and submodules, and can save and load them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import pullback
from pullback import Tensor, is_grad_enabled
from pullback.autograd.locations import NOBODY, NOWHERE, getframe, here, own_stack
from pullback.autograd.tracebacks import trim
from pullback.autograd.who import explain
from pullback.nn.modules.base import convert, hooks, state
from pullback.nn.modules.base.hooks import (
    HOOK_TABLES,
    _WrappedHook,
    call_with_hooks,
    everywhere,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
    watched_call,
)
from pullback.nn.modules.base.names import attribute, check_name, indented, is_tensor_like, remove_from, renamed
from pullback.nn.modules.base.typename import typename
from pullback.nn.parameter import Buffer, Parameter

__all__ = [
    "Module",
    "_WrappedHook",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

M = TypeVar("M", bound="Module")
T_destination = TypeVar("T_destination", bound=dict[str, Any])


class Module:
    """Base class of all networks: assign parameters and submodules as attributes, write `forward`."""

    training: bool
    T_destination = T_destination
    dump_patches = False
    _version = 1
    call_super_init = False
    _closed = True  # nothing but this library runs in `forward`: see autograd/locations.py
    _shared_init: bool
    """Set by a class whose constructor counts as that of each class made of it: errors say `Conv2d.__init__()`."""
    _has_hooks = True  # until __init__ says otherwise: the slow call gives the right error where it never ran

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _is_full_backward_hook=None,
            **{table: OrderedDict() for table in HOOK_TABLES},
            _modules={},
            _has_hooks=False if self._closed else None,  # None: no hooks, but code of the user's may run in `forward`
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._closed = cls.__module__.startswith("pullback.")
        if cls._closed and "__init__" not in vars(cls) and "_shared_init" in vars(cls.__bases__[0]):
            cls.__init__ = renamed(cls.__init__, f"{cls.__name__}.__init__")  # type: ignore[method-assign]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass writes its own."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooked = self._has_hooks
        if not is_grad_enabled():
            try:
                if hooked:
                    return call_with_hooks(self, *args, **kwargs)
                return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
            except Exception as error:
                trim(error)
                raise
        stack = here()
        if stack is NOWHERE:
            stack = own_stack()
        outer = stack.scope
        if outer is None or not outer[4]:
            try:
                frame = getframe(1)
            except ValueError:
                frame = NOBODY
            stack.scope = (
                frame.f_code,
                frame.f_lasti,
                ref(self),
                outer,
                hooked is False,
            )  # nodes inside know this call
        else:  # called by the library: the user's line is that of the outer call
            stack.scope = (outer[0], outer[1], ref(self), outer, hooked is False)
        try:
            if hooked:
                return call_with_hooks(self, *args, **kwargs)
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        except Exception as error:
            explain(error, {"input": args[0] if len(args) == 1 else args})
            trim(error)
            raise
        finally:
            stack.scope = outer

    _call_impl = _wrapped_call_impl = call_with_hooks

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Run this module compiled from here on: `torch.compile`, in place."""
        known = self.__dict__.pop("forward", None)
        forward = self.forward if known is None else getattr(known, "_torchdynamo_orig_callable", known)
        self.__dict__["forward"] = pullback.compile(forward, *args, **kwargs)

    # ---------------------------------------------------------------- hooks and state, see the modules beside this one

    register_forward_pre_hook = hooks.register_forward_pre_hook
    register_forward_hook = hooks.register_forward_hook
    register_full_backward_pre_hook = hooks.register_full_backward_pre_hook
    register_full_backward_hook = hooks.register_full_backward_hook
    register_backward_hook = hooks.register_backward_hook

    get_extra_state = state.get_extra_state
    set_extra_state = state.set_extra_state
    state_dict = state.state_dict
    load_state_dict = state.load_state_dict
    _save_to_state_dict = state._save_to_state_dict
    _load_from_state_dict = state._load_from_state_dict
    _register_state_dict_hook = state.register_state_dict_hook
    register_state_dict_post_hook = state.register_state_dict_post_hook
    register_state_dict_pre_hook = state.register_state_dict_pre_hook
    _register_load_state_dict_pre_hook = state._register_load_state_dict_pre_hook
    register_load_state_dict_pre_hook = state.register_load_state_dict_pre_hook
    register_load_state_dict_post_hook = state.register_load_state_dict_post_hook

    # ---------------------------------------------------------------- attributes

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, reachable as an attribute."""
        check_name(self, name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        if param is not None and everywhere.parameter_registration:
            param = registered(everywhere.parameter_registration, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the state but not learnt."""
        check_name(self, name, "buffer", "_buffers")
        if tensor is not None and not is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered(everywhere.buffer_registration, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, reachable as an attribute."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = registered(everywhere.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The other name of add_module."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # made last, so the others are there too
            if name in (table := own["_parameters"]) or name in (table := own["_buffers"]):
                return table[name]
            if name in (table := own["_modules"]):
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            remove_from(self, name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or name in own.get("_modules", ()):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if isinstance(value, Module):
                remove_from(self, name, "_parameters", "_buffers")
            elif value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            own["_modules"][name] = registered(everywhere.module_registration, self, name, value)
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            if value is not None and not is_tensor_like(value):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                    "expected)"
                )
            is_new = isinstance(value, Buffer)
            self.register_buffer(
                name, value, value.persistent if is_new else name not in own["_non_persistent_buffers_set"]
            )
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        every = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({key for key in every if not key[:1].isdigit()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        hooked = any(self.__dict__[table] for table in HOOK_TABLES)
        self.__dict__.setdefault("_has_hooks", hooked or (False if self._closed else None))

    # ---------------------------------------------------------------- walking the tree

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The submodules directly below, with their names."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The submodules directly below."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        memo = set()
        tree = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in tree:
            for name, value in get_members_fn(module):
                if value is None or value in memo:
                    continue
                if remove_duplicate:
                    memo.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The submodule with this dotted name."""
        module = self
        for item in target.split(".") if target else []:
            module = attribute(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place with this dotted name; with `strict`, there must be one."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(attribute(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with this dotted name."""
        path, _, name = target.rpartition(".")
        param = attribute(self.get_submodule(path), name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = attribute(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # ---------------------------------------------------------------- changing everything below

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` on every submodule, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    _apply = convert._apply
    to = convert.to
    to_empty = convert.to_empty
    type = convert.type_
    float = convert.float_
    double = convert.double
    half = convert.half
    bfloat16 = convert.bfloat16
    cpu = convert.cpu
    cuda = convert.cuda
    ipu = convert.ipu
    xpu = convert.xpu
    mtia = convert.mtia
    share_memory = convert.share_memory

    def train(self: M, mode: bool = True) -> M:
        """Set training mode here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set requires_grad of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
                continue
            if param.grad is None:
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()

    # ---------------------------------------------------------------- printing

    def extra_repr(self) -> str:
        """What the printed module says of itself."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        lines = extra_lines + child_lines
        if not lines:
            return f"{self._get_name()}()"
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


everywhere.watch_calls = lambda: setattr(Module, "__call__", watched_call)


if TYPE_CHECKING:

    class Layer(Module):
        """A module whose `forward` gives one tensor, for type checkers: so does a call. When programs run, Module."""

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

else:
    Layer = Module
