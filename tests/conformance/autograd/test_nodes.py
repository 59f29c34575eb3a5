"""Nodes: names, edges, output numbers, metadata, calling them by hand, hooks on them."""

from tests.conformance.both import attempt, on_both


def walk(torch, tensor):
    """The graph below a tensor: names and output numbers, depth first."""

    def visit(node):
        if node is None:
            return None
        return [type(node).__name__, node.name(), [(visit(n), nr) for n, nr in node.next_functions]]

    return visit(tensor.grad_fn)


@on_both
def test_graph_of_an_expression(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.ones(2)
    y = ((x * w + 2).exp() - x).sum() / 3
    return walk(torch, y)


@on_both
def test_graph_through_several_outputs(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x.unbind(0)
    values, indices = x.max(1)
    return walk(torch, b * a), b.output_nr, values.output_nr, indices.output_nr, indices.grad_fn, walk(torch, values)


@on_both
def test_graph_of_views_and_writes(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    v = y[0]
    v.mul_(2)
    y.t().add_(1)
    return walk(torch, y), walk(torch, v), walk(torch, y.view(-1)[1:])


@on_both
def test_where_no_gradient_is_wanted_there_is_no_edge(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ones(2) * x
    return y.grad_fn.next_functions[0], len(y.grad_fn.next_functions), type(y.grad_fn.next_functions).__name__


@on_both
def test_metadata_belongs_to_the_node(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["a"] = 1
    return y.grad_fn.metadata, (x * 2).grad_fn.metadata


@on_both
def test_input_metadata(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    nodes = [(x * 2).grad_fn, x.unbind(0)[0].grad_fn, x.max(1)[0].grad_fn, x.double().sum(0).grad_fn]
    nodes.append(nodes[0].next_functions[0][0])
    return [[(list(m.shape), str(m.dtype), str(m.device)) for m in node._input_metadata] for node in nodes]


@on_both
def test_attributes_cannot_be_added_or_changed(torch):
    y = torch.tensor([1.0, 2.0], requires_grad=True) * 2
    node = y.grad_fn

    def put():
        node.something = 1

    def change():
        node.next_functions = ()

    return attempt(put), type(attempt(change)).__name__, attempt(lambda: node.something), node.requires_grad


@on_both
def test_calling_by_hand_does_not_run_hooks_or_fit_shapes(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    node = y.grad_fn
    node.register_hook(lambda gi, go: seen.append("post"))
    node.register_prehook(lambda go: seen.append("pre"))
    out = node(torch.ones(2, 2))
    return out, seen, node(torch.ones(1)), node(torch.ones(2, 2, dtype=torch.float64))


@on_both
def test_calling_by_hand_follows_grad_mode(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    with torch.no_grad():
        a, _b = y.grad_fn(torch.ones(2))
    c, _ = y.grad_fn(torch.ones(2))
    return a.requires_grad, c.requires_grad, c.grad_fn


@on_both
def test_calling_nodes_with_several_outputs_by_hand(torch):
    m = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    node = m.unbind(0)[0].grad_fn
    top = m.max(1)[0].grad_fn
    return (
        node(torch.ones(2), None),
        node(None, None),
        attempt(lambda: node(torch.ones(2))),
        top(torch.ones(2)),
        attempt(lambda: top(torch.ones(2), None)),
        attempt(lambda: node(grad=1)),
    )


@on_both
def test_calling_by_hand_after_the_graph_was_freed(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    node = y.grad_fn
    y.sum().backward()
    return attempt(lambda: node(torch.ones(2)))


@on_both
def test_accumulate_grad_by_hand(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: seen.append("tensor hook"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("post accumulate", p.grad.clone())))
    node = (x * 2).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: seen.append("node hook"))
    node(torch.ones(2))
    node(torch.ones(2))
    node(None)
    return seen, x.grad, attempt(lambda: node(1.0)), attempt(lambda: node()), node.name(), node._sequence_nr()


@on_both
def test_one_accumulate_grad_per_leaf(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = x * 2, x * x
    node = a.grad_fn.next_functions[0][0]
    return (
        node is b.grad_fn.next_functions[0][0],
        node is b.grad_fn.next_functions[1][0],
        node.variable is x,
        node.next_functions,
        node.requires_grad,
        node.metadata,
    )


@on_both
def test_hooks_registered_while_the_node_runs(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    node = y.grad_fn

    def pre(grads):
        seen.append("pre")
        node.register_hook(lambda gi, go: seen.append("late post"))

    node.register_prehook(pre)
    y.sum().backward()
    return seen


@on_both
def test_several_prehooks_and_posthooks_in_order(torch):
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    node = y.grad_fn
    for i in range(3):
        node.register_prehook(lambda go, i=i: seen.append(("pre", i)) or (go[0] * 2,))
        node.register_hook(lambda gi, go, i=i: seen.append(("post", i, go[0].clone())) or (gi[0] + 1, gi[1]))
    y.sum().backward()
    return seen, x.grad


@on_both
def test_hook_dict_of_a_tensor_on_its_node(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    return attempt(lambda: y.grad_fn._register_hook_dict({})), attempt(lambda: y.grad_fn._register_hook_dict(1))


@on_both
def test_post_hook_may_replace_with_none(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * 3
    z.grad_fn.register_hook(lambda gi, go: (None, None))
    z.sum().backward()
    return x.grad


@on_both
def test_prehook_may_replace_with_none(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = x * 2 * 3
    z.grad_fn.register_prehook(lambda go: (None,))
    z.sum().backward()
    return x.grad


@on_both
def test_sequence_numbers_can_be_set(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    node = (x * 2).grad_fn
    before = node._sequence_nr()
    node._set_sequence_nr(before + 5)
    return node._sequence_nr() - before


@on_both
def test_nodes_are_the_same_object_every_time(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    return y.grad_fn is y.grad_fn, z.grad_fn.next_functions[0][0] is y.grad_fn, hash(y.grad_fn) == hash(y.grad_fn)


@on_both
def test_saved_plain_arguments(torch):
    x = torch.ones(2, 3, 4, requires_grad=True)
    s = x.sum((0, -1), keepdim=True).grad_fn
    t = x.transpose(0, -1).grad_fn
    v = x.view(6, 4).grad_fn
    p = x.pow(3).grad_fn
    c = torch.cat([x, x], 1).grad_fn
    return (
        s._saved_dim,
        s._saved_keepdim,
        s._saved_self_sym_sizes,
        t._saved_dim0,
        t._saved_dim1,
        v._saved_self_sym_sizes,
        p._saved_exponent,
        c._saved_dim,
        (x + x).grad_fn._saved_alpha,
    )


@on_both
def test_saved_lists_of_tensors(torch):
    x = torch.ones(3, requires_grad=True)
    i = torch.tensor([0, 2])
    node = x[i].grad_fn
    raw = node._raw_saved_indices
    return node._saved_indices, type(raw).__name__, len(raw), type(raw[0]).__name__


@on_both
def test_node_is_a_node(torch):
    Node = torch.autograd.graph.Node
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    return (
        isinstance(y.grad_fn, Node),
        isinstance(y.grad_fn.next_functions[0][0], Node),
        isinstance(x, Node),
        issubclass(type(y.grad_fn), Node),
    )


@on_both
def test_what_was_never_saved_is_none_even_after_backward(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2.0
    z = x * torch.ones(3)
    before = y.grad_fn._saved_self, z.grad_fn._saved_self
    (y + z).sum().backward()
    return (
        before,
        attempt(lambda: y.grad_fn._saved_self),
        attempt(lambda: z.grad_fn._saved_self),
        attempt(lambda: z.grad_fn._saved_other),
        attempt(lambda: y.grad_fn._saved_other),
    )


@on_both
def test_chain_through_every_kind_of_node(torch):
    x = torch.arange(1.0, 7.0).view(2, 3).requires_grad_()
    y = x.t().contiguous().view(-1)[1:].unsqueeze(0).expand(2, 5)
    z = torch.cat([y, y * 2]).chunk(2)[1].sum(0, keepdim=True)
    w = torch.stack([z, z]).permute(2, 0, 1).reshape(-1).clone()
    w[::2].mul_(3)
    w.exp().log().sqrt().pow(2).sum().backward()
    return w.grad_fn, x.grad
