"""`torch.library`: defining ops by their schemas, and registering what they do."""

from __future__ import annotations

import re
import sys
import warnings
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NoReturn

from pullback.autograd.locations import place_text
from pullback.library import calls
from pullback.library.overloads import Definition, OpOverload, definition_of, forget, ops
from pullback.library.overloads import define as define_overload
from pullback.library.schema import FunctionSchema, parse_schema
from pullback.library.tags import tags_of
from pullback.library.types import TensorType

BACKENDS = ("CPU", "CUDA", "Meta", "MPS", "XPU", "XLA", "IPU", "HPU", "MTIA", "PrivateUse1")
KEYS = {
    *BACKENDS,
    *[f"Autograd{name}" for name in (*BACKENDS, "", "Other")],
    *[f"Autocast{name}" for name in BACKENDS],
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    *("BackendSelect", "Python", "Functionalize", "ADInplaceOrView", "FuncTorchBatched", "Tracer", "Undefined"),
}
"""Torch's dispatch keys."""
defining: dict[str, str] = {}
"""The namespaces that belong to one library, and where that was made."""


def dispatch_key(device_type: str) -> str:
    """The dispatch key of a type of devices."""
    found = next((key for key in BACKENDS if key.lower() == device_type.lower()), None)
    if found is None:
        raise RuntimeError(
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
            "vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: " + device_type
        )
    return found


def qualified(name: str) -> tuple[str, str]:
    """`my::scale` in its two parts."""
    parts = name.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {name}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def place_of_caller() -> str:
    """The line of the program that is running."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        frame = frame.f_back
    return place_text(frame.f_code.co_filename, frame.f_lineno)


class Library:
    """Ops of one namespace that are defined ("DEF", "FRAGMENT") or implemented ("IMPL") together."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self._place = place_of_caller()
        if kind == "DEF":
            if ns in defining:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                    "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                    "explicitly indicate this.  Previous registration of TORCH_LIBRARY was registered at "
                    f"{defining[ns]}; latest registration was registered at {self._place}"
                )
            defining[ns] = self._place
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._definitions: list[Definition] = []
        self._undo: list[Callable[[], None]] = []
        """What takes back what was registered for ops of others."""
        self._alive = [True]
        self._end = weakref.finalize(
            self, end, ns if kind == "DEF" else None, self._definitions, self._undo, self._alive
        )
        self._end.atexit = False

    @property
    def m(self) -> Any:
        """Itself while it lives; None once it was destroyed."""
        return self if self._alive[0] else None

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def _check(self) -> None:
        if not self._alive[0]:
            raise AssertionError("Library object has been destroyed")

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its schema, "scale(Tensor x, float by) -> Tensor"; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        self._check()
        parsed = parse_schema(schema, self.ns)
        space, _, name = parsed.name.partition("::")
        if space != self.ns:
            raise RuntimeError(
                f"Explicitly provided namespace ({space}) in schema string does not match namespace of enclosing "
                f"TORCH_LIBRARY block ({self.ns}).  Move this definition to the (unique) TORCH_LIBRARY block "
                "corresponding to this namespace (and consider deleting the namespace from your schema string.)  "
                f"(Error occurred while processing TORCH_LIBRARY block at {self._place})"
            )
        overload = f".{parsed.overload_name}" if parsed.overload_name else ""
        before = definition_of(f"{parsed.name}{overload}")
        if before is not None:
            raise RuntimeError(
                f"Tried to register an operator ({parsed}) with the same name and overload name multiple times. Each "
                "overload's schema should only be registered with a single call to def(). Duplicate registration: "
                f"registered at {self._place}. Original registration: registered at {before.place}"
            )
        definition = Definition(parsed, tags_of(tags), self._place, self)
        definition.owner = None
        define_overload(definition)
        self._definitions.append(definition)
        return name

    def _named(self, op_name: Any, api: str) -> str:
        """The full name of an op that is named, or given itself."""
        if isinstance(op_name, OpOverload):
            return op_name.name()
        if not isinstance(op_name, str):
            raise RuntimeError(
                f"{api} should be passed either a name or an OpOverload object as the first argument, got "
                f"{type(op_name)}"
            )
        return op_name if "::" in op_name else f"{self.ns}::{op_name}"

    def _overload(self, name: str) -> OpOverload:
        """An op of this namespace."""
        return overload_of(f"{self.ns}::{name}")

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Register what an op does for a dispatch key: "CPU", "Meta", "Autograd", "CompositeImplicitAutograd"."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        name = self._named(op_name, "impl")
        self._check()
        if key and key not in KEYS:
            raise RuntimeError(f"could not parse dispatch key: {key}")
        if name.startswith("aten::"):
            raise NotImplementedError(
                f"Library.impl({name!r}): the ops of torch's own library cannot be overridden in pullback; use a "
                "TorchFunctionMode or a TorchDispatchMode"
            )
        if with_keyset:
            raise NotImplementedError("Library.impl(with_keyset=True): there are no sets of dispatch keys in pullback")
        key = key or "CompositeImplicitAutograd"
        if fn is fallthrough_kernel:
            return
        definition = definition_of(name)
        if definition is None:
            return  # torch lets an implementation come before the definition, and nobody calls it until then
        if not allow_override and key in definition.kernels:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python overriding "
                f"{name.split('::')[-1]}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        definition.kernels[key] = fn
        self._undo.append(lambda: definition.kernels.pop(key, None) and None)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Not available: it would be asked about every op of a dispatch key."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                'Fallback can only be registered using library fragment on the global namespace "_" but it is '
                f"{self.ns}"
            )
        if not key:
            raise AssertionError("dispatch_key must not be empty for fallback")
        raise NotImplementedError(
            "Library.fallback is not available in pullback: there is no dispatcher; use a TorchDispatchMode"
        )

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **unused: Any) -> None:
        """Register what an op does to tensors without elements."""
        definition = existing(self._named(op_name, "register_fake"))
        if definition.custom is not None:
            definition.custom.register_fake(fn)
            return
        definition.fake = fn
        self._undo.append(lambda: setattr(definition, "fake", None))

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type, fn: Callable[..., Any]) -> None:
        """Register what an op does in a mode or for a subclass."""
        rules = existing(self._named(op_name, "register_torch_dispatch")).rules
        rules[torch_dispatch_class] = fn
        self._undo.append(lambda: rules.pop(torch_dispatch_class, None) and None)

    def _destroy(self) -> None:
        """Take everything back that was defined and registered here."""
        self._end()


def end(
    namespace: str | None, definitions: list[Definition], undo: list[Callable[[], None]], alive: list[bool]
) -> None:
    """The end of a library."""
    alive[0] = False
    if namespace is not None:
        defining.pop(namespace, None)
    for action in undo:
        action()
    undo.clear()
    for definition in definitions:
        forget(definition)
    definitions.clear()


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Any:
    """A library that ends with a block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


kept: list[Library] = []
"""Libraries made by functions that were given none: they live as long as the program."""


def library_for(namespace: str, lib: Library | None) -> Library:
    """The library given, or a new one that lives on."""
    if lib is not None:
        return lib
    kept.append(Library(namespace, "FRAGMENT"))
    return kept[-1]


# ------------------------------------------------------------------ finding ops


def existing(name: str) -> Definition:
    """What is known of an op, which must exist."""
    found = definition_of(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def overload_of(name: str) -> OpOverload:
    """The overload of a full name."""
    namespace, full = qualified(name)
    packet, _, overload = full.partition(".")
    return getattr(getattr(getattr(ops, namespace), packet), overload or "default")  # type: ignore[no-any-return]


def resolved(op: Any, api: str) -> tuple[str, Any]:
    """The full name of what was given to a `register_` function, and the custom op if it is one."""
    if isinstance(op, OpOverload):
        name = op.name()
    elif isinstance(op, str):
        name = op
    elif hasattr(op, "_qualname") and hasattr(op, "_opoverload"):
        name = op._qualname
    else:
        raise ValueError(f"{api}({op}): got unexpected type for op: {type(op)}")
    qualified(name)
    found = definition_of(name)
    return name, None if found is None else found.custom


# ------------------------------------------------------------------ facts about schemas


def tensor_arguments(schema: FunctionSchema) -> bool:
    """Whether any argument is a tensor, or several."""
    return any(["Tensor" in str(argument.type) for argument in schema.arguments])


def kwarg_only_tensors(schema: FunctionSchema) -> bool:
    """Whether any tensor must be given by name."""
    return any(["Tensor" in str(argument.type) for argument in schema.arguments if argument.kwarg_only])


def check_functional(op: Any, schema: FunctionSchema) -> None:
    """Raise unless an op writes to nothing and returns something of its own: only such have a derivative."""
    aliased = any([r.alias_info is not None and not r.alias_info.is_write for r in schema.returns])
    tensors = [sum([isinstance(a.type, TensorType) for a in side]) for side in (schema.arguments, schema.returns)]
    if schema.is_mutable or not schema.returns or (aliased and tensors != [1, 1]):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {schema}. Please create a "
            "functional operator and register an autograd formula for that."
        )


def refuse_kwarg_only(api: str, schema: FunctionSchema) -> None:
    """Raise for tensors that must be given by name."""
    if kwarg_only_tensors(schema):
        raise NotImplementedError(
            f"{api} with kwarg-only Tensor args. In the original definition of the op, please make your tensors not "
            f"kwarg-only. Got: {schema}"
        )


# ------------------------------------------------------------------ the functions

NAMELESS = re.compile(r"\(.*\) -> .*")


def define(qualname: Any, schema: Any, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an op: `define("my::scale", "(Tensor x, float by) -> Tensor")`; or, as a decorator, with a Library."""
    if isinstance(qualname, Library):
        library = qualname

        def wrap(function: Any) -> Any:
            library.impl(library.define(schema, alias_analysis), function)
            return function

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = qualified(qualname)
    if not NAMELESS.fullmatch(schema):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    library_for(namespace, lib).define(name + schema, tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register what an op does on some devices: `impl("my::scale", "cpu")`; or with a Library, as it was once done."""
    if isinstance(qualname, Library):
        library, key = qualname, func or ""

        def wrap(function: Any) -> Any:
            library.impl(types, function, key)
            return function

        return wrap
    kinds = (types,) if isinstance(types, str) else tuple(types)
    keys = dict.fromkeys(["CompositeExplicitAutograd" if kind == "default" else key_named(kind) for kind in kinds])
    namespace, _ = qualified(qualname)

    def register(function: Any) -> None:
        library = library_for(namespace, lib)
        for key in keys:
            library.impl(qualname, function, key)

    return register if func is None else register(func)


def key_named(kind: str) -> str:
    """The dispatch key of a type of devices, or one by its own name."""
    return kind if kind in KEYS else dispatch_key(kind)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Register what an op does on some devices; None for all."""
    name, custom = resolved(op, "register_kernel")
    if custom is not None:
        return custom.register_kernel(device_types, func)
    return impl(name, "CompositeExplicitAutograd" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = True
) -> Any:
    """Register what an op does to tensors without elements, as those on the meta device."""
    name, custom = resolved(op, "register_fake")
    namespace, _ = qualified(name)

    def register(function: Any) -> Any:
        if custom is not None:
            custom.register_fake(function)
        else:
            existing(name)
            library_for(namespace, lib)._register_fake(name, function)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: Any, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The old name of register_fake."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that instead; we will "
        "remove `torch.library.impl_abstract` in a future version of PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


class Info:
    """The derivative of an op that was defined by its schema."""

    def __init__(self, backward: Any, setup_context: Any) -> None:
        self._backward_fn, self._setup_context_fn = backward, setup_context


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """Register the derivative of an op: `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)`."""
    name, custom = resolved(op, "register_autograd")
    if custom is not None:
        custom.register_autograd(backward, setup_context=setup_context)
        return
    definition = overload_of(name)._definition
    check_functional(op, definition.schema)
    refuse_kwarg_only("register_autograd", definition.schema)
    definition.autograd = Info(backward, setup_context)
    library_for(qualified(name)[0], lib)._undo.append(lambda: setattr(definition, "autograd", None))


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Register what an op does in a mode, or for tensors of a subclass."""
    name, custom = resolved(op, "register_torch_dispatch")
    if custom is not None:
        return custom.register_torch_dispatch(torch_dispatch_class, func)

    def register(function: Any) -> Any:
        library = library_for(qualified(name)[0], lib)
        library._register_torch_dispatch_rule(name, torch_dispatch_class, function)
        return function

    return register if func is None else register(func)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Register what an op does on a batch: `func(info, in_dims, *args)` returns the result and where its batch is."""
    name, custom = resolved(op, "register_vmap")
    if custom is not None:
        return custom.register_vmap(func)
    definition = overload_of(name)._definition
    refuse_kwarg_only("register_vmap", definition.schema)

    def register(function: Any) -> None:
        definition.vmap = function
        library_for(qualified(name)[0], lib)._undo.append(lambda: setattr(definition, "vmap", None))

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> NoReturn:
    """Not available: ops that programs define compute in the dtype they are given."""
    raise NotImplementedError("register_autocast is not available in pullback; cast the inputs inside of the op")


def fallthrough_kernel() -> NoReturn:
    """What `Library.impl` is given to register nothing for a dispatch key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_kernel(op: Any, dispatch_key: Any) -> Any:
    """What is registered for an op and a dispatch key."""
    name = op.name() if isinstance(op, OpOverload) else op
    key = str(dispatch_key).removeprefix("DispatchKey.")
    kernel = existing(name).kernels.get(key)
    if kernel is None:
        raise RuntimeError(f"{name} has no kernel registered for dispatch key {key}")
    return kernel


def triton_op(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available: there is no Triton."""
    raise NotImplementedError("torch.library.triton_op is not available in pullback: use torch.library.custom_op")


def wrap_triton(triton_kernel: Any) -> NoReturn:
    """Not available: there is no Triton."""
    raise NotImplementedError("torch.library.wrap_triton is not available in pullback: there is no Triton")


get_ctx = calls.get_ctx
