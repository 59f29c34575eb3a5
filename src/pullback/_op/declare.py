"""Declaring ops: `@op` for primitives with derivatives, `@function` for public names written in terms of ops.

    @op(operator="mul", inplace=True,
        self=lambda grad, other: grad * conj(other),
        other=lambda grad, self: grad * conj(self),
        result=lambda self_t, other_t, self, other: self_t * other + other_t * self)
    def mul(self: Array, other: Array | Number) -> Array:
        \"\"\"Multiply elementwise, broadcasting.\"\"\"
        return np.multiply(self, other)

The parameters' annotations say what they are: `Array` a tensor, `Array | Number` a tensor or a Python number,
`Array | None` an optional tensor, `list[Array]` several tensors; anything else is passed on as it is.
A keyword named after a tensor parameter is its derivative. What a formula names, the node saves:

    other ............... the input as it was          result ........ the output (or one of `outputs`)
    dim ................. a plain argument              self_sym_sizes  only the shape of an input
    self_sym_numel ...... the number of elements        self_dtype .... the NumPy dtype (not shown to users)
    grad ................ the gradient of the (first) output, `grads` the tuple of all, `grad_values` one by name
    wants ............... which tensor inputs want a gradient (in `backward=`, the formula for all inputs at once)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, Literal

from pullback._op.patch import unpatched
from pullback._tensor import Tensor

Array = Any
Number = bool | int | float | complex

linear = "linear"
"""Forward-mode rule of an op linear in its tensors: the op itself on the tangents."""
elementwise = "elementwise"
"""Forward-mode rule of a pointwise op of one tensor: its derivative formula with the tangent for the gradient."""

not_implemented = "not_implemented"
"""Stands for the derivative of an op torch gives none either: recorded, and an error if a gradient arrives."""

KINDS = {
    "Array": "tensor",
    "Array | Number": "number",
    "Array | None": "optional",
    "list[Array]": "list",
    "list[Array | None]": "list",
}
DERIVE = {
    "_sym_sizes": "{0}.shape",
    "_sym_numel": "{0}.size",
    "_sym_strides": "element_strides({0})",
    "_sym_argsize_0": "{0}.shape[0]",
    "_sym_argsize_1": "{0}.shape[1]",
    "_sym_argsize_2": "{0}.shape[2]",
    "_sym_argsize_minus_1": "{0}.shape[-1]",
    "_sym_argsize_minus_2": "{0}.shape[-2]",
    "_dim": "{0}.ndim",
    "_dtype": "{0}.dtype",
    "_geometry": "geometry_of({0})",
    "_shapes": "[item.shape for item in {0}]",
}
"""What a formula may ask of an input instead of the input, as source."""
HIDDEN = ("_dtype", "_geometry", "_shapes")
"""Those users do not see on the node."""

registry: dict[str, Op] = {}
"""Every op by name. The only list of ops there is."""
functions: dict[str, Function] = {}
"""Every public function that is not itself an op."""


class Parameter:
    """One parameter of an op or function: its name, its kind and how it is written in a signature."""

    __slots__ = ("default", "keyword_only", "kind", "name")

    def __init__(self, name: str, kind: str, default: Any, keyword_only: bool) -> None:
        self.name, self.kind, self.default, self.keyword_only = name, kind, default, keyword_only


REQUIRED = object()


def parameters_of(function: FunctionType) -> list[Parameter]:
    """The parameters of a declaration, read from its code object (cheaper than inspect.signature)."""
    code, annotations = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    first_default = code.co_argcount - len(defaults)
    keyword_defaults = function.__kwdefaults__ or {}
    if not all([type(annotation) is str for annotation in annotations.values()]):
        raise TypeError(
            f"{function.__name__} is declared in a file that does not begin with `from __future__ import annotations`: "
            "which parameters are tensors is read from their annotations as they are written"
        )
    out = []
    for i, name in enumerate(names):
        keyword_only = i >= code.co_argcount
        if keyword_only:
            default = keyword_defaults.get(name, REQUIRED)
        else:
            default = defaults[i - first_default] if i >= first_default else REQUIRED
        out.append(Parameter(name, KINDS.get(str(annotations.get(name)), "plain"), default, keyword_only))
    return out


def names_of(formula: Any) -> tuple[str, ...]:
    """The names a formula asks for."""
    return formula.__code__.co_varnames[: formula.__code__.co_argcount]  # type: ignore[no-any-return]


def camel(name: str) -> str:
    """log_softmax -> LogSoftmax."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def refusal(name: str) -> Callable[[], Any]:
    """The backward of an op without derivative."""

    def refuse() -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


class Declaration:
    """What ops and functions alike may say about themselves, by keywords of these names."""

    name: str
    call: Any
    params: Any
    path = ""
    """Where it was first published below torch, as `nn.functional.relu`; empty for what is only a method or private."""
    autocast: str = ""
    """The precision it computes in inside autocast: "lower", "float32", "widest" (of its tensors), "float32_alone"
    (unless it is asked for indices too), or "rounded" (only its result is brought to the lower one)."""
    foreach: str = ""
    """The form of the `_foreach_` function made of it: "unary", "binary", "binary_or_one" (which takes one tensor for
    all, too), "bound" (a binary one that takes numbers as a clamp does) or "with_factor"."""
    numpy: tuple[str, ...] = ()
    """The functions of NumPy it computes for tensors that want gradients; a ufunc of its own name needs no mention."""
    vmap: str = ""
    """How it runs on a batch, if its being pointwise, or parameters named `dim` or `size`, do not imply it: the name of
    a rule in batching/strategies.py or rules*.py; of what makes tensors a way in batching/allocating.py, "like" where
    each entry gets a tensor of its own, "drawn_again" where all get the same random numbers if so wanted."""
    sparse: str = ""
    """The rule of ops/sparse/ it runs by on sparse tensors; without one it refuses them, as torch does."""
    nested: str = ""
    """How nested tensors do it, on their values: element by element, those of the "jagged" layout (pointwise ops
    need not say so) or also "strided" ones; or what keeps the "shape" of its tensor, "jagged_shape" if only they do."""
    flops: str = ""
    """What the profiler counts: "elements", or the operations of a "product", "product_and_sum" or "convolution"."""
    packed: str = ""
    """What it does with floats of 8 bits and complex32: they are "moved", "compared" or "rounded" (with "_complex" only
    complex32), converted ("cast", "copied", "filled"); otherwise it refuses them. Views move. See packed.py."""
    kernel: str = ""
    """What torch calls its kernel where it says that there is none for a dtype, if not by its name and `_cpu` (of those
    with `foreach="unary"`: `_vml_cpu`)."""
    overridable: bool = True
    """A class with `__torch_function__` is asked about calls of it; always for ops."""
    told: Callable[[tuple[Any, ...], bool], tuple[Any, ...]] | None = None
    """What a mode (if true) or a class is told the arguments of a function are, if not what was given by place."""
    out_tensor_first: bool = False
    """It takes a number for its first operand, but not together with `out=`."""
    out_dtype: Callable[[str, Any, Any, bool], None] | None = None
    """Raises unless a tensor given as `out=` has a dtype it may have; called with the name, the tensor, the result, and
    whether that comes alone."""
    out_decides: str = ""
    """What a tensor given as `out=` has to do with the parameter `dtype`: it is of that dtype if one is given
    ("checked"), and its own is what is computed in if none is ("computed")."""
    out_overlap: str = "partial"
    """Which operands what is written may not overlap: all of them in part; "resized": and not at all if it becomes
    larger; "self": only that one in part; "apart": that one in part, the others, which are read meanwhile, not at all;
    "unchecked": nobody asks."""
    out_resized: bool = False
    """What is given as `out=` is resized before anything else, which a tensor that wants a gradient refuses."""
    out_keeps_shape: bool = False
    """What is given as `out=` keeps its shape if it has as many elements as there are to be written."""
    out_by_rows: str = ""
    """What is given as `out=` and is resized becomes row-major, in whatever order the result lies: "always", or
    "filled", if it had elements before."""
    out_copies: bool | Callable[[tuple[Any, ...]], bool] = False
    """Results are copied into `out=` as a program would copy them, with the history of a copy; or what tells it from
    the arguments."""
    out_ends_history: bool = False
    """Where gradients are wanted `out=` is written all the same, and gets a node that raises in backward."""

    def say(self, options: dict[str, Any]) -> None:
        """Take those of these facts that are among the keywords of a declaration."""
        for fact in options.keys() & FACTS:
            setattr(self, fact, options.pop(fact))


FACTS = {name for name in vars(Declaration) if not name.startswith("_") and name not in ("path", "say")}


class Op(Declaration):
    """Everything known about one operation."""

    def __init__(
        self,
        forward: FunctionType,
        /,
        *,
        name: str | None = None,
        node: str | None = None,
        outputs: tuple[str, ...] = ("result",),
        visible: int | None = None,
        constants: tuple[str, ...] = (),
        variadic: bool = False,
        result: Any = None,
        backward: Any = None,
        inplace: Any = False,
        overwrites: Callable[..., Op] | None = None,
        view: bool = False,
        changes_dtype: bool = False,
        flips: str = "",
        promote: tuple[str, ...] | bool = False,
        floats: bool = False,
        pointwise: bool = False,
        untraced: tuple[str, ...] | Literal[True] = (),
        layout: str = "",
        unrounded: str = "",
        stretched: str = "",
        check: Callable[..., None] | None = None,
        check_operands: Callable[..., None] | None = None,
        check_target: Callable[..., None] | None = None,
        check_out: Callable[..., None] | None = None,
        out_name: str = "",
        may_overlap: str = "",
        absent_tangent: str = "",
        along: str = "",
        vmap_inplace: str = "",
        few: Callable[..., Any] | None = None,
        of_complex: Callable[..., Any] | None = None,
        formerly: tuple[str, ...] = (),
        takes_out_dtype: bool = False,
        dynamic: bool = False,
        **formulas: Any,
    ) -> None:
        self.say(formulas)
        if not_implemented in formulas.values():
            node, backward = "NotImplemented", refusal(name or forward.__name__)
        self.name = name or forward.__name__
        """The public name: several ops may share one (overloads); the registry key is the declaration's own name."""
        self.key = forward.__name__
        self.declared = forward
        self.doc = forward.__doc__
        self.module = forward.__globals__
        self.formulas = formulas
        self.joint = backward
        """One formula giving the gradients of all differentiable inputs at once."""
        self.jvp = result
        self.outputs = outputs
        self.visible = len(outputs) if visible is None else visible
        """How many outputs callers see; the rest are only saved."""
        self.constants = constants
        """The floating point outputs that nobody can differentiate (a permutation, a rank)."""
        self.variadic = variadic
        """The forward returns a list of arrays whose length depends on the arguments (unbind, split)."""
        self.multiple = variadic or len(outputs) > 1
        self.inplace = inplace
        """True if there is an in-place twin; a function if it writes into the first array by itself."""
        self.overwrites = overwrites
        """Which op the in-place twin records, from its further arguments, where that is another one: comparisons, whose
        results have no derivative, overwrite a tensor with numbers that have one."""
        self.view = view
        self.changes_dtype = changes_dtype
        """A view that strides cannot describe."""
        self.flips = flips
        """The sign through which such a view looks at the memory of its source: see _lazy.py."""
        self.annotations = forward.__annotations__
        self.fields: Any = None
        """The named tuple of an op with several outputs, made on first need."""
        self._promote = promote
        self.floats = floats
        """Integer and bool inputs count as the default dtype."""
        self.pointwise = pointwise
        """Each element of the result is made of the elements at its place (of a loss: before its reduction), so kernels
        can compute it, and it lies in memory as the operands do. One ufunc, or `result=elementwise`, implies it."""
        self.untraced = untraced
        """The parts of a pointwise op that no kernel can compute: `forward`, inputs of derivatives; True for all."""
        self.layout = layout
        """How a pointwise result lies in memory if not as its operands do: "row_major"; "other_first", where the second
        operand decides before the first; or "own", where the forward decides by what it makes of the operands. Of any
        op: "sparse", where its result is no plain tensor."""
        self.unrounded = unrounded
        """The operand that torch reads in float32 if it is a number, or a tensor without dimensions of another dtype,
        and the others are half precision."""
        self.stretched = stretched
        """The operand torch stretches before dtypes are promoted: even without dimensions it counts like others."""
        self.check = check
        """Called with the promoted arrays before the forward: raises torch's errors."""
        self.check_operands = check_operands
        """The same with the arguments as they were given, before promotion."""
        self.check_target = check_target
        """Called with the tensor given as `out=` before anything is computed."""
        self.check_out = check_out
        """Called with the tensors given as `out=`, the results and the arguments before anything is written."""
        self.out_name = out_name
        """What torch calls it, if not its name, where it says that what is written into `out=` has no history; ops of
        integers say so too, though they have no derivative."""
        self.may_overlap = may_overlap
        """The kinds of dtypes (NumPy's letters) written in place even where two indices name one element."""
        self.absent_tangent = absent_tangent
        """What it makes of an absent tangent: zero, as a factor of a "product" or an "inner" one and as the first of a
        "quotient"; the other operand, or its opposite, in a "sum" or "difference". See still.py."""
        self.along = along
        """The op that reduces given dimensions, for one that reduces all: so an entry of a batch is reduced alone."""
        self.vmap_inplace = vmap_inplace
        """What torch calls its in-place form where a batch does not fit into a tensor that has none."""
        self.few = few
        """What is compiled for a few elements in place of the forward."""
        self.of_complex = of_complex
        """What is computed of complex numbers in place of the forward, which may so remain a bare ufunc."""
        self.formerly = formerly
        """The keywords that once stood among the positional arguments: see _op/formerly.py."""
        self.dynamic = dynamic
        """Whether the shape of a result depends on elements."""
        self.takes_out_dtype = takes_out_dtype
        """Torch names a signature of it with the dtype of the result where it warns about such keywords."""
        self.node_name = node or camel(self.name) + "Backward0"
        self.node: Any = None
        """The node class, made by `compile` on the first call."""
        self.forward: Any = None
        self.call: Any = None
        self.private = True
        """False once it is published: until then only functions and formulas of this library call it."""
        self.eager_source = self.node_source = ""
        """What was generated, for `pullback.show` and the golden files."""

    # What follows from the declaration is worked out when an op is first used: importing declares a thousand of them.

    @cached_property
    def params(self) -> list[Parameter]:
        """The parameters, in order."""
        return parameters_of(self.declared)

    @cached_property
    def param_names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple([p.name for p in self.params])

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What each parameter is."""
        return {p.name: p.kind for p in self.params}

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The parameters that are tensors."""
        return tuple([p.name for p in self.params if p.kind != "plain"])

    @cached_property
    def may_lack_items(self) -> set[str]:
        """Lists of tensors that may hold None."""
        return {name for name in self.tensors if self.annotations.get(name) == "list[Array | None]"}

    @cached_property
    def promote(self) -> tuple[str, ...]:
        """The tensors that are brought to one dtype first."""
        if self._promote is True:
            return tuple([p.name for p in self.params if p.kind in ("tensor", "number", "list")])
        return self._promote or ()

    @cached_property
    def differentiable(self) -> tuple[str, ...]:
        """The tensors that have a derivative: those with a formula, or all where one formula serves all."""
        everything = self.joint is not None and not self.formulas
        return tuple([t for t in self.tensors if everything or t in self.formulas])

    @cached_property
    def saved(self) -> list[str]:
        """What the formulas name, in their order; outputs last."""
        formulas = [f for f in (*self.formulas.values(), self.joint) if callable(f)]
        named = dict.fromkeys(n for f in formulas for n in names_of(f))
        derivable = (*self.tensors, *self.outputs) if self.multiple else self.tensors
        every = (*self.param_names, *self.outputs, *(t + suffix for t in derivable for suffix in DERIVE))
        known = {*every, "grad", "grads", "wants", *(f"grad_{o}" for o in self.outputs)}
        if not named.keys() <= known:
            raise TypeError(f"{self.key}: formula names unknown {sorted(named.keys() - known)}")
        kept = [n for n in named if n in every]
        return [n for n in kept if n not in self.outputs] + [n for n in kept if n in self.outputs]

    def derived_from(self, saved: str) -> tuple[str, str] | None:
        """('self', '_sym_sizes') for self_sym_sizes; None if it is not a derived name."""
        if saved in self.kinds:
            return None
        for suffix in DERIVE:
            if saved.endswith(suffix) and saved[: -len(suffix)] in (*self.tensors, *self.outputs):
                return saved[: -len(suffix)], suffix
        return None

    def hides(self, saved: str) -> bool:
        """True for what a node keeps and does not show."""
        return saved.endswith(HIDDEN) and self.derived_from(saved) is not None

    def fast_kind(self, tensor: str) -> str:
        """The kind a parameter has on the fast path: where all may be numbers, the first must be a tensor there."""
        kind = self.kinds[tensor]
        if (
            kind == "number"
            and not any(self.kinds[t] == "tensor" for t in self.promote)
            and self.promote[:1] == (tensor,)
        ):
            return "tensor"
        return kind

    def __repr__(self) -> str:
        return f"<op {self.key}>"


def called(op: Op, args: list[Any]) -> Any:
    """The call, as a program would write it."""
    if not op.params[-1].keyword_only:
        return op.call(*args)
    positional = [a for p, a in zip(op.params, args, strict=True) if not p.keyword_only]
    return op.call(*positional, **{p.name: a for p, a in zip(op.params, args, strict=True) if p.keyword_only})


class Function(Declaration):
    """A public function written in terms of ops."""

    def __init__(self, body: FunctionType, name: str | None, facts: dict[str, Any]) -> None:
        self.say(facts)
        if facts:
            raise TypeError(f"function {body.__name__} says what no function can say: {sorted(facts)}")
        self.name = name or body.__name__
        self.key = body.__name__
        self.body = body
        self.doc = body.__doc__
        self.call: Any = None

    @cached_property
    def params(self) -> list[Parameter]:
        """The parameters, in order."""
        return parameters_of(unpatched(self.body))


class Publication:
    """Where a public name appears."""

    __slots__ = ("aliases", "also", "method", "operator", "out", "reflected", "space")

    def __init__(
        self,
        space: str | None = "torch",
        method: bool = True,
        operator: str | None = None,
        reflected: bool = False,
        aliases: tuple[str, ...] = (),
        out: bool = True,
        also: tuple[str, ...] = (),
    ) -> None:
        self.also = also
        self.space, self.method, self.operator = space, method, operator
        self.reflected, self.aliases, self.out = reflected, aliases, out


FUNCTIONAL = Publication("nn.functional", method=False)
TORCH = Publication("torch", method=False)
"""A function of either namespace that is no method."""


declaring: set[str] = set()
"""The modules that declare ops."""
spaces: dict[str, dict[str, Any]] = {"torch": {}}
"""The public namespaces: name -> function. The facade and nn.functional, linalg, ... read theirs from here."""


def publish(name: str, function: Any, publication: Publication) -> None:
    """Hang a function where users look for it."""
    if (publication.space is not None or publication.method) and hasattr(function, "op"):
        function.op.private = False
    if publication.space is not None and hasattr(function, "op") and not function.op.path:
        function.op.path = name if publication.space == "torch" else f"{publication.space}.{name}"
    for alias in (name, *publication.aliases):
        if publication.space is not None:
            spaces.setdefault(publication.space, {})[alias] = function
        if publication.method:
            setattr(Tensor, alias, function)
    for place in publication.also:
        space, _, alias = place.rpartition(".")
        spaces.setdefault(space, {})[alias] = function
    if publication.operator:
        setattr(Tensor, f"__{publication.operator}__", function)
        if publication.reflected:
            setattr(Tensor, f"__r{publication.operator}__", function)
