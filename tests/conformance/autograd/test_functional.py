"""autograd.functional: jacobian, hessian and the vector products, their options and their errors."""

import warnings

import pytest

from tests.conformance.both import attempt, same


def numbers(torch, *shape, start=0.1, step=0.3):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) * step + start).reshape(shape)


def one_to_one(x):
    return (x**3).sin()


def reduces(x):
    return x.exp().sum(dim=1)


def two_in(x, y):
    return x * y.exp() + 2 * x


def two_out(x):
    return x.sin(), (x * x).sum()


def two_and_two(x, y):
    return x * y, (x.sum() * y).exp()


def unused(x, y):
    return x * x


def constant(x):
    return x.detach() * 0 + 1


def views(x):
    return x.t().reshape(-1)[1:].tanh()


def scalar(x):
    return (x**3).sum() * x[0].sum()


def scalar_of_two(x, y):
    return (x * y.exp()).sum()


def linear(x):
    return (2 * x).sum()


FUNCTIONS = {f.__name__: f for f in (one_to_one, reduces, two_in, two_out, two_and_two, unused, constant, views)}
SCALARS = {f.__name__: f for f in (scalar, scalar_of_two, linear)}


def inputs_for(torch, function):
    count = function.__code__.co_argcount
    tensors = tuple(numbers(torch, 2, 3, start=0.1 * (i + 1)) for i in range(count))
    return tensors if count > 1 else tensors[0]


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"vectorize": True}, {"strict": True}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name, options):
    function = FUNCTIONS[name]
    same(lambda torch: torch.autograd.functional.jacobian(function, inputs_for(torch, function), **options))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_jacobian(name):
    def program(torch):
        with warnings.catch_warnings():  # torch's first use of forward mode warns about a compiler of its own
            warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated")
            return forward_mode(torch)

    def forward_mode(torch):
        given = inputs_for(torch, FUNCTIONS[name])
        return torch.autograd.functional.jacobian(FUNCTIONS[name], given, vectorize=True, strategy="forward-mode")

    same(program)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"create_graph": True},
        {"vectorize": True},
        {"strict": True},
        {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name, options):
    function = SCALARS[name]
    same(lambda torch: torch.autograd.functional.hessian(function, inputs_for(torch, function), **options))


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"strict": True}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vjp(name, options):
    function = FUNCTIONS[name]

    def program(torch):
        given = inputs_for(torch, function)
        out = function(*given) if isinstance(given, tuple) else function(given)
        v = tuple(numbers(torch, *o.shape) for o in out) if isinstance(out, tuple) else numbers(torch, *out.shape)
        return torch.autograd.functional.vjp(function, given, v, **options)

    same(program)


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"strict": True}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp(name, options):
    function = FUNCTIONS[name]

    def program(torch):
        given = inputs_for(torch, function)
        v = tuple(numbers(torch, 2, 3) for _ in given) if isinstance(given, tuple) else numbers(torch, 2, 3)
        return torch.autograd.functional.jvp(function, given, v, **options)

    same(program)


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"strict": True}], ids=str)
@pytest.mark.parametrize("product", ["vhp", "hvp"])
@pytest.mark.parametrize("name", SCALARS)
def test_products_with_the_hessian(name, product, options):
    function = SCALARS[name]

    def program(torch):
        given = inputs_for(torch, function)
        v = tuple(numbers(torch, 2, 3) for _ in given) if isinstance(given, tuple) else numbers(torch, 2, 3)
        return getattr(torch.autograd.functional, product)(function, given, v, **options)

    same(program)


@pytest.mark.parametrize("create_graph", [False, True])
def test_results_are_differentiable_with_create_graph_and_only_then(create_graph):
    def program(torch):
        x = numbers(torch, 3).requires_grad_()
        jacobian = torch.autograd.functional.jacobian(lambda x: x**3 * x.sum(), x, create_graph=create_graph)
        if not create_graph:
            return jacobian.requires_grad, jacobian.grad_fn
        return torch.autograd.grad(jacobian.sum(), x)

    same(program)


def test_grad_mode_around_the_call_does_not_matter():
    def program(torch):
        x = numbers(torch, 3)
        with torch.no_grad():
            return [
                torch.autograd.functional.jacobian(lambda x: x**2, x),
                torch.autograd.functional.vjp(lambda x: x**2, x, x),
                torch.autograd.functional.jvp(lambda x: x**2, x, x),
                torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, x),
            ]

    same(program)


def test_complex_jacobian_and_products():
    def program(torch):
        x = torch.complex(numbers(torch, 2), numbers(torch, 2, start=0.5))
        f = torch.autograd.functional
        return f.jacobian(lambda x: x * x, x), f.vjp(lambda x: x * x, x, x), f.jvp(lambda x: x * x, x, x)

    same(program)


def test_a_function_that_uses_its_input_in_place():
    def program(torch):
        def function(x):
            y = x.clone()
            y[0] = y[1] * 3
            y.mul_(x)
            return y

        return torch.autograd.functional.jacobian(function, numbers(torch, 3))

    same(program)


def test_hooks_inside_the_function_run_once_per_row():
    def program(torch):
        seen = []

        def function(x):
            y = x * 2
            y.register_hook(lambda g: seen.append(g.tolist()))
            return y * x

        jacobian = torch.autograd.functional.jacobian(function, numbers(torch, 3))
        return jacobian, seen

    same(program)


def test_a_custom_function_inside():
    def program(torch):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 3 * x * x * grad

        f = torch.autograd.functional
        return f.jacobian(Cube.apply, numbers(torch, 3)), f.hessian(lambda x: Cube.apply(x).sum(), numbers(torch, 3))

    same(program)


def test_errors_of_wrong_arguments():
    def program(torch):
        f = torch.autograd.functional
        x = numbers(torch, 3)
        return [
            attempt(lambda: f.jacobian(lambda x: x, [x])),
            attempt(lambda: f.jacobian(lambda x: x, (x, 3))),
            attempt(lambda: f.jacobian(lambda x: 3, x)),
            attempt(lambda: f.jacobian(lambda x: (x, 3), x)),
            attempt(lambda: f.jacobian(lambda x: [x], x)),
            attempt(lambda: f.jacobian(lambda x: x, x, strategy="sideways")),
            attempt(lambda: f.jacobian(lambda x: x, x, strategy="forward-mode")),
            attempt(lambda: f.jacobian(lambda x: x, x, strategy="forward-mode", create_graph=True)),
            attempt(lambda: f.jacobian(lambda x: x, x, strategy="forward-mode", strict=True)),
            attempt(lambda: f.jacobian(lambda x: x * 2, x, vectorize=True, strict=True)),
            attempt(lambda: f.hessian(lambda x: x, x)),
            attempt(lambda: f.hessian(lambda x: (x.sum(), x), x)),
            attempt(lambda: f.hessian(lambda x: x.sum(), x, outer_jacobian_strategy="up")),
            attempt(lambda: f.vjp(lambda x: x, x)),
            attempt(lambda: f.vjp(lambda x: x, x, x[:2])),
            attempt(lambda: f.vjp(lambda x: (x, x), x, x)),
            attempt(lambda: f.vjp(lambda x: (x, x), x, (x, x[:2]))),
            attempt(lambda: f.vjp(lambda x: x, x, (x, x))),
            attempt(lambda: f.vjp(lambda x: x, x, 3)),
            attempt(lambda: f.jvp(lambda x: x, x)),
            attempt(lambda: f.jvp(lambda x: x, x, x[:2])),
            attempt(lambda: f.vhp(lambda x: x, x, x)),
            attempt(lambda: f.vhp(lambda x: (x.sum(),), x, x)),
            attempt(lambda: f.hvp(lambda x: x, x, x)),
            attempt(lambda: f.hvp(lambda x: x.sum(), x)),
        ]

    same(program)


@pytest.mark.parametrize("create_graph", [False, True])
def test_strict_mode_says_what_does_not_depend_on_what(create_graph):
    options = {"strict": True, "create_graph": create_graph}

    def program(torch):
        f = torch.autograd.functional
        x, y = numbers(torch, 3), numbers(torch, 3)
        given = (x.clone().requires_grad_(), y.clone().requires_grad_())
        return [
            attempt(lambda: f.jacobian(lambda x, y: x * x, given, **options)),
            attempt(lambda: f.jacobian(lambda x, y: x + y, given, **options)),
            attempt(lambda: f.jacobian(lambda x, y: torch.ones(3), given, **options)),
            attempt(lambda: f.hessian(lambda x, y: (x * x).sum(), given, **options)),
            attempt(lambda: f.hessian(lambda x, y: (x * x + y).sum(), given, **options)),
            attempt(lambda: f.hessian(lambda x, y: (x * y).sum(), given, **options)),
            attempt(lambda: f.vjp(lambda x, y: x * x, given, x, **options)),
            attempt(lambda: f.vjp(lambda x, y: x + y, given, x, **options)),
            attempt(lambda: f.jvp(lambda x, y: x * x, given, (x, y), **options)),
            attempt(lambda: f.jvp(lambda x, y: x + y, given, (x, y), **options)),
            attempt(lambda: f.vhp(lambda x, y: (x * x).sum(), given, (x, y), **options)),
            attempt(lambda: f.vhp(lambda x, y: (x + y * y).sum(), given, (x, y), **options)),
            attempt(lambda: f.hvp(lambda x, y: (x * y).sum(), given, (x, y), **options)),
            attempt(lambda: f.hvp(lambda x, y: (x + y).sum(), given, (x, y), **options)),
        ]

    same(program)


def test_a_scalar_needs_no_vector():
    def program(torch):
        f = torch.autograd.functional
        x = torch.tensor(0.5, dtype=torch.float64)
        return f.vjp(lambda x: x * x, x), f.jvp(lambda x: x * x, x), f.vhp(lambda x: x**3, x), f.hvp(lambda x: x**3, x)

    same(program)
