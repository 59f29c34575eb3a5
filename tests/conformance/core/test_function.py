"""autograd.Function: both styles, what may be saved, returned and marked, and every way to do it wrong."""

from .both import attempt, on_both


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
def test_several_inputs_and_outputs(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, ga, gb):
            x, y = ctx.saved_tensors
            return ga * y + gb, ga * x + gb

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    a, b = F.apply(x, y)
    (a.sum() + (b * b).sum()).backward()
    return a, b, a.output_nr, b.output_nr, a.grad_fn is b.grad_fn, x.grad, y.grad


@on_both
def test_unused_outputs_get_zeros(torch):
    seen = []

    def function(materialize):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3, (x * 4).double()

            @staticmethod
            def backward(ctx, a, b, c):
                seen.append((a, b, c))
                return a

        return F

    x = torch.ones(2, requires_grad=True)
    for materialize in (True, False):
        first, _, _ = function(materialize).apply(x)
        first.sum().backward()
    return seen, x.grad


@on_both
def test_node_between_undefined_gradients_still_runs(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = torch.ones(2, requires_grad=True)
    Nothing.apply(F.apply(x)).sum().backward()
    return seen, x.grad


@on_both
def test_integer_and_marked_outputs_have_no_gradient(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            idx = torch.tensor([0, 1])
            flat = x * 5
            ctx.mark_non_differentiable(flat)
            return x * 2, idx, flat

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append((a, b, c))
            return a

    x = torch.ones(2, requires_grad=True)
    a, b, c = F.apply(x)
    a.sum().backward()
    return seen, b.requires_grad, c.requires_grad, c.grad_fn, b.grad_fn, x.grad, b.is_leaf, c.is_leaf


@on_both
def test_marking_everything_non_differentiable(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    y = F.apply(torch.ones(2, requires_grad=True))
    return y.requires_grad, y.grad_fn


@on_both
def test_marks_must_be_tensors(torch):
    def function(mark):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                getattr(ctx, mark)(3)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

        return F

    x = torch.ones(2, requires_grad=True)
    return [
        attempt(lambda m=m: function(m).apply(x))
        for m in ("mark_dirty", "mark_non_differentiable", "save_for_backward", "save_for_forward")
    ]


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
def test_wrong_number_of_gradients(torch):
    def function(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return F

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    results = [
        lambda g: g,
        lambda g: (g,),
        lambda g: (g, g, g),
        lambda g: (g, g, None),
        lambda g: None,
        lambda g: (None, None),
        lambda g: (g, None, None, None),
        lambda g: [g, g],
        lambda g: (),
    ]
    return [
        attempt(lambda r=r: torch.autograd.grad(function(r).apply(x, y).sum(), [x, y], allow_unused=True))
        for r in results
    ]


@on_both
def test_gradients_of_wrong_type_shape_and_dtype(torch):
    def function(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return F

    x = torch.ones(2, 3, requires_grad=True)
    results = [
        lambda g: 5,
        lambda g: "text",
        lambda g: torch.ones(2),
        lambda g: torch.ones(4, 2, 3),
        lambda g: torch.ones(3),
        lambda g: torch.ones(1, 2, 3),
        lambda g: g.double(),
        lambda g: torch.ones(2, 3, dtype=torch.int64),
        lambda g: torch.tensor(1.0),
    ]
    return [attempt(lambda r=r: torch.autograd.grad(function(r).apply(x).sum(), x)) for r in results]


@on_both
def test_gradient_for_an_argument_that_is_no_tensor(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.ones(2, requires_grad=True)
    return attempt(lambda: F.apply(x, 2).sum().backward())


@on_both
def test_gradient_for_a_tensor_that_needs_none_is_dropped(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2)
    z = F.apply(x, y)
    z.sum().backward()
    return x.grad, y.grad, z.grad_fn.next_functions[1], z.grad_fn.needs_input_grad


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
def test_saved_tensors_after_backward(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad, attempt(lambda: y.sum().backward()), attempt(lambda: y.grad_fn.saved_tensors)


@on_both
def test_nothing_saved_may_run_twice(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = torch.ones(2, requires_grad=True)
    y = F.apply(x)
    y.backward(torch.ones(2))
    y.backward(torch.ones(2))
    return x.grad, attempt(lambda: y.grad_fn.saved_tensors)


@on_both
def test_stale_saved_tensors(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    a = x * 1
    y = Square.apply(a)
    a.add_(1)
    return attempt(lambda: y.sum().backward())


@on_both
def test_saving_outputs_and_intermediates(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out, None, x * 7)
            return out

        @staticmethod
        def backward(ctx, g):
            out, _nothing, seven = ctx.saved_tensors
            return g * out + 0 * seven

    x = torch.tensor([1.0, 0.5], requires_grad=True)
    y = F.apply(x)
    saved = y.grad_fn.saved_tensors
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h, [None if s is None else s.requires_grad for s in saved], saved[0].grad_fn is y.grad_fn


@on_both
def test_raw_saved_tensors_take_hooks(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda t: t.tolist(), lambda values: torch.tensor(values) * 10)
    y.sum().backward()
    return x.grad, y.grad_fn.saved_tensors if False else None


@on_both
def test_default_hooks_pack_what_functions_save(torch):
    seen = []
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t * 2, lambda t: t):
        y = Square.apply(x)
    y.sum().backward()
    return seen, x.grad


@on_both
def test_dirty_inputs(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = AddOne.apply(y)
    version = y._version
    z.sum().backward()
    plain = torch.ones(2)
    again = AddOne.apply(plain)
    return z is y, z, z.grad_fn, version, x.grad, again is plain, plain, plain._version


@on_both
def test_dirty_leaf_is_an_error(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return attempt(lambda: AddOne.apply(x)), x.requires_grad, x.is_leaf


@on_both
def test_dirty_but_not_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    return attempt(lambda: F.apply(x))


@on_both
def test_dirty_view_of_a_history(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    view = base[:1]
    out = Double.apply(view)
    (base * base).sum().backward()
    return out, base, base.grad_fn, out is view, view.grad_fn, x.grad


@on_both
def test_dirty_view_beside_another_output(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a

    base = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    return attempt(lambda: F.apply(base[:1]))


@on_both
def test_input_returned_as_it_is(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Same.apply(x)
    y.sum().backward()
    plain = torch.ones(2)
    p = Same.apply(plain)
    z = x * 1
    w = Same.apply(z)
    return (
        y is x,
        y.grad_fn,
        x.grad,
        x.grad_fn,
        y._is_view(),
        y._base is x,
        p is plain,
        p._is_view(),
        attempt(lambda: w.mul_(2)),
        y.data_ptr() == x.data_ptr(),
    )


@on_both
def test_view_of_an_input_returned(torch):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g, torch.zeros(1)])

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = x * 1
    y = First.apply(a)
    y.sum().backward()
    return y, y.grad_fn, y._is_view(), x.grad, attempt(lambda: y.mul_(2)), attempt(lambda: a.mul_(2).sum())


@on_both
def test_two_views_of_an_input_returned(torch):
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, a, b):
            return torch.cat([a, b])

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Halves.apply(x * 1)
    return a, b, attempt(lambda: a.mul_(2)), a._is_view()


@on_both
def test_same_tensor_returned_twice(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 20

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Twice.apply(x)
    a.sum().backward(retain_graph=True)
    first = x.grad.clone()
    x.grad = None
    b.sum().backward()
    return a is b, a.output_nr, b.output_nr, first, x.grad


@on_both
def test_same_argument_given_twice(torch):
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    x = torch.tensor([3.0], requires_grad=True)
    y = Mul.apply(x, x)
    y.backward()
    return x.grad, len(y.grad_fn.next_functions), y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[1][0]


@on_both
def test_leaf_made_inside_forward_is_returned(torch):
    class Make(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.ones(2, requires_grad=True)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Make.apply(x)
    y.sum().backward()
    return y, y.grad_fn, x.grad


@on_both
def test_graph_built_inside_forward_is_cut(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                y = x * x
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 100

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    plain = F.apply(torch.ones(1))
    return y.grad_fn, x.grad, plain.requires_grad, plain.grad_fn


@on_both
def test_once_differentiable(torch):
    once = torch.autograd.function.once_differentiable

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    F.apply(x).sum().backward()
    first = x.grad.clone()
    (g,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    v = torch.ones(2, requires_grad=True)
    (h,) = torch.autograd.grad(F.apply(x), x, v, create_graph=True)
    return first, g.requires_grad, h.requires_grad, h.grad_fn, attempt(lambda: h.sum().backward())


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
def test_saved_variables_is_deprecated(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_variables
            return g * x

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    return x.grad


@on_both
def test_saving_twice_keeps_the_last(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y, None

    x = torch.ones(2, requires_grad=True)
    y = torch.tensor([2.0, 3.0])
    F.apply(x, y).sum().backward()
    return x.grad


@on_both
def test_attributes_on_ctx_survive_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = "kept"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.more = 5
            return g

    y = F.apply(torch.ones(1, requires_grad=True))
    node = y.grad_fn
    y.backward()
    return node.note, node.more, attempt(lambda: node.absent)


@on_both
def test_needs_input_grad_in_forward_and_backward(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    x = torch.ones(2, requires_grad=True)
    F.apply(x, torch.ones(2), 3).sum().backward()
    with torch.no_grad():
        F.apply(x, torch.ones(2), 3)
    return seen


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


@on_both
def test_jvp_of_views_and_writes(torch):
    forward_ad = torch.autograd.forward_ad

    def function(run, move, dirty=False):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if dirty:
                    ctx.mark_dirty(x)
                return run(x)

            @staticmethod
            def jvp(ctx, t):
                return move(t)

        return F

    def call(*parts):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
            return tuple(forward_ad.unpack_dual(function(*parts).apply(dual)))

    return [
        attempt(lambda: call(lambda x: x[:1], lambda t: t[:1])),
        attempt(lambda: call(lambda x: x[:1], lambda t: t[:1].clone())),
        attempt(lambda: call(lambda x: x, lambda t: t)),
        attempt(lambda: call(lambda x: x, lambda t: t.view_as(t))),
        attempt(lambda: call(lambda x: x.mul_(2), lambda t: t * 2, True)),
        attempt(lambda: call(lambda x: x.mul_(2), lambda t: t.mul_(2), True)),
    ]


@on_both
def test_once_differentiable_leads_nowhere(torch):
    once = torch.autograd.function.once_differentiable

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        @once
        def backward(ctx, g):
            return g * 2, g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    a, b = torch.autograd.grad(F.apply(x, y), [x, y], v, create_graph=True)
    return (
        a.grad_fn is b.grad_fn,
        a.output_nr,
        b.output_nr,
        a.grad_fn.name(),
        a.grad_fn.next_functions,
        attempt(lambda: torch.autograd.grad(a.sum(), v)),
        attempt(lambda: (a + b).sum().backward()),
    )


@on_both
def test_marking_something_new_dirty_warns(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    return y, y._version, x.grad


@on_both
def test_input_saved_and_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, out = ctx.saved_tensors
            return g * x * out

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    return y.grad_fn, x.grad


@on_both
def test_non_differentiable_input_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    return y is x, y.requires_grad, y.grad_fn, y._is_view(), x.requires_grad, y.data_ptr() == x.data_ptr()


def doubling_in_place(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Double


@on_both
def test_writing_to_a_view_follows_the_rules_of_ops_in_place(torch):
    double = doubling_in_place(torch)
    leaf = torch.ones(2, requires_grad=True)
    inner = leaf * 1
    with torch.no_grad():
        of_leaf, of_inner = leaf.view(2), inner[:1]
    inputs = [leaf, leaf.view(2), leaf[:1], leaf.unbind()[0], inner.unbind()[0], of_leaf, of_inner, inner[:1]]
    return [attempt(lambda x=x: double.apply(x)) for x in inputs] + [leaf, leaf.is_leaf]


@on_both
def test_writing_where_nobody_records_gives_an_alias_without_history(torch):
    double = doubling_in_place(torch)
    leaf = torch.ones(2, requires_grad=True)
    plain = torch.ones(2)
    inner = leaf * 1
    with torch.no_grad():
        pairs = [(x, double.apply(x)) for x in (leaf, inner, inner[:1], plain, plain[1:])]
    return [[out is x, out, out.is_leaf, out._version == x._version] for x, out in pairs]
