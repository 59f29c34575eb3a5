"""Saved tensors: _saved_*, _raw_saved_*, hooks on them, default hooks, freeing."""

from tests.conformance.both import attempt, on_both


@on_both
def test_saved_attributes_show_what_the_node_keeps(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0])
    y = x * w
    z = w * x
    both = x * x
    return (
        y.grad_fn._saved_other,
        y.grad_fn._saved_self,
        z.grad_fn._saved_self,
        z.grad_fn._saved_other,
        y.grad_fn._saved_other is w,
        both.grad_fn._saved_self is x,
    )


@on_both
def test_saved_attributes_after_backward_are_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.sum().backward()
    s = x.sum(0)
    s.backward()
    return (
        attempt(lambda: y.grad_fn._saved_self),
        attempt(lambda: y.grad_fn._raw_saved_self),
        s.grad_fn._saved_dim,
        s.grad_fn._saved_keepdim,
        s.grad_fn._saved_self_sym_sizes,
    )


@on_both
def test_unknown_saved_attribute_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    return attempt(lambda: y.grad_fn._saved_nothing)


@on_both
def test_saved_output_has_the_node_as_history(torch):
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    y = x.sqrt()
    s = y.grad_fn._saved_result
    return s, s.grad_fn is y.grad_fn, s is y, s.output_nr, s.data_ptr() == y.data_ptr()


@on_both
def test_stale_saved_attribute_is_an_error(torch):
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    y = x.sqrt()
    y.add_(1)
    node = y.grad_fn.next_functions[0][0]
    w = torch.tensor([1.0, 2.0])
    z = x * w
    w.add_(1)
    return attempt(lambda: node._saved_result), attempt(lambda: z.grad_fn._saved_other)


@on_both
def test_hooks_on_one_saved_tensor(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    raw = y.grad_fn._raw_saved_self

    def pack(t):
        seen.append(("pack", t, t is x))
        return t.numpy().copy() if False else [v * 2 for v in t.tolist()]

    def unpack(packed):
        seen.append(("unpack", packed))
        return torch.tensor(packed)

    raw.register_hooks(pack, unpack)
    y.sum().backward()
    return seen, x.grad, type(raw).__name__


@on_both
def test_hooks_on_a_saved_tensor_can_be_set_once(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t, lambda t: t)
    return (
        attempt(lambda: raw.register_hooks(lambda t: t, lambda t: t)),
        attempt(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)),
        attempt(lambda: y.grad_fn._raw_saved_other.register_hooks(1, 2)),
        attempt(lambda: y.grad_fn._raw_saved_other.register_hooks(lambda t: t)),
    )


@on_both
def test_hooks_on_freed_and_absent_saved_tensors(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    z = x * torch.ones(2)
    return (
        attempt(lambda: raw.register_hooks(lambda t: t, lambda t: t)),
        attempt(lambda: z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)),
    )


@on_both
def test_pack_hook_may_not_change_its_input(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    z = x.exp() if hasattr(torch, "exp") else x.sqrt()
    return (
        attempt(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), lambda t: t)),
        attempt(lambda: z.grad_fn._raw_saved_result.register_hooks(lambda t: t.add_(1), lambda t: t)),
    )


@on_both
def test_unpack_hook_must_return_a_tensor(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: 5)
    return attempt(lambda: y.sum().backward())


@on_both
def test_exceptions_of_saved_tensor_hooks_reach_the_caller(torch):
    def fail(t):
        raise ValueError("from the hook")

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x

    def forward():
        with torch.autograd.graph.saved_tensors_hooks(fail, lambda t: t):
            return x * x

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        z = x * x
    return (
        attempt(lambda: y.grad_fn._raw_saved_self.register_hooks(fail, lambda t: t)),
        attempt(forward),
        attempt(lambda: z.sum().backward()),
    )


@on_both
def test_default_hooks_pack_everything_saved_inside(torch):
    seen = []

    def pack(t):
        seen.append(("pack", t.clone()))
        return t

    def unpack(t):
        seen.append(("unpack", t.clone()))
        return t

    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        z = y.sqrt()
    z.sum().backward()
    return seen, x.grad


@on_both
def test_default_hooks_change_what_backward_sees(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        y = x * x
    return y.grad_fn._saved_self, torch.autograd.grad(y.sum(), x)


@on_both
def test_nested_default_hooks_use_the_innermost(torch):
    seen = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with hooks(lambda t: seen.append("outer") or t, lambda t: t):
        a = x * x
        with hooks(lambda t: seen.append("inner") or t, lambda t: t):
            b = x * x
        c = x * x
    (a + b + c).sum().backward()
    return seen, x.grad


@on_both
def test_default_hooks_and_double_backward(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda p: seen.append(p) or torch.tensor(p)):
        y = x * x * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h, len(seen)


@on_both
def test_default_hooks_on_leaves_keep_gradients_flowing(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    s = y.grad_fn._saved_self
    return s.requires_grad, s.is_leaf, s is x, s


@on_both
def test_hooks_see_detached_tensors(torch):
    seen = []
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append((t.requires_grad, t.grad_fn, t.is_leaf, torch.is_grad_enabled())) or t,
        lambda t: seen.append(torch.is_grad_enabled()) or t,
    ):
        z = y * y
    z.sum().backward()
    return seen


@on_both
def test_wrong_default_hooks(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks

    def enter(*args):
        with hooks(*args):
            x = torch.tensor([1.0], requires_grad=True)
            return x * x

    return attempt(lambda: enter(1, 2)), attempt(lambda: enter(lambda t: t)), attempt(lambda: enter(lambda t: t, 3))


@on_both
def test_disabling_default_hooks(torch):
    graph = torch.autograd.graph
    x = torch.tensor([1.0, 4.0], requires_grad=True)

    def set_inside():
        with graph.disable_saved_tensors_hooks("not here"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return x * x

    def disable_inside():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            with graph.disable_saved_tensors_hooks("not here"):
                return x * x

    def nested():
        with graph.disable_saved_tensors_hooks("outer"):
            with graph.disable_saved_tensors_hooks("inner"):
                pass
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return x * x

    with graph.disable_saved_tensors_hooks("not here"):
        (x * x).sum().backward()
    return attempt(set_inside), attempt(disable_inside), attempt(nested), x.grad


@on_both
def test_save_on_cpu(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    x.data.add_(1)
    y.sum().backward()
    return x.grad


@on_both
def test_saved_tensors_may_be_mutated_when_allowed(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.add_(10)
        u = y * y
        z.sum().backward(retain_graph=True)
        first = x.grad.clone()
        u.sum().backward()
    return first, x.grad, y


@on_both
def test_mutation_through_views_when_allowed(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y[0].mul_(3)
        (z.sum() + y.sum()).backward()
    return x.grad


@on_both
def test_mutation_allowed_only_inside(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.add_(10)
    return attempt(lambda: z.sum().backward())


@on_both
def test_incremented_version_makes_saved_tensors_stale(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    w = torch.tensor([1.0, 4.0])
    y = x * w
    torch.autograd.graph.increment_version(w)
    torch.autograd.graph.increment_version([w, w])
    return w._version, attempt(lambda: y.sum().backward())


@on_both
def test_metadata_and_names_of_nodes(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["key"] = 5
    return y.grad_fn.metadata, y.grad_fn.name(), y.grad_fn.next_functions[0][0].name(), y.grad_fn is y.grad_fn


@on_both
def test_sequence_numbers_grow(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    z = y * 2
    return z.grad_fn._sequence_nr() - y.grad_fn._sequence_nr(), y.grad_fn.next_functions[0][0]._sequence_nr()


@on_both
def test_accumulate_grad_shows_its_variable(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    return node.variable is x, node is (x * 3).grad_fn.next_functions[0][0], node.next_functions


@on_both
def test_nodes_can_be_called_by_hand(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * w
    a, b = y.grad_fn(torch.ones(2))
    s = x.sum()
    v = torch.tensor([5.0, 6.0], requires_grad=True)
    c, _d = y.grad_fn(v)
    return a, b, a.grad_fn, s.grad_fn(torch.tensor(2.0)), c, c.grad_fn, torch.autograd.grad(c.sum(), [w, v])


@on_both
def test_calling_nodes_with_wrong_arguments(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * x
    return (
        attempt(lambda: y.grad_fn()),
        attempt(lambda: y.grad_fn(torch.ones(2), torch.ones(2))),
        attempt(lambda: y.grad_fn(1.0)),
        attempt(lambda: y.grad_fn(None)),
    )


@on_both
def test_calling_accumulate_grad_by_hand(torch):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * x
    node = y.grad_fn.next_functions[0][0]
    result = node(torch.ones(2))
    return result, x.grad
