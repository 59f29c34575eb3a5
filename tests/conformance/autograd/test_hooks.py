"""Hooks on tensors, leaves and nodes: order, replacement, removal, what they see."""

from tests.conformance.both import attempt, on_both


@on_both
def test_hooks_run_in_order_and_may_replace(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.clone()))
    y.sum().backward()
    return seen, x.grad


@on_both
def test_leaf_hooks_see_the_sum_of_all_gradients(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.clone()))
    x.register_hook(lambda g: -g)
    (x * x + x).backward()
    return seen, x.grad


@on_both
def test_removed_hooks_do_not_run(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    a = y.register_hook(lambda g: seen.append("a"))
    b = y.register_hook(lambda g: seen.append("b"))
    a.remove()
    a.remove()
    y.backward(retain_graph=True)
    b.remove()
    y.backward()
    return seen


@on_both
def test_hook_as_a_context_manager(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    with x.register_hook(lambda g: seen.append(1)):
        (x * 2).backward()
    (x * 2).backward()
    return seen


@on_both
def test_hook_that_removes_itself_while_running(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    handles = []

    def first(g):
        seen.append("first")
        handles[0].remove()

    handles.append(y.register_hook(first))
    y.register_hook(lambda g: seen.append("second"))
    y.backward(retain_graph=True)
    y.backward()
    return seen


@on_both
def test_hook_that_removes_a_later_one_while_running(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    handles = []
    y.register_hook(lambda g: handles[0].remove())
    handles.append(y.register_hook(lambda g: seen.append("second")))
    y.register_hook(lambda g: seen.append("third"))
    y.backward(retain_graph=True)
    y.backward()
    return seen


@on_both
def test_hooks_that_return_wrong_things(torch):
    def run(answer):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2

        def hook(g):
            return answer

        y.register_hook(hook)
        y.sum().backward()
        return x.grad

    return (
        attempt(lambda: run(1.0)),
        attempt(lambda: run((torch.ones(2),))),
        attempt(lambda: run(torch.ones(3))),
        attempt(lambda: run(torch.ones(2, dtype=torch.float64))),
        attempt(lambda: run(torch.ones(1))),
        attempt(lambda: run("no")),
    )


@on_both
def test_leaf_hooks_that_return_wrong_things(torch):
    def run(answer):
        x = torch.tensor([1.0, 2.0], requires_grad=True)

        def hook(g):
            return answer

        x.register_hook(hook)
        (x * 2).sum().backward()
        return x.grad

    return (
        attempt(lambda: run(1.0)),
        attempt(lambda: run(torch.ones(3))),
        attempt(lambda: run(torch.ones(2, dtype=torch.float64))),
    )


@on_both
def test_hook_on_a_tensor_without_gradient_is_an_error(torch):
    x = torch.tensor(1.0)
    y = torch.tensor(1.0, requires_grad=True)
    return (
        attempt(lambda: x.register_hook(print)),
        attempt(lambda: x.retain_grad()),
        attempt(lambda: x.register_post_accumulate_grad_hook(print)),
        attempt(lambda: (y * 2).register_post_accumulate_grad_hook(print)),
    )


@on_both
def test_exceptions_of_hooks_reach_the_caller(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2

    def hook(g):
        raise ValueError("from the hook")

    handle = y.register_hook(hook)
    first = attempt(lambda: y.backward(retain_graph=True))
    handle.remove()
    y.backward()
    return first, x.grad


@on_both
def test_hooks_before_and_after_an_in_place_write(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.clone())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.clone())))
    y.sum().backward()
    return seen, x.grad


@on_both
def test_retain_grad_follows_in_place_writes(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.mul_(5)
    (y * 7).sum().backward()
    return y.grad, x.grad, y.retains_grad


@on_both
def test_retain_grad_on_a_leaf_does_nothing(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.retain_grad()
    (x * 2).sum().backward()
    return x.grad, x.retains_grad


@on_both
def test_retain_grad_twice_and_accumulation(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    first = y.grad
    z.backward()
    return first, y.grad, first is y.grad


@on_both
def test_retain_grad_runs_after_hooks_in_either_order_of_registration(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    u = x * 2
    u.register_hook(lambda g: g * 10)
    u.retain_grad()
    u.sum().backward()
    return y.grad, u.grad


@on_both
def test_retain_grad_with_a_view(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    v = y[0]
    v.retain_grad()
    y.retain_grad()
    v.mul_(2)
    y.sum().backward()
    return v.grad, y.grad, x.grad


@on_both
def test_hook_on_a_view_before_a_write_through_it(torch):
    seen = []
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    v = y[0]
    v.register_hook(lambda g: seen.append(("view", g.clone())))
    y.register_hook(lambda g: seen.append(("base", g.clone())))
    v.mul_(2)
    v.register_hook(lambda g: seen.append(("view after", g.clone())))
    (y.sum() + v.sum()).backward()
    return seen, x.grad


@on_both
def test_post_accumulate_hooks_run_after_accumulation(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.clone())))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return seen


@on_both
def test_post_accumulate_hook_may_drop_the_gradient(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def hook(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    return x.grad


@on_both
def test_post_accumulate_hooks_that_return_something(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    y.register_post_accumulate_grad_hook(lambda p: 1)
    return attempt(lambda: (x * 2).sum().backward()), attempt(lambda: (y * 2).sum().backward())


@on_both
def test_post_accumulate_hooks_do_not_run_under_grad(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    x.register_hook(lambda g: seen.append(g.clone()))
    return torch.autograd.grad((x * 2).sum(), x), seen


@on_both
def test_leaf_hooks_replace_what_grad_returns(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: g * 100)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return torch.autograd.grad(y.sum(), [x, y])


@on_both
def test_node_hooks_see_both_sides(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0])
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi, go, type(gi).__name__, type(go).__name__)))
    y.sum().backward()
    return seen, x.grad


@on_both
def test_node_hooks_replace_the_gradients_of_the_inputs(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward()
    return x.grad, w.grad


@on_both
def test_node_hooks_that_return_wrong_things(torch):
    def run(answer):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        y = x * w

        def hook(gi, go):
            return answer

        y.grad_fn.register_hook(hook)
        y.sum().backward()
        return x.grad, w.grad

    one = torch.ones(2)
    return (
        attempt(lambda: run(one)),
        attempt(lambda: run((one,))),
        attempt(lambda: run((one, one, one))),
        attempt(lambda: run((one, 1.0))),
        attempt(lambda: run([one, one])),
        attempt(lambda: run((torch.ones(3), one))),
        attempt(lambda: run((one, torch.ones(2, dtype=torch.float64)))),
        attempt(lambda: run(())),
    )


@on_both
def test_node_prehooks_see_and_replace_what_comes_in(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: seen.append(go))
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.grad_fn.register_prehook(lambda go: seen.append(go))
    y.sum().backward()
    return seen, x.grad


@on_both
def test_node_prehooks_that_return_wrong_things(torch):
    def run(answer):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2

        def hook(go):
            return answer

        y.grad_fn.register_prehook(hook)
        y.sum().backward()
        return x.grad

    one = torch.ones(2)
    return (
        attempt(lambda: run(one)),
        attempt(lambda: run((one, one))),
        attempt(lambda: run((1.0,))),
        attempt(lambda: run([one])),
        attempt(lambda: run((torch.ones(3),))),
        attempt(lambda: run((None,))),
    )


@on_both
def test_order_of_tensor_hooks_and_node_hooks(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: seen.append("node post"))
    y.grad_fn.register_prehook(lambda go: seen.append("node pre"))
    y.register_hook(lambda g: seen.append("tensor"))
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda p: seen.append("post accumulate"))
    x.register_hook(lambda g: seen.append("leaf"))
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.register_hook(lambda gi, go: seen.append(("accumulate post", gi, len(go))))
    accumulate.register_prehook(lambda go: seen.append("accumulate pre"))
    y.sum().backward()
    return seen


@on_both
def test_hooks_on_accumulate_grad_last_as_long_as_somebody_holds_it(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: seen.append("held by the graph"))
    y.sum().backward()
    del y
    (x * 2).sum().backward()
    return seen


@on_both
def test_node_hooks_run_when_the_node_lies_on_the_way_of_grad(torch):
    seen = []
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2
    z = y * 3
    z.grad_fn.register_hook(lambda gi, go: seen.append("z"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("y post"))
    y.grad_fn.register_prehook(lambda go: seen.append("y pre"))
    y.register_hook(lambda g: seen.append("y tensor"))
    g = torch.autograd.grad(z, y, retain_graph=True)
    seen.append("|")
    h = torch.autograd.grad(z, x)
    return seen, g, h


@on_both
def test_prehooks_of_captured_nodes_do_not_change_what_grad_returns(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2
    z = y * 3
    y.grad_fn.register_prehook(lambda go: (go[0] * 100,))
    return torch.autograd.grad(z, y, retain_graph=True), torch.autograd.grad(z, [y, x])


@on_both
def test_hooks_under_create_graph_build_the_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = torch.autograd.grad(y * y, x, create_graph=True)
    return g, torch.autograd.grad(g, x)


@on_both
def test_grad_mode_inside_hooks(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    with torch.no_grad():
        y.backward()
    return seen, torch.is_grad_enabled()


@on_both
def test_gradients_seen_by_hooks_do_not_require_gradients(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: seen.append((g.requires_grad, g.grad_fn)))
    (y * y).backward(retain_graph=True)
    (y * y).backward(create_graph=True)
    return seen


@on_both
def test_multi_grad_hook_waits_for_all(torch):
    seen = []
    a = torch.tensor(1.0, requires_grad=True)
    b = torch.tensor(2.0, requires_grad=True)
    c, d = a * b, a + b
    torch.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append(list(grads)))
    (c * 3).backward(retain_graph=True)
    (c * d).backward(inputs=[a])
    return seen


@on_both
def test_multi_grad_hook_with_any(torch):
    seen = []
    a = torch.tensor(1.0, requires_grad=True)
    b = torch.tensor(2.0, requires_grad=True)
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.clone()), mode="any")
    (a * b).backward()
    (a * 3).backward()
    handle.remove()
    (a * 3).backward()
    return len(seen), seen[1:]


@on_both
def test_multi_grad_hook_with_a_wrong_mode(torch):
    a = torch.tensor(1.0, requires_grad=True)
    return (
        attempt(lambda: torch.autograd.graph.register_multi_grad_hook((a,), print, mode="some")),
        attempt(lambda: torch.autograd.graph.register_multi_grad_hook((torch.tensor(1.0),), print)),
    )


@on_both
def test_hook_registered_with_extra_argument_order(torch):
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = x * 3
    y.register_hook(lambda g: seen.append("y"))
    z.register_hook(lambda g: seen.append("z"))
    x.register_hook(lambda g: seen.append("x"))
    (y + z).backward()
    return seen


@on_both
def test_backward_hooks_attribute(torch):
    x = torch.tensor(2.0, requires_grad=True)
    before = x._backward_hooks
    x.register_hook(lambda g: None)
    return before, type(x._backward_hooks).__name__, len(x._backward_hooks)


@on_both
def test_hook_changing_the_gradient_in_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.mul_(10).sum() and None)
    y.backward(torch.ones(2))
    return x.grad


@on_both
def test_a_leaf_takes_its_first_gradient_over_unless_a_hook_keeps_it(torch):
    where = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            made = grad * 2
            where.append(made.data_ptr())
            return made

    kept, taken = [], []
    hooks = [
        lambda leaf: None,
        lambda leaf: leaf.register_post_accumulate_grad_hook(lambda p: None),
        lambda leaf: leaf.register_hook(kept.append),
    ]
    for register in hooks:
        leaf = torch.zeros(1000, requires_grad=True)
        register(leaf)
        Doubled.apply(leaf).sum().backward()
        taken.append(leaf.grad.data_ptr() == where[-1])
    return taken, leaf.grad, kept
