"""`torch.compile`, `torch.compiler` and the names of `torch._dynamo` that programs use. See docs/notes/compile.md."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from threading import get_ident
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from numpy import ndarray

from pullback import Tensor, from_numpy
from pullback._modes import modes
from pullback._runtime.building import loaded
from pullback.compiler.function import Compiled, InvalidBackend, Unsupported
from pullback.insight.compiled import CompiledReport
from pullback.nn.modules.module import Module
from pullback.overrides import handle_torch_function, has_torch_function
from pullback.utils._pytree import tree_map

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("cudagraphs", "inductor", "openxla", "tvm")
RUNS_AS_IT_IS = ("eager", "eager_noexcept", "eager_debug")
RECORDED = ("inductor", "aot_eager", "aot_eager_decomp_partition", "aot_ts", "cudagraphs")
OPTIONS = ("check", "exact", "native")
"""Options of our own; those of torch's compiler are taken, and change nothing here."""

everything: WeakSet[Any] = WeakSet()
"""Compiled functions: `reset` makes them forget their programs."""
default_backend: list[Any] = ["inductor"]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
    check: bool = False,
) -> Any:
    """Record what a function or module does to arrays, and run that without autograd's cost from the second call on.

    The results, gradients, random numbers and side effects are those of the function itself. What the recording
    depends on is guarded: a call for which no program fits records another one. A function that does what cannot be
    repeated runs in parts, of which those around that line are compiled; with `fullgraph=True` it raises and says why.
    `check=True` runs the function beside the program at first and compares.
    """
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name,
            disable=disable, recompile_limit=recompile_limit, isolate_recompiles=isolate_recompiles,
            shapes_spec=shapes_spec, check=check,
        )  # fmt: skip
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    backend = default_backend[0] if backend is None else backend
    check_backend(backend)
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable or os.environ.get("TORCH_COMPILE_DISABLE") == "1" or os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return model
    settings = dict(fullgraph=fullgraph, runs=backend not in RUNS_AS_IT_IS, limit=recompile_limit, dynamic=dynamic)
    backend = backends.get(backend, backend) if isinstance(backend, str) else backend
    if callable(backend):
        settings["backend"] = loaded("pullback.compat.backends").by_backend(backend)  # few programs have their own
    settings |= {key: value for key, value in (options or {}).items() if key in OPTIONS}
    settings["check"] = check or bool(settings.get("check", False))
    if isinstance(model, Module):
        return OptimizedModule(model, settings)
    return as_function(model, settings)


def check_backend(backend: Any) -> None:
    """Raise for a backend that is not here."""
    if callable(backend) or backend in backends:
        return
    if backend not in RUNS_AS_IT_IS and backend not in RECORDED:
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )


def as_function(function: Any, settings: dict[str, Any]) -> Any:
    """A function that runs compiled; as an attribute of a class it is a method."""
    compiled = Compiled(function, **settings)
    everything.add(compiled)

    def run(*args: Any, **kwargs: Any) -> Any:
        return compiled(*args, **kwargs)

    functools.update_wrapper(run, function)
    run._compiled = compiled  # type: ignore[attr-defined]
    run._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    run.save = not_saved  # type: ignore[attr-defined]
    return run


def not_saved(path: Any) -> None:
    """Programs are not saved."""
    raise NotImplementedError(
        "a compiled function cannot be saved: its program names tensors and objects of this process; save the model "
        "by torch.save or torch.jit.save, load it and compile it: native code is found on disk"
    )


class OptimizedModule(Module):
    """A module that runs compiled. Its parameters and attributes are those of the module it was made of."""

    _opt_mod_attributes = frozenset(("_orig_mod", "dynamo_ctx", "_compiled", "_torchdynamo_orig_callable", "forward"))

    def __init__(self, mod: Module, settings: dict[str, Any]) -> None:
        super().__init__()
        self._orig_mod = mod
        compiled = Compiled(mod, **settings)
        everything.add(compiled)
        self.__dict__.update(_compiled=compiled, _torchdynamo_orig_callable=mod.forward, _settings=settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_hooks:
            return super().__call__(*args, **kwargs)
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the compiled module gives."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if (
            name in OptimizedModule._opt_mod_attributes
            or "_modules" not in self.__dict__
            or "_orig_mod" not in self._modules
        ):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    @property
    def training(self) -> bool:
        """That of the module."""
        return self._orig_mod.training if "_orig_mod" in self.__dict__.get("_modules", ()) else True

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._orig_mod.training = value

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod, self._settings)

    def __dir__(self) -> list[str]:
        return list({*dir(self._orig_mod), *super().__dir__()})


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never part of a program: what calls it runs as it is."""
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    if isinstance(fn, type):
        return fn
    function = getattr(fn, "_torchdynamo_orig_callable", fn)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = modes.recorders.get(get_ident()) if modes.recorders else None
        if recorder is not None:
            name = getattr(function, "__qualname__", type(function).__qualname__)
            recorder.fail(f"{name} is disabled by torch.compiler.disable{f' ({reason})' if reason else ''}")
        return function(*args, **kwargs)

    run._torchdynamo_disable = True  # type: ignore[attr-defined]
    return run


def allow_in_graph(fn: Any) -> Any:
    """The function itself: every function is recorded."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself: what it reads is guarded."""
    return fn


def reset() -> None:
    """Forget every program."""
    for compiled in list(everything):
        compiled.reset()


def is_compiling() -> bool:
    """Whether what runs is being recorded."""
    return bool(modes.recorders) and get_ident() in modes.recorders


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The backends that torch lists, and those that were registered."""
    return sorted([*BACKENDS, *backends])


backends: dict[str, Any] = {}
"""Backends that were registered, by name."""


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Give a backend that is a function a name, which `compile` takes."""
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compiler_fn):
        raise AssertionError("compiler_fn must be callable")
    name = name or compiler_fn.__name__
    if name in backends or name in RECORDED or name in RUNS_AS_IT_IS:
        raise AssertionError(f"duplicate name: {name}")
    backends[name] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """A backend by its name."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    check_backend(compiler_fn)
    if compiler_fn not in backends:
        return lambda graph, inputs: graph.forward  # programs of our own are made of functions, not of graphs
    return backends[compiler_fn]


def set_default_backend(backend: Any) -> None:
    """The backend of `compile` where none is named."""
    if backend is not None:
        check_backend(backend)
    default_backend[0] = "inductor" if backend is None else backend


def get_default_backend() -> Any:
    """The same, asked for."""
    return default_backend[0]


def cudagraph_mark_step_begin() -> None:
    """Nothing to do: there are no graphs of CUDA."""


class set_stance:
    """`force_eager` runs compiled functions as they are, `eager_on_recompile` those for which no program fits, and
    `fail_on_recompile` raises for them; `default` ends that."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        known = (
            "default",
            "force_eager",
            "eager_on_recompile",
            "fail_on_recompile",
            "eager_then_compile",
            "aot_eager_then_compile",
        )
        if stance not in known:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if stance.endswith("_then_compile"):
            raise NotImplementedError(f"torch.compiler.set_stance({stance!r}): the first call runs as it is anyhow")
        self.before = Compiled.forced, Compiled.stance
        Compiled.forced, Compiled.stance = stance == "force_eager", stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        Compiled.forced, Compiled.stance = self.before


def explain(function: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`torch._dynamo.explain(f)(*args)`: what became of a function."""
    if extra_args or extra_kwargs:
        warnings.warn("explain(f, *args) is deprecated, use explain(f)(*args) instead.", FutureWarning, stacklevel=2)
        return explain(function)(*extra_args, **extra_kwargs)

    def run(*args: Any, **kwargs: Any) -> Any:
        made = compile(function) if not hasattr(function, "_compiled") else function
        made(*args, **kwargs)
        return CompiledReport(made._compiled)

    return run


def _assert(condition: Any, message: str) -> None:
    """An assert that compilers and tracers see: `torch._assert`."""
    if has_torch_function((condition,)):
        handle_torch_function(_assert, (condition,), condition, message)
        return
    assert condition, message


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: Any = None) -> Any:
    """The older name of `compile`, as a decorator."""
    return compile(backend=backend, fullgraph=nopython, disable=disable, dynamic=dynamic)


def graph_break(msg: str = "") -> None:
    """End a part: the function that calls this runs in parts."""
    recorder = modes.recorders.get(get_ident()) if modes.recorders else None
    if recorder is not None:
        recorder.fail(f"graph_break({msg!r})" if msg else "graph_break()")


def mark_dynamic(
    t: Any, index: Any, *, hint_override: Any = None, min: Any = None, max: Any = None, specialize_on: Any = None
) -> None:
    """Say that a size of an argument changes from call to call: its first program is made for any size."""
    marked(t, index, "_dynamo_dynamic_indices")


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """The same; neither raises where a function turns out to be for one size."""
    marked(t, index, "_dynamo_weak_dynamic_indices")


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a size of an argument, or all of them, do not change: another one is another program."""
    if isinstance(t, type) and issubclass(t, Module):
        return t  # type: ignore[return-value]
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static expects a tensor/nn.Module class but received {type(t)}")
    marked(t, list(range(t.dim())) if index is None else index, "_dynamo_static_indices")


def marked(t: Any, index: Any, name: str) -> None:
    """Add dimensions to those a tensor has under a name."""
    if not isinstance(index, (int, list, tuple)):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    known = getattr(t, name, None)
    if known is None:
        known = set()
        setattr(t, name, known)
    known.update([index] if isinstance(index, int) else index)


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing to do: programs take the memory of their arguments anew at each call."""


forbid_in_graph = disallow_in_graph = disable


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """The function itself: what is alike in a program shares its code anyhow."""
    return (lambda function: function) if fn is None else fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Any:
    """A decorator that changes nothing: functions are recorded by what they do, those in C, too."""
    return lambda function: function


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of tensors; what NumPy computes is no part of a program."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        plain = tree_map(lambda value: value.numpy() if isinstance(value, Tensor) else value, (args, kwargs))
        return tree_map(
            lambda value: from_numpy(value) if isinstance(value, ndarray) else value, fn(*plain[0], **plain[1])
        )

    return run


def all_guards(guard_entries: Any) -> list[bool]:
    """What a filter of guards says: here all of them are kept, whatever a filter says."""
    return [True for _ in guard_entries]


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_all_guards_unsafe = all_guards
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = all_guards
skip_guard_on_inbuilt_nn_modules_unsafe = all_guards


def save_cache_artifacts() -> None:
    """Nothing: native code is kept on disk by itself, and programs are not kept."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Nothing to load."""


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> Any:
    """Programs are not saved."""
    raise NotImplementedError(
        "torch.compiler.load_compiled_function: programs are not saved; save the model by torch.save or "
        "torch.jit.save, load it and compile it: native code is found on disk"
    )


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Nothing to do: each rank compiles for itself. What was set before."""
    return False


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: everywhere."""
    return True


is_inductor_supported = is_dynamo_supported
reset_code_caches = reset


def run(fn: Any = None) -> Any:
    """A function that compiles nothing new: what was compiled runs, the rest as it is."""
    if fn is None:
        return run

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with set_stance("eager_on_recompile"):
            return fn(*args, **kwargs)

    return call


nonstrict_trace = allow_in_graph
is_dynamo_compiling = is_compiling
is_exporting = lambda: False
exc = SimpleNamespace(Unsupported=Unsupported, InvalidBackend=InvalidBackend, TorchDynamoException=RuntimeError)
config = SimpleNamespace(
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8, accumulated_cache_size_limit=256,
    accumulated_recompile_limit=256, dynamic_shapes=True, assume_static_by_default=True,
    automatic_dynamic_shapes=True, capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False,
    specialize_int=False, optimize_ddp=True, guard_nn_modules=True, inline_inbuilt_nn_modules=True, disable=False,
)  # fmt: skip
"""Settings of torch's compiler: they can be set; heeded are `recompile_limit`, `disable`, and of those about sizes
`dynamic_shapes`, `assume_static_by_default` and `automatic_dynamic_shapes`."""
Compiled.config = config
