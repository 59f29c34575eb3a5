"""autograd.Function: both styles, its arguments and outputs, its modes, its names, and every way to call it wrong."""

from tests.conformance.both import attempt, on_both


def square(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square


@on_both
def test_value_gradient_and_second_gradient(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return y, y.grad_fn, y.grad_fn.name(), y.is_leaf, g, h, y.grad_fn.next_functions[0][0]


@on_both
def test_names_of_the_node_class(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    node = Square.apply(x).grad_fn
    return (
        type(node).__name__,
        type(node).__mro__[1].__name__,
        isinstance(node, torch.autograd.graph.Node),
        node.requires_grad,
        node.metadata,
        repr(node),
        Square._backward_cls is type(node),
        type(node)._forward_cls is Square,
        node.saved_tensors,
        node.needs_input_grad,
        node.dirty_tensors,
        node.non_differentiable,
        attempt(lambda: node.materialize_grads),
        attempt(lambda: node(torch.ones(2))),
    )


@on_both
def test_separate_setup_context(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, grad):
            _x, out = ctx.saved_tensors
            return grad * ctx.factor + 0 * out, None

    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Scale.apply(x, 4.0)
    y.sum().backward()
    return y, x.grad, y.grad_fn


@on_both
def test_setup_context_wants_a_forward_without_ctx(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    return attempt(lambda: Wrong.apply(torch.ones(1, requires_grad=True)))


@on_both
def test_grad_mode_inside_forward_and_backward(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            seen.append((torch.is_grad_enabled(), y.requires_grad, x.requires_grad))
            return y

        @staticmethod
        def backward(ctx, grad):
            seen.append((torch.is_grad_enabled(), grad.requires_grad))
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    with torch.no_grad():
        y = F.apply(x)
    return seen, y.requires_grad, y.grad_fn


@on_both
def test_arguments_that_are_no_tensors(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n, text, items, other=None):
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.n, None, None, None

    x = torch.ones(2, requires_grad=True)
    y = F.apply(x, 3, "text", [1, 2])
    y.sum().backward()
    return y, x.grad, y.grad_fn.needs_input_grad, len(y.grad_fn.next_functions)


@on_both
def test_tensors_inside_lists_are_not_tracked(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, items):
            return items[0] * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    y = F.apply([torch.ones(2, requires_grad=True)])
    return y.requires_grad, y


@on_both
def test_outputs_that_are_no_tensors(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", None, 5

        @staticmethod
        def backward(ctx, *grads):
            return grads[0]

    x = torch.ones(2, requires_grad=True)
    a, b, c, d = F.apply(x)
    a.sum().backward()
    return a, b, c, d, x.grad


@on_both
def test_function_without_backward_or_forward(torch):
    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class NoForward(torch.autograd.Function):
        pass

    x = torch.ones(2, requires_grad=True)
    y = NoBackward.apply(x)
    return y, attempt(lambda: y.sum().backward()), attempt(lambda: NoForward.apply(x))


@on_both
def test_vjp_is_another_name_of_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 10

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    return x.grad, attempt(lambda: Both.apply(x).sum().backward())


@on_both
def test_instances_are_not_for_use(torch):
    Square = square(torch)
    made = Square()
    return attempt(lambda: made(torch.ones(1))), attempt(lambda: Square.forward is made.forward)


@on_both
def test_exceptions_in_forward_and_backward(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.where = where
            if where == "forward":
                raise ValueError("in forward")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("in backward")

    x = torch.ones(2, requires_grad=True)
    errors = attempt(lambda: Bad.apply(x, "forward")), attempt(lambda: Bad.apply(x, "backward").sum().backward())
    (x * 3).sum().backward()
    return errors, torch.is_grad_enabled(), x.grad


@on_both
def test_function_in_inference_mode(torch):
    Square = square(torch)
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = Square.apply(x)
    return y.requires_grad, y.is_inference()


@on_both
def test_jvp_of_a_function(torch):
    forward_ad = torch.autograd.forward_ad

    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, x_t, y_t):
            x, y = ctx.saved_tensors
            return x_t * y + y_t * x

    x = torch.tensor([1.0, 2.0])
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor([1.0, 10.0]))
        primal, tangent = forward_ad.unpack_dual(Mul.apply(dual, y))
    return primal, tangent


@on_both
def test_missing_jvp_is_an_error(torch):
    Square = square(torch)
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        return attempt(lambda: Square.apply(dual))


@on_both
def test_wrong_jvps(torch):
    forward_ad = torch.autograd.forward_ad

    def function(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3

            @staticmethod
            def jvp(ctx, t):
                return result(t)

        return F

    def call(result):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
            return [forward_ad.unpack_dual(out).tangent for out in function(result).apply(dual)]

    results = [lambda t: t, lambda t: (t, t, t), lambda t: (t, 5), lambda t: (t, torch.ones(3)), lambda t: (t, t)]
    return [attempt(lambda r=r: call(r)) for r in results]


@on_both
def test_static_vmap_is_there_but_must_be_written(torch):
    Square = square(torch)
    return Square.generate_vmap_rule, attempt(lambda: Square.vmap(None, None))


@on_both
def test_class_attributes_of_function(torch):
    F = torch.autograd.Function
    return (
        attempt(lambda: F.forward(None)),
        attempt(lambda: F.backward(None)),
        attempt(lambda: F.vjp(None)),
        attempt(lambda: F.jvp(None)),
        attempt(lambda: F.setup_context(None, (), None)),
    )


@on_both
def test_a_subclass_of_a_function_has_a_node_of_its_own(torch):
    Square = square(torch)

    class Fourth(Square):
        @staticmethod
        def backward(ctx, g):
            return g * 100

    x = torch.tensor([2.0], requires_grad=True)
    y = Fourth.apply(x)
    y.backward()
    return y.grad_fn, x.grad


@on_both
def test_hooks_on_the_node_of_a_function(torch):
    seen = []
    Square = square(torch)
    x = torch.tensor([2.0], requires_grad=True)
    y = Square.apply(x)
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi, go)))
    y.grad_fn.register_prehook(lambda go: seen.append(("pre", go)))
    y.register_hook(lambda g: seen.append(("tensor", g)))
    y.backward()
    return seen


@on_both
def test_complex_and_half_functions(torch):
    Square = square(torch)
    x = torch.tensor([1 + 2j], requires_grad=True)
    Square.apply(x).real.sum().backward()
    h = torch.tensor([2.0], dtype=torch.float16, requires_grad=True)
    Square.apply(h).sum().backward()
    return x.grad, h.grad


@on_both
def test_keyword_arguments(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = torch.ones(2, requires_grad=True)
    return attempt(lambda: F.apply(x, factor=3)), attempt(lambda: F.apply(x=x)), attempt(lambda: F.apply())


@on_both
def test_keywords_have_their_places(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, a=2, b=3):
            return x * a * b

        @staticmethod
        def backward(ctx, *grads):
            return grads[0], None, None

    x = torch.ones(2, requires_grad=True)
    return [
        attempt(lambda: F.apply(x, a=5)),
        attempt(lambda: F.apply(b=5, x=x).grad_fn.needs_input_grad),
        attempt(lambda: F.apply(torch.ones(2), a=x).grad_fn.next_functions[0]),
        attempt(lambda: F.apply(x, c=5)),
    ]


@on_both
def test_defaults_reach_setup_context(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(x, factor=2):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(inputs[1:])
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    F.apply(x=x).sum().backward()
    F.apply(x, factor=5).sum().backward()
    return seen, x.grad, attempt(lambda: F.apply(x, 1, 2)), attempt(lambda: F.apply())
