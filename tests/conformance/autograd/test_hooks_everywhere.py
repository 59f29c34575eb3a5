"""Hooks in company: on roots, inputs, views, several outputs, under every way to start the engine."""

import itertools

from tests.conformance.both import attempt, on_both


@on_both
def test_hooks_on_roots_and_captured_inputs(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    z = y * y
    for name, t in (("x", x), ("y", y), ("z", z)):
        t.register_hook(lambda g, name=name: seen.append((name, g.clone())))
    torch.autograd.grad(z, [z, y], retain_graph=True)
    seen.append("--")
    torch.autograd.grad(z, [x], retain_graph=True)
    seen.append("--")
    torch.autograd.grad(z, [y, x], retain_graph=True)
    seen.append("--")
    z.backward()
    return seen


@on_both
def test_replacements_under_grad(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    z = y * y
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    return torch.autograd.grad(z, [y, x])


@on_both
def test_node_hooks_under_grad(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    z = y * y
    y.grad_fn.register_prehook(lambda g: seen.append(("pre y", g[0].clone())))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post y", go[0].clone())))
    z.grad_fn.register_prehook(lambda g: seen.append(("pre z", g[0].clone())))
    z.grad_fn.register_hook(lambda gi, go: seen.append(("post z", go[0].clone())))
    torch.autograd.grad(z, [y], retain_graph=True)
    seen.append("--")
    torch.autograd.grad(z, [x], retain_graph=True)
    return seen


@on_both
def test_accumulate_grad_hooks_under_every_start(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda g: seen.append(("pre", g[0].clone())))
    node.register_hook(lambda gi, go: seen.append(("post", gi, go[0].clone())))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    y.backward(retain_graph=True)
    seen.append("--")
    torch.autograd.grad(y, x, retain_graph=True)
    seen.append("--")
    y.backward(inputs=[x])
    return seen, x.grad


@on_both
def test_prehook_of_accumulate_grad_replaces(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda g: (g[0] * 100,))
    y.backward()
    return x.grad


@on_both
def test_hooks_of_several_outputs(torch):
    seen = []
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x.unbind(0)
    b.register_hook(lambda g: seen.append(("b", g.clone())))
    a.register_hook(lambda g: seen.append(("a", g.clone())) or g * 10)
    b.retain_grad()
    (a * 2 + b * 3).sum().backward(retain_graph=True)
    seen.append("--")
    (a * 5).sum().backward()
    return seen, x.grad, b.grad


@on_both
def test_hooks_and_double_backward(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda g: seen.append(("y", g.requires_grad)) or g * x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    return g, h, seen


@on_both
def test_hooks_added_and_removed_while_running(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3

    def first(g):
        seen.append("first")
        handles.append(y.register_hook(lambda g: seen.append("added")))

    handles = [y.register_hook(first)]
    y.backward(retain_graph=True)
    y.backward()
    return seen


@on_both
def test_handles_of_every_kind(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    handles = [
        x.register_hook(lambda g: g),
        y.register_hook(lambda g: g),
        x.register_post_accumulate_grad_hook(lambda p: None),
        y.grad_fn.register_hook(lambda a, b: None),
        y.grad_fn.register_prehook(lambda a: None),
    ]
    names = [type(h).__name__ for h in handles]
    growing = [b.id > a.id for a, b in itertools.pairwise(handles)]
    for h in handles:
        h.remove()
        h.remove()
    y.backward()
    return names, growing, x.grad


@on_both
def test_wrong_hooks(torch):
    x = torch.tensor([2.0], requires_grad=True)
    plain = torch.tensor([2.0])
    y = x * 3
    return (
        attempt(lambda: plain.register_hook(lambda g: g)),
        attempt(lambda: plain.register_post_accumulate_grad_hook(lambda g: g)),
        attempt(lambda: y.register_post_accumulate_grad_hook(lambda g: g)),
        attempt(lambda: plain.retain_grad()),
        attempt(lambda: type(x.register_hook(3)).__name__),
        attempt(lambda: (x * 2).backward()),
    )


@on_both
def test_hooks_on_views_and_their_base(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    view = base[:1]
    view.register_hook(lambda g: seen.append(("view", g.clone())))
    base.register_hook(lambda g: seen.append(("base", g.clone())))
    view.mul_(3)
    base.register_hook(lambda g: seen.append(("base after", g.clone())))
    (base.sum() + view.sum()).backward()
    return seen, x.grad


@on_both
def test_retain_grad_on_views_that_are_written(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    view = base[:1]
    view.retain_grad()
    base.retain_grad()
    view.mul_(3)
    (base * base).sum().backward()
    return view.grad, base.grad, x.grad


@on_both
def test_leaf_hooks_survive_data_changes(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: seen.append(g.clone()))
    x.data = torch.tensor([3.0, 4.0])
    (x * x).sum().backward()
    x.requires_grad_(False)
    x.requires_grad_(True)
    (x * 2).sum().backward()
    return seen, x.grad


@on_both
def test_hook_on_a_leaf_that_is_used_in_many_places(torch):
    seen = []
    x = torch.tensor([1.0], requires_grad=True)
    x.register_hook(lambda g: seen.append(g.clone()))
    (x * 2 + x * 3 + x.exp() * 0).backward()
    return seen


@on_both
def test_order_of_leaves_and_their_hooks(torch):
    seen = []
    a, b, c = (torch.tensor([1.0], requires_grad=True) for _ in range(3))
    for name, t in (("a", a), ("b", b), ("c", c)):
        t.register_post_accumulate_grad_hook(lambda p, name=name: seen.append(name))
    ((a * b) * c).backward()
    seen.append("--")
    (c + (a + b)).backward()
    return seen


@on_both
def test_order_of_nodes(torch):
    seen = []
    x = torch.tensor([1.0], requires_grad=True)
    left, right = x * 2, x * 3
    late = left * 5
    out = late + right
    for name, t in (("left", left), ("right", right), ("late", late), ("out", out)):
        t.grad_fn.register_hook(lambda gi, go, name=name: seen.append(name))
    out.backward()
    return seen


@on_both
def test_hooks_that_write_in_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.mul_(10) and None)
    y.sum().backward()
    first = x.grad.clone()
    g = torch.ones(2)
    z = x * 2
    z.register_hook(lambda grad: grad.mul_(10) and None)
    z.backward(g)
    return first, x.grad, g


@on_both
def test_gradients_seen_by_hooks_are_not_views_of_each_other(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    z = x + y
    x.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: seen.append(g))
    z.backward(torch.ones(2))
    return seen, x.grad, y.grad, x.grad.data_ptr() == y.grad.data_ptr()


@on_both
def test_engine_state_inside_hooks(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append((torch.is_grad_enabled(), (g * x).requires_grad)))
    y.sum().backward(retain_graph=True)
    torch.autograd.grad(y.sum(), x, create_graph=True)
    return seen
