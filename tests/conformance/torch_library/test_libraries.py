"""torch.library.Library, define, impl and register_* on torch and on pullback."""

import re

import pytest

from tests.conformance.both import attempt, on_both, same

NUMBERS = iter(range(10**6))


def space():
    """A namespace of its own: definitions live as long as their library."""
    return f"pbspace_q{next(NUMBERS)}"


def plain(value):
    """A text without names of namespaces, places and modules."""
    text = re.sub(r"_q\d+", "", str(value))
    return re.sub(r"/\S+\.py:\d+", "PLACE", text).replace("pullback", "torch")


def tried(action):
    """What an action gives, or its error, without names."""
    result = attempt(action)
    if hasattr(result, "text"):
        result.text = plain(result.text).partition(". This could be because")[0]
    return plain(result) if isinstance(result, str) else result


@on_both
def test_ops_are_defined_implemented_and_called(torch):
    name = space()
    lib = torch.library.Library(name, "DEF")
    found = [plain(lib), lib.define("foo(Tensor x) -> Tensor"), lib.define("foo.two(Tensor x, Tensor y) -> Tensor")]
    ops = getattr(torch.ops, name)
    x = torch.ones(2, requires_grad=True)
    found += [tried(lambda: ops.foo(x)), tried(lambda: ops.foo(x, x))]
    lib.impl("foo", lambda x: x.sin(), "CPU")
    lib.impl("foo.two", lambda x, y: x * y)
    found += [ops.foo(x), ops.foo(x).grad_fn, ops.foo(x, x), ops.foo.overloads(), ops.foo.default(x), ops.foo.two(x, x)]
    found += [tried(lambda: ops.foo(x, x, x)), tried(lambda: ops.foo("s"))]
    found += [plain(ops.foo.two), plain(repr(ops.foo.two)), ops.foo.two.name() == f"{name}::foo.two"]
    lib._destroy()
    return found, tried(lambda: ops.foo), tried(lambda: lib.define("k(Tensor x) -> Tensor"))


@on_both
def test_what_no_library_can_do_is_refused(torch):
    name = space()
    Library = torch.library.Library
    lib = Library(name, "DEF")
    lib.define("foo(Tensor x) -> Tensor")
    return [
        tried(action)
        for action in (
            lambda: Library("x", "BAD"),
            lambda: Library("prim", "DEF"),
            lambda: Library(name, "DEF"),
            lambda: lib.define("foo(Tensor x) -> Tensor"),
            lambda: lib.define("other::bad(Tensor x) -> Tensor"),
            lambda: lib.define("bad", "WRONG"),
            lambda: lib.impl("foo", 3),
            lambda: lib.impl(3, lambda x: x),
            lambda: lib.impl("foo", lambda x: x, "NOKEY"),
            lambda: lib.impl("not_defined", lambda x: x),
            lambda: lib.fallback(lambda x: x, "CPU"),
            lambda: Library("_", "IMPL").fallback(lambda x: x, ""),
            lambda: torch.library.define("no_namespace", "(Tensor x) -> Tensor"),
            lambda: torch.library.define(3, "(Tensor x) -> Tensor"),
            lambda: torch.library.define(f"{name}::f", "Tensor x -> Tensor"),
            lambda: torch.library.register_fake(f"{name}::nope", lambda x: x),
            lambda: torch.library.register_fake(3, lambda x: x),
            lambda: torch.library.register_autograd(f"{name}::nope", lambda ctx, g: g),
            lambda: torch.library.fallthrough_kernel(),
        )
    ]


SCHEMAS = """(Tensor x, float f=2.0) -> Tensor
(Tensor(a!) x, Tensor(b)[] y) -> (Tensor(a!), Tensor(b)[])
(int[2] b=1, int[2] c=[0,1], str s='x', str t="y", Device? d=None, bool q=False) -> (Tensor)
(Tensor a, *, Generator? generator=None, Layout? l=None) -> (Tensor out, int b)
(Scalar s=1, Scalar t=1.0, ScalarType d=float, ScalarType e=7, Scalar? u=None) -> Tensor[]
(SymInt[] v=[], float[] w=[1.0,2.0], bool[] m=[True, False]) -> (Tensor)
(Tensor? x, Tensor?[] y, int[]? z, Any a, Stream s) -> int
(Dict(str, Tensor) x) -> Tensor
(Tensor x, ...) -> Tensor
(Tensor x=None) -> ()
(float f=1e-5, float g=0.1, int k=-3, float m=-1.5) -> Tensor
(Tensor x, MemoryFormat f=contiguous_format, bool[3] b) -> ((Tensor, Tensor))
(int[] a=1) -> Tensor
(Tensor x, int) -> Tensor
(foo x) -> Tensor
(Tensor x) -> Foo
(int x=abc) -> Tensor
(Tensor x) ->  """


@pytest.mark.parametrize("schema", SCHEMAS.splitlines())
def test_a_schema_is_read_and_shown_as_by_torch(schema):
    def program(torch):
        name = space()

        def defined():
            torch.library.define(f"{name}::op", schema)
            found = getattr(torch.ops, name).op.default._schema
            arguments = [(a.name, str(a.type), a.default_value, a.N, a.kwarg_only) for a in found.arguments]
            written = [a.alias_info.is_write if a.alias_info else None for a in found.arguments]
            return plain(found), plain(arguments), written, [(r.name, str(r.type)) for r in found.returns]

        return tried(defined)

    same(program)


@on_both
def test_registrations_add_what_an_op_does(torch):
    name = space()
    torch.library.define(f"{name}::foo", "(Tensor x, float by=2.0) -> Tensor")
    foo = getattr(torch.ops, name).foo
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.library.impl(f"{name}::foo", "cpu")(lambda x, by=2.0: x.detach() * by)
    meta = torch.ones(2, device="meta")
    refused = tried(lambda: foo(meta))
    torch.library.register_fake(f"{name}::foo", lambda x, by=2.0: torch.empty_like(x))
    fake = foo(meta).device.type
    torch.library.register_autograd(f"{name}::foo", lambda ctx, g: (g * 7, None))
    (grad,) = torch.autograd.grad(foo(x).sum(), x)
    torch.library.register_vmap(f"{name}::foo", lambda info, dims, x, by=2.0: (x * 3, dims[0]))
    batched = torch.vmap(foo)(torch.ones(3, 2))
    return refused, fake, grad, foo(x, 3.0), batched


@on_both
def test_composite_kernels_record_their_parts(torch):
    lib = torch.library.Library(space(), "FRAGMENT")
    lib.define("g(Tensor x) -> Tensor")
    lib.define("v(Tensor(a) x) -> Tensor(a)")
    lib.define("m_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("g", lambda x: x.relu() * 2, "CompositeImplicitAutograd")
    lib.impl("v", lambda x: x.view(-1), "CPU")
    lib.impl("m_", lambda x: x.mul_(2), "CPU")
    ops = getattr(torch.ops, lib.ns)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    wrote = ops.m_(y)
    made = [ops.g(x).grad_fn, ops.v.default.is_view, ops.g.default.is_view, wrote, y, y._version]
    return made, ops.m_.default._schema.is_mutable, torch.vmap(ops.g)(torch.ones(2, 2))


@on_both
def test_an_op_may_do_its_own_autograd(torch):
    lib = torch.library.Library(space(), "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    op = getattr(torch.ops, lib.ns).twice

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    lib.impl("twice", Twice.apply, "Autograd")
    x = torch.ones(2, requires_grad=True)
    y = op(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    return y, y.grad_fn, grad
