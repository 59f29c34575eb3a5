"""torch.library.custom_op on torch and on pullback: schemas, calls, gradients, batches, devices and modes."""

import re
from typing import List, Optional, Sequence, Tuple  # noqa: UP035

import pytest

from tests.conformance.both import attempt, on_both, same

NUMBERS = iter(range(10**6))


def fresh(name="op"):
    """A name of its own for each op: names live as long as the process."""
    return f"pbtest::{name}_q{next(NUMBERS)}"


def plain(value):
    """A text without what differs between two runs: names of ops and modules."""
    text = re.sub(r"_q\d+", "", str(value))
    text = re.sub(r"pullback\._tensor|pullback\._dtype|pullback\._device|pullback", "torch", text)
    text = re.sub(r", (typing.Optional\[)?torch\.distributed[\w.]*GroupName\]?", "", text)  # not here: one process
    return re.sub(r"<module '[^>]*>", "<module>", text)


def tried(action):
    """What an action gives, or its error, without names."""
    result = attempt(action)
    if hasattr(result, "text"):
        result.text = plain(result.text)
    return result


def scale(torch, **options):
    def scale(x: torch.Tensor, by: float = 2.0, other: Optional[torch.Tensor] = None) -> torch.Tensor:  # noqa: UP045
        return x * by if other is None else x * by + other

    return torch.library.custom_op(fresh("scale"), scale, mutates_args=(), **options)


@on_both
def test_a_custom_op_is_called_and_shown_as_torchs(torch):
    op = scale(torch)
    name = op._qualname.partition("::")[2]
    packet = getattr(torch.ops.pbtest, name)
    overload = packet.default
    schema = overload._schema
    x = torch.tensor([1.0, 2.0])
    return [
        plain(text)
        for text in (op, packet, repr(packet), overload, repr(overload), overload.name(), schema, packet.overloads())
    ] + [
        op(x),
        packet(x, 3),
        overload(x, by=4),
        op(x=x, other=x),
        [(a.name, str(a.type), a.default_value, a.kwarg_only, a.has_default_value()) for a in schema.arguments],
        [str(r.type) for r in schema.returns],
        schema.is_mutable,
        overload.namespace,
        overload.is_view,
        overload.overloadpacket is packet,
        packet.default is overload,
        [str(tag) for tag in overload.tags],
        op._opoverload is overload,
        plain(overload.__name__),
        plain(overload.__module__),
        plain(packet._qualified_op_name),
        hasattr(torch.ops.pbtest, "no_such_op"),
        tried(lambda: torch.ops.pbtest.no_such_op),
        tried(lambda: packet.no_such_overload),
        plain(torch.ops.pbtest),
    ]


@on_both
def test_wrong_arguments_are_refused_in_torchs_words(torch):
    op = scale(torch)
    x = torch.ones(2)

    def listed(xs: Sequence[torch.Tensor], n: List[int], *, flag: bool, name: str = "a") -> List[torch.Tensor]:  # noqa: UP006
        return [x * 2 for x in xs]

    lists = torch.library.custom_op(fresh("lists"), listed, mutates_args=())
    return [
        tried(action)
        for action in (
            lambda: op(),
            lambda: op(x, 1.0, None, 4),
            lambda: op(x, by="s"),
            lambda: op(3),
            lambda: op(x, nope=3),
            lambda: op(x, x=x),
            lambda: op([x]),
            lambda: lists([x], 1, flag=True),
            lambda: lists(x, [1], flag=True),
            lambda: lists([x, 3], [1], flag=True),
            lambda: lists([x], [1]),
            lambda: lists([x], [1], True),
            lambda: lists([x], [1], flag=True, name=3),
            lambda: lists([x], [1.5], flag=True),
            lambda: [t.tolist() for t in lists([x], (1, 2), flag=1)],
            lambda: op(x, True),
            lambda: op(x, torch.tensor(3)),
            lambda: op(x, None),
        )
    ]


ANNOTATED = {
    "varargs": "def f(x: T, *args) -> T: ...",
    "no return": "def f(x: T): ...",
    "no annotation": "def f(x) -> T: ...",
    "bad return": "def f(x: T) -> str: ...",
    "tuple": "def f(x: Tuple[int, int]) -> T: ...",
    "mixed tuple": "def f(x: Tuple[int, str]) -> T: ...",
    "dict": "def f(x: dict) -> T: ...",
    "strings": "def f(x: 'T', y: 'Optional[T]') -> 'Tuple[T, T]': ...",
    "nothing": "def f(x: T) -> None: ...",
    "one in a tuple": "def f(x: T) -> Tuple[T]: ...",
    "list default": "def f(x: T, y: List[int] = [1]) -> T: ...",
    "unknown name": "def f(x: 'zzz') -> T: ...",
    "many": "def f(x: T | None, y: int | None = None, z: list[int] | None = None, w: Sequence[bool] = None) -> T: ...",
    "tuple of results": "def f(x: T) -> Tuple[T, int]: ...",
    "defaults": "def f(x: T, a: float = 0.1, b: bool = True, c: str = 'q', d: torch.dtype = torch.float32) -> T: ...",
    "device": "def f(x: T, a: torch.device = torch.device('cpu')) -> T: ...",
    "keywords": "def f(x: T, *, a: int = 1, b: float) -> List[T]: ...",
    "numbers": "def f(x: T, a: int | float | bool = 1) -> int: ...",
}


@pytest.mark.parametrize("text", ANNOTATED.values(), ids=ANNOTATED)
def test_a_schema_is_inferred_from_annotations_or_refused_as_by_torch(text):
    def program(torch):
        names = {"torch": torch, "T": torch.Tensor, "Optional": Optional, "List": List, "Tuple": Tuple}  # noqa: UP006
        names["Sequence"] = Sequence
        exec(text, names)
        made = tried(lambda: torch.library.infer_schema(names["f"], mutates_args=()))
        named = tried(lambda: torch.library.infer_schema(names["f"], mutates_args=(), op_name="foo"))
        return made, named, tried(lambda: torch.library.infer_schema(names["f"], mutates_args="unknown"))

    same(program)


@on_both
def test_mutated_arguments_must_be_tensors_of_the_function(torch):
    def f(x: torch.Tensor, n: int) -> None: ...

    infer = torch.library.infer_schema
    return [
        tried(lambda mutated=mutated: infer(f, mutates_args=mutated))
        for mutated in ({"x"}, {"n"}, {"zz"}, "unknown", "bad", ())
    ]


@on_both
def test_a_derivative_is_registered_with_what_it_saves(torch):
    def cube(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:  # noqa: UP006
        return x**3, 3 * x**2

    op = torch.library.custom_op(fresh("cube"), cube, mutates_args=())
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    without = op(x)[0]
    refused = tried(lambda: without.sum().backward())

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    def backward(ctx, grad, grad_dx):
        x, dx = ctx.saved_tensors
        return grad * dx + 6 * grad_dx * x

    op.register_autograd(backward, setup_context=setup)
    y, dy = op(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    with torch.no_grad():
        unrecorded = op(x)[0].requires_grad
    double = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    checked = torch.autograd.gradcheck(op, (double,))
    names = plain(y.grad_fn.name()), plain(type(without.grad_fn).__name__)
    return refused, y, dy, g, h, names, y.grad_fn.next_functions[0][0], unrecorded, checked


@on_both
def test_a_derivative_that_does_not_fit_is_refused(torch):
    op = scale(torch)
    x = torch.ones(2, requires_grad=True)
    found = []
    for backward in (
        lambda ctx, g: g,
        lambda ctx, g: (g, None, None, None, None),
        lambda ctx, g: (g, g, None),
        lambda ctx, g: ("s", None, None),
        lambda ctx, g: (g * 2, None, None),
    ):
        op.register_autograd(backward)
        found.append(tried(lambda: torch.autograd.grad(op(x).sum(), x)[0]))
    return found


@on_both
def test_lists_of_tensors_have_gradients_too(torch):
    def listed(xs: List[torch.Tensor], by: float) -> List[torch.Tensor]:  # noqa: UP006
        return [x * by for x in xs]

    op = torch.library.custom_op(fresh("listed"), listed, mutates_args=())
    seen = []

    def setup(ctx, inputs, output):
        ctx.by = inputs[1]
        seen.append((len(inputs), type(inputs[0]).__name__, type(output).__name__))

    def backward(ctx, grads):
        seen.append(([g.tolist() for g in grads], ctx.needs_input_grad))
        return [g * ctx.by for g in grads], None

    op.register_autograd(backward, setup_context=setup)
    x, y, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), torch.ones(2)
    a, b, c = op([x, y, z], 2.0)
    (a.sum() + 2 * b.sum()).backward()
    op.register_autograd(lambda ctx, grads: (grads[0], None), setup_context=setup)
    wrong = tried(lambda: op([x, y], 2.0)[0].sum().backward())
    return x.grad, y.grad, z.grad, a.requires_grad, c.requires_grad, seen, wrong


@on_both
def test_keyword_only_arguments_reach_setup_context(torch):
    def scaled(x: torch.Tensor, n: int = 1, *, by: float = 2.0, how: str = "a") -> torch.Tensor:
        return x * by * n

    op = torch.library.custom_op(fresh("scaled"), scaled, mutates_args=())
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((len(inputs), inputs[1], dict(keyword_only_inputs)))
        ctx.by = keyword_only_inputs["by"]

    op.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    grads = [torch.autograd.grad(out.sum(), x)[0] for out in (op(x), op(x, by=5.0), op(x, 3, how="b"))]
    return grads, seen


@on_both
def test_results_that_alias_arguments_or_each_other_are_refused(torch):
    def itself(x: torch.Tensor) -> torch.Tensor:
        return x

    def view(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    def twice(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:  # noqa: UP006
        y = x.clone()
        return y, y

    def number(x: torch.Tensor) -> torch.Tensor:
        return 3

    def single(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:  # noqa: UP006
        return x.clone()

    found = []
    for function in (itself, view, twice, number, single):
        op = torch.library.custom_op(fresh(function.__name__), function, mutates_args=())
        found += [tried(lambda op=op: op(torch.ones(2))), tried(lambda op=op: op(torch.ones(2, requires_grad=True)))]
    return found


@on_both
def test_ops_that_write_count_their_writes(torch):
    def write(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        out.add_(x)
        return x.clone()

    def only(x: torch.Tensor) -> None:
        x.sin_()

    op = torch.library.custom_op(fresh("write"), write, mutates_args={"out"})
    other = torch.library.custom_op(fresh("only"), only, mutates_args={"x"})
    out, leaf = torch.zeros(2), torch.ones(2, requires_grad=True)
    first = op(torch.ones(2), out)
    texts = [plain(o._opoverload._schema) for o in (op, other)]
    refused = tried(lambda: other.register_autograd(lambda ctx, g: g))
    recorded = op(leaf, torch.zeros(2)).requires_grad
    return first, out, out._version, other(leaf), leaf, leaf._version, texts, refused, recorded


@on_both
def test_a_given_schema_must_agree_with_mutates_args(torch):
    op = torch.library.custom_op
    return [
        tried(
            lambda: op(fresh("a"), lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")(torch.ones(2))
        ),
        tried(lambda: op(fresh("b"), lambda x: x.clone(), mutates_args={"x"}, schema="(Tensor x) -> Tensor")),
        tried(lambda: op(fresh("c"), lambda x: x.clone(), mutates_args=(), schema="(Tensor(a!) x) -> Tensor")),
        tried(lambda: op("no_namespace", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")),
        tried(lambda: op(fresh("d"), lambda x: x, mutates_args=(), schema="(*, Tensor x) -> Tensor")),
    ]


@on_both
def test_kernels_are_chosen_by_device_and_can_be_switched_off(torch):
    def one(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    op = torch.library.custom_op(fresh("one"), one, mutates_args=(), device_types="cpu")
    x = torch.zeros(1)
    seen = [op(x)]
    op.register_kernel("cpu")(lambda x: x + 10)
    seen.append(op(x))
    with op.set_kernel_enabled("cpu", enabled=False):
        seen.append(op(x))
    seen.append(op(x))
    elsewhere = torch.library.custom_op(fresh("two"), one, mutates_args=(), device_types="cuda")
    refused = tried(lambda: elsewhere(x))
    refused.text = refused.text.partition(". This could")[0]

    def made(n: int) -> torch.Tensor:
        return torch.ones(n)

    maker = torch.library.custom_op(fresh("made"), made, mutates_args=())
    return seen, refused, maker(2), tried(lambda: maker.register_kernel("cpu"))


@on_both
def test_the_meta_device_asks_the_fake_implementation(torch):
    op = scale(torch)
    x = torch.ones(2, 3, device="meta")
    without = tried(lambda: op(x))
    op.register_fake(lambda x, by=2.0, other=None: x.new_empty(x.shape[0], dtype=torch.float64))
    made = op(x)
    recorded = op(x.requires_grad_())
    op.register_fake(lambda x, by=2.0, other=None: torch.library.get_ctx())
    asked = tried(lambda: op(x))
    asked.text = re.sub(r"\(.*?\.py:\d+\)", "()", asked.text)
    names = [plain(recorded.grad_fn.name())]
    return without, list(made.shape), str(made.dtype), made.device.type, names, asked, torch.library.get_ctx()


@on_both
def test_vmap_uses_the_registered_rule_or_goes_entry_by_entry(torch):
    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y + x.shape[0]

    op = torch.library.custom_op(fresh("product"), product, mutates_args=())
    a, b = torch.arange(6.0).view(3, 2), torch.arange(6.0).view(2, 3)
    plainly = [torch.vmap(op, (0, 1))(a, b), torch.vmap(op, (0, None))(a, b[:, 0])]
    seen = []

    @op.register_vmap
    def rule(info, in_dims, x, y):
        seen.append((info.batch_size, info.randomness, in_dims, list(x.shape)))
        x, y = (t if d is None else t.movedim(d, 0) for t, d in zip((x, y), in_dims, strict=True))
        return x * y, 0

    ruled = [torch.vmap(op, (0, 1))(a, b), torch.vmap(op, (0, None))(a, b[:, 0])]
    return plainly, ruled, seen, list(torch.vmap(torch.vmap(op))(torch.ones(2, 3, 2), torch.ones(2, 3, 2)).shape)


@on_both
def test_a_second_definition_takes_the_place_of_the_first(torch):
    name = fresh("again")

    def one(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def two(x: torch.Tensor) -> torch.Tensor:
        return x + 2

    first = torch.library.custom_op(name, one, mutates_args=())
    second = torch.library.custom_op(name, two, mutates_args=())
    x = torch.zeros(1)
    return first(x), second(x), getattr(torch.ops.pbtest, name.split("::")[1])(x)


@on_both
def test_function_modes_and_subclasses_see_the_op(torch):
    op = scale(torch)
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(plain(func))
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(plain(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(1)
    with Mode():
        op(x)
        torch.ops.aten.add(x, x)
        torch.ops.aten.mul.Tensor(x, x)
    made = op(torch.ones(1).as_subclass(Sub))
    return seen, type(made).__name__


@on_both
def test_opcheck_finds_a_schema_that_does_not_tell_the_truth(torch):
    def honest(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def liar(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + 1

    good = torch.library.custom_op(fresh("honest"), honest, mutates_args=())
    bad = torch.library.custom_op(fresh("liar"), liar, mutates_args=())
    check = torch.library.opcheck
    x = torch.ones(2)
    good.register_fake(lambda x: torch.empty_like(x))
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    found = tried(lambda: check(bad, (x,), test_utils="test_schema"))
    return check(good, (x,), test_utils=tests), found.kind, tried(lambda: check(3, ()))
