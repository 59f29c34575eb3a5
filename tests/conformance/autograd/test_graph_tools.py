"""autograd.graph: multi-gradient hooks, edges, versions, saved-tensor hooks, mutation of saved tensors."""

from tests.conformance.both import attempt, on_both


@on_both
def test_multi_grad_hook_sees_what_one_backward_reaches(torch):
    seen = []
    a, b, c, d = (torch.tensor(float(i), requires_grad=True) for i in range(1, 5))
    torch.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append(grads))
    (a * b).backward()
    (a * c * d).backward()
    return seen, attempt(lambda: torch.autograd.grad(a * d, [a]))


@on_both
def test_multi_grad_hook_is_called_once_per_backward(torch):
    seen = []
    a, b = (torch.tensor(float(i), requires_grad=True) for i in (1, 2))
    y = a * b
    handle = torch.autograd.graph.register_multi_grad_hook((a, b, y), lambda grads: seen.append(len(grads)))
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    return seen


@on_both
def test_multi_grad_hook_on_something_without_gradient(torch):
    graph = torch.autograd.graph
    a = torch.tensor(1.0, requires_grad=True)
    return (
        attempt(lambda: type(graph.register_multi_grad_hook((a, torch.ones(1)), print, mode="any")).__name__),
        attempt(lambda: graph.register_multi_grad_hook((a, torch.ones(1)), print)),
        attempt(lambda: graph.register_multi_grad_hook((a,), print, mode="first")),
    )


@on_both
def test_multi_grad_hook_with_none_gradients(torch):
    seen = []

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    a, b = (torch.tensor(float(i), requires_grad=True) for i in (1, 2))
    y = a * 2
    torch.autograd.graph.register_multi_grad_hook((a, b, y), lambda grads: seen.append(grads))
    (Nothing.apply(y) + b).backward()
    return seen


@on_both
def test_any_hook_sees_the_first_gradient(torch):
    seen = []
    a, b = (torch.tensor(float(i), requires_grad=True) for i in (1, 2))
    y = a * b
    torch.autograd.graph.register_multi_grad_hook((a, b, y), lambda grad: seen.append(grad.clone()), mode="any")
    (y * 5).backward()
    (a * 3).backward()
    return seen


@on_both
def test_multi_grad_hook_that_raises(torch):
    a = torch.tensor(1.0, requires_grad=True)

    def fail(grads):
        raise ValueError("from the hook")

    handle = torch.autograd.graph.register_multi_grad_hook((a,), fail)
    error = attempt(lambda: (a * 2).backward())
    handle.remove()
    a.grad = None
    (a * 2).backward()
    return error, a.grad


@on_both
def test_gradient_edge_of_outputs_and_leaves(torch):
    edge = torch.autograd.graph.get_gradient_edge
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = x.unbind(0)[1]
    e, f = edge(b), edge(x)
    return (
        e.node is b.grad_fn,
        e.output_nr,
        e.ownership_token,
        f.node.variable is x,
        f.output_nr,
        len(e),
        e._fields,
        attempt(lambda: edge(torch.ones(1))),
        attempt(lambda: edge(3)),
    )


@on_both
def test_edges_as_inputs_and_outputs(torch):
    edge = torch.autograd.graph.get_gradient_edge
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    grads = torch.autograd.grad(edge(z), [edge(y), edge(x), x], retain_graph=True)
    torch.autograd.backward(edge(y), torch.tensor([1.0, 10.0]), retain_graph=True)
    torch.autograd.backward(z, inputs=[edge(x)])
    return grads, x.grad, attempt(lambda: torch.autograd.grad(z, [edge(y)], materialize_grads=True))


@on_both
def test_edges_outlive_their_tensors(torch):
    edge = torch.autograd.graph.get_gradient_edge
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    e = edge(y)
    z = (y * 3).sum()
    del y
    return torch.autograd.grad(z, [e])


@on_both
def test_versions_are_counted(torch):
    increment = torch.autograd.graph.increment_version
    x = torch.ones(2)
    v = x[:1]
    increment(x)
    increment((x, v))
    with torch.inference_mode():
        t = torch.ones(1)
    increment(t)
    return x._version, v._version, attempt(lambda: increment(3)), attempt(lambda: increment([3]))


@on_both
def test_save_on_cpu_with_pinned_memory_copies(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = x * x
    x.data.add_(1)
    y.sum().backward()
    return x.grad


@on_both
def test_numbers_are_not_packed(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        x * 2.0
        3 * x
        x / 4
        x * torch.tensor(5.0)
    return seen


@on_both
def test_order_of_packing_and_unpacking(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append(("pack", t.clone())) or t, lambda t: seen.append(("unpack", t.clone())) or t
    )
    with hooks:
        y = (x * w).exp() / w
    y.sum().backward()
    return seen, x.grad, w.grad


@on_both
def test_pack_hooks_see_the_tensor_itself(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append((t is x, t is y, t.is_leaf)) or t, lambda t: t):
        x * x
        y * y
        y.exp()
    return seen


@on_both
def test_unpacked_tensors_keep_their_place_in_the_graph(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 3
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t):
        z = y * y
    (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    s = z.grad_fn._saved_self
    return g, torch.autograd.grad(g.sum(), x), s.grad_fn, s.grad_fn is y.grad_fn, s.requires_grad


@on_both
def test_pack_hook_that_writes(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 1

    def forward():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            return y * y

    return attempt(forward)


@on_both
def test_hooks_end_with_their_block_even_after_errors(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)

    def fail():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
            raise ValueError("inside")

    return attempt(fail), (x * x).requires_grad, seen


@on_both
def test_disabled_hooks_are_enabled_again(torch):
    graph = torch.autograd.graph
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with graph.disable_saved_tensors_hooks("outer"):
        with graph.disable_saved_tensors_hooks("inner"):
            pass

    def use():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x * x

    def both():
        with graph.disable_saved_tensors_hooks("outer"):
            return use()

    return attempt(both), attempt(use)


@on_both
def test_mutation_of_saved_tensors(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        y = x.clone()
        z = (y**2).sum() + y.exp().sum()
        y.sin_()
        y.mul_(2)
        z.backward()
        kept = type(ctx).__name__ != ""
    return x.grad, y, kept


@on_both
def test_mutation_contexts_do_not_nest(torch):
    graph = torch.autograd.graph

    def nested():
        with graph.allow_mutation_on_saved_tensors():
            with graph.allow_mutation_on_saved_tensors():
                pass

    error = attempt(nested)
    with graph.allow_mutation_on_saved_tensors():
        pass
    return error


@on_both
def test_mutation_under_no_grad_and_through_out(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        w = torch.tensor([2.0, 3.0])
        y = x * w
        with torch.no_grad():
            w.add_(10)
        u = x * w
        torch.exp(torch.ones(2), out=w)
        w[0] = 7.0
        v = x * w
        w.zero_()
        (y + u + v).sum().backward()
    return x.grad, w


@on_both
def test_warning_switch_exists(torch):
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    return sorted(torch.autograd.graph.__all__)


@on_both
def test_activation_budget_is_for_compiled_regions(torch):
    budget = torch.autograd.graph.region_activation_memory_budget
    return [attempt(lambda v=v: budget(v)) for v in (0.5, "a", 3, True)]


@on_both
def test_hooks_are_called_with_none_where_no_gradient_arrives(torch):
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    seen = []
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(("y", g)))
    y.retain_grad()
    x.register_hook(lambda g: seen.append(("x", g)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("post", p.grad)))
    y.grad_fn.register_prehook(lambda g: seen.append(("pre", g)))
    y.grad_fn.register_hook(lambda a, b: seen.append(("hook", a, b)))
    Nothing.apply(y).backward()
    y.register_hook(lambda g: torch.ones(()))
    return seen, y.grad, x.grad, attempt(lambda: Nothing.apply(y).backward())
