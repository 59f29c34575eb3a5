"""`custom_op`: a Python function as an op, with a name in `torch.ops`, a schema, a derivative and rules of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from pullback._runtime.warnings import warn_once
from pullback.library.infer import infer_schema
from pullback.library.libraries import Library, check_functional, dispatch_key, kwarg_only_tensors, tensor_arguments
from pullback.library.overloads import OpOverload, definition_of
from pullback.library.schema import parse_schema
from pullback.library.tags import Tag, tags_of
from pullback.library.types import DeviceObjType

log = logging.getLogger(__name__)

OPDEFS: dict[str, CustomOpDef] = {}
"""Every custom op by its name."""
libraries: dict[str, Library] = {}
"""The library each custom op lives in: a second definition of the same name takes the place of the first."""


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an op of a function: `@custom_op("my::scale", mutates_args=())`.

    The schema is read from the annotations unless it is given; `mutates_args` names the tensors that are written to.
    """

    def inner(function: Callable[..., Any]) -> CustomOpDef:
        given = tags_of(tags)
        text = infer_schema(function, mutates_args=mutates_args, tags=given) if schema is None else schema
        namespace, opname = name.split("::")
        made = CustomOpDef(namespace, opname, text, function, given)
        if schema is not None:
            check_mutated(made._opoverload, mutates_args, schema)
        made.register_kernel(device_types)(function)
        return made

    return inner if fn is None else inner(fn)


def check_mutated(op: OpOverload, mutates_args: Any, schema: str) -> None:
    """Raise if a given schema and `mutates_args` contradict each other."""
    written = {a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    if written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema "
            f"suggests that the op mutates {written}which is different from what was provided to us in `mutates_args`. "
            "Please make these consistent."
        )


class CustomOpDef:
    """A custom op: call it, or register more of what it does."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._tags = tags_of(tags)
        self._init_fn = fn
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._abstract_fn: Callable[..., Any] | None = None
        self._setup_context_fn: Callable[..., Any] | None = None
        self._backward_fn: Callable[..., Any] | None = None
        self._torch_dispatch_fns: dict[type, Callable[..., Any]] = {}
        self._vmap_fn: Callable[..., Any] | None = None
        self._disabled_kernel: set[str] = set()
        text = name + schema
        parsed = parse_schema(text, namespace)
        if kwarg_only_tensors(parsed) and Tag.out not in self._tags:
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: " + text
            )
        before = libraries.pop(self._qualname, None)
        if before is not None:
            before._destroy()
        self._lib = libraries[self._qualname] = Library(namespace, "FRAGMENT")
        self._lib.define(text, tags=(Tag.pt2_compliant_tag, *[t for t in self._tags if t is not Tag.pt2_compliant_tag]))
        definition: Any = definition_of(self._qualname)
        definition.custom = definition.autograd = self
        definition.fake = self._fake
        self._opoverload: OpOverload = self._lib._overload(name)
        self._returns_arguments = Tag.inplace in self._tags or Tag.out in self._tags
        earlier = OPDEFS.get(self._qualname)
        self._earlier: list[CustomOpDef] = [] if earlier is None else [*earlier._earlier, earlier]
        for one in self._earlier:
            one._opoverload = self._opoverload  # a name has one op, the last that was defined
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    # ---------------------------------------------------------------- kernels

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register what computes it on some devices; None for all."""
        schema = self._opoverload._schema
        if device_types is not None and not tensor_arguments(schema):
            if not any([isinstance(a.type, DeviceObjType) and a.name == "device" for a in schema.arguments]):
                raise ValueError(
                    "Functions without tensor inputs are required to have a `device: torch.device` argument"
                )

        def inner(function: Callable[..., Any]) -> Callable[..., Any]:
            kinds = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
            for kind in kinds:
                self._backend_fns[kind] = self._switched(kind, function)
                key = "CompositeExplicitAutograd" if kind is None else dispatch_key(kind)
                self._lib.impl(self._name, self._backend_fns[kind], key)
            return function

        return inner if fn is None else inner(fn)

    def _check_device(self, args: tuple[Any, ...]) -> None:
        """Raise if there is no kernel for the device that a call without tensors names."""
        names = [argument.name for argument in self._opoverload._schema.arguments]
        if None in self._backend_fns or "device" not in names or names.index("device") >= len(args):
            return
        place = args[names.index("device")].type
        if place not in self._backend_fns:
            raise RuntimeError(
                f"{self._name} does not have a kernel registered for {place}. Please use register_kernel to do so."
            )

    def _switched(self, kind: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel that gives way to the first one while it is disabled."""

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            chosen = self._init_fn if kind in self._disabled_kernel else function
            return chosen(*args, **kwargs)

        return run

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which the kernel of a device is not used, or is used again."""
        disabled = device_type in self._disabled_kernel
        action = "enable" if enabled else "disable"
        if device_type not in self._backend_fns:
            log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.", action, device_type
            )
        if enabled and not disabled:
            log.warning("Attempted to enable kernel for  %s but it was already enabled.", device_type)
        elif not enabled and disabled:
            log.warning("Attempted to disable kernel for %s but it was already disabled.", device_type)
        try:
            if enabled:
                self._disabled_kernel.discard(device_type)
            else:
                self._disabled_kernel.add(device_type)
            yield
        finally:
            if disabled:
                self._disabled_kernel.add(device_type)
            else:
                self._disabled_kernel.discard(device_type)

    # ---------------------------------------------------------------- tensors without elements

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register what it does to tensors without elements, as those on the meta device."""
        if self._returns_arguments:
            tag = "torch.Tag.inplace" if Tag.inplace in self._tags else "torch.Tag.out"
            warn_once(
                f"The fake registration for {self} is unnecessary. Custom ops tagged with {tag} already get an "
                "autogenerated fake kernel. The provided fake impl will be used instead.",
            )
        self._abstract_fn = fn
        return fn

    def _fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        schema = self._opoverload._schema
        if Tag.out in self._tags:
            outs = tuple([kwargs[a.name] for a in schema.arguments if a.is_out])
            return outs[0] if len(outs) == 1 else outs
        if Tag.inplace in self._tags:
            return args[0]
        if schema.is_mutable and not schema.returns:
            return None
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to "
            f"work. Please use `{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    # ---------------------------------------------------------------- derivative, batches, modes

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register its derivative: `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)` to save for it."""
        if Tag.out in self._tags:
            raise RuntimeError(
                f"Cannot register autograd formula for operator tagged with torch.Tag.out: {self}. Out variants do not "
                "support autograd."
            )
        check_functional(self, self._opoverload._schema)
        self._backward_fn, self._setup_context_fn = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Register what it does on a batch: `func(info, in_dims, *args)` returns the result and where its batch is."""

        def register(function: Callable[..., Any]) -> None:
            self._vmap_fn = self._opoverload._definition.vmap = function

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register what it does in a mode, or for tensors of a subclass."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._torch_dispatch_fns[torch_dispatch_class] = function
            self._opoverload._definition.rules[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Not available: custom ops compute in the dtype they are given."""
        raise NotImplementedError("register_autocast is not available in pullback; cast the inputs inside of the op")
