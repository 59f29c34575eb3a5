"""Views and in-place writes: version counters, rebased histories, what is forbidden."""

from tests.conformance.both import attempt, on_both


def chain(torch, tensor, steps=4):
    """The names of the nodes behind a tensor, following the first edge."""
    names, node = [], tensor.grad_fn
    while node is not None and len(names) < steps:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@on_both
def test_views_share_a_version_counter(torch):
    x = torch.zeros(4)
    v = x[:2]
    w = v.view(2, 1)
    d = x.detach()
    x.add_(1)
    v.add_(1)
    w.add_(1)
    d.add_(1)
    return [t._version for t in (x, v, w, d)], x


@on_both
def test_data_has_a_counter_of_its_own(torch):
    x = torch.zeros(4)
    x.data.add_(1)
    y = torch.zeros(4)
    v = y.data
    y.add_(1)
    return x._version, x, y._version, v._version, v


@on_both
def test_base_of_a_view_of_a_view_is_the_first_tensor(torch):
    x = torch.zeros(4, requires_grad=True)
    y = x * 1
    v = y[:2][1:]
    return v._base is y, v._is_view(), y._is_view(), y._base, x.detach()._is_view(), x.detach()._base


@on_both
def test_write_through_a_view_makes_copy_slices(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 2
    v = y[1:3]
    before = chain(torch, v)
    v.mul_(10)
    after = chain(torch, v), chain(torch, y), y.grad_fn.next_functions
    y.sum().backward()
    return before, after, x.grad


@on_both
def test_write_to_the_base_regenerates_views(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 2
    v = y[1:3]
    y.mul_(10)
    names = chain(torch, v)
    (v * v).sum().backward()
    return names, x.grad


@on_both
def test_write_of_something_that_requires_grad_into_plain_memory(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    buffer = torch.zeros(4)
    v = buffer[1:3]
    leaf = (v.requires_grad, v.is_leaf)
    v.copy_(x)
    names = chain(torch, buffer), chain(torch, v), buffer.requires_grad, v.requires_grad
    other = buffer[:2]
    (buffer * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    return leaf, names, x.grad, other.requires_grad


@on_both
def test_view_made_before_its_base_got_a_history_follows_it(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    buffer = torch.zeros(2)
    v = buffer[:1]
    w = buffer[1:]
    before = v.requires_grad, v.grad_fn
    buffer.mul_(x)
    after = v.requires_grad, chain(torch, v), w.requires_grad, w.is_leaf
    return before, after


@on_both
def test_writing_to_a_leaf_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        x.add_(1)
    return (
        attempt(lambda: x.add_(1)),
        attempt(lambda: x[0].add_(1)),
        attempt(lambda: x.view(2, 1).zero_()),
        attempt(lambda: x.copy_(torch.zeros(2))),
        attempt(lambda: x.fill_(1)),
        attempt(lambda: x.zero_()),
        x,
        x._version,
    )


@on_both
def test_views_made_without_grad_cannot_be_written_with_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y[:1]
        u = torch.zeros(2)[:1]
    plain = attempt(lambda: u.add_(1))
    mixed = attempt(lambda: u.mul_(x[:1]))
    return attempt(lambda: v.add_(1)), plain, mixed, v.requires_grad, v.grad_fn


@on_both
def test_view_made_without_grad_whose_base_is_written(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y[:1]
    y.mul_(2)
    return attempt(lambda: v.grad_fn), attempt(lambda: v * 2), v.requires_grad


@on_both
def test_view_of_a_leaf_made_without_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        v = x[:1]
        v.add_(1)
    return v.requires_grad, v.is_leaf, x, attempt(lambda: v.add_(1)), attempt(lambda: v * 2)


@on_both
def test_writes_under_no_grad_through_views_of_a_history(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    v = y[:1]
    with torch.no_grad():
        v.add_(5)
    names = chain(torch, v), chain(torch, y)
    (y * 2).sum().backward()
    return names, x.grad, y


@on_both
def test_outputs_of_multi_output_views_cannot_be_written(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, _b = (x * 1).unbind(0)
    with torch.no_grad():
        c, _d = (x * 1).unbind(0)
    e, f = torch.zeros(2, 2).unbind(0)
    return (
        attempt(lambda: a.mul_(2)),
        attempt(lambda: c.mul_(2)),
        attempt(lambda: e.mul_(2)),
        attempt(lambda: f.mul_(x[0])),
    )


@on_both
def test_base_of_multi_output_views_written(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    a, _b = y.unbind(0)
    y.mul_(2)
    return attempt(lambda: a.grad_fn), attempt(lambda: a * 2), attempt(lambda: a.sum())


@on_both
def test_view_of_a_multi_output_view(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    a, _b = y.unbind(0)
    return attempt(lambda: a[0].mul_(2)), attempt(lambda: a.view(2, 1).mul_(2))


@on_both
def test_stale_saved_tensors_are_found(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    v = x * 1
    w = v * v
    v[0].add_(1)
    e = torch.tensor([1.0, 2.0])
    f = x * e
    e.add_(1)
    return attempt(lambda: z.sum().backward()), attempt(lambda: w.sum().backward()), attempt(lambda: f.sum().backward())


@on_both
def test_stale_leaf_changed_under_no_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    with torch.no_grad():
        x.add_(1)
    return attempt(lambda: y.backward())


@on_both
def test_writes_through_data_are_not_found(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    x.data.add_(1)
    y.backward()
    return x.grad


@on_both
def test_writes_through_detach_are_found(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    y.detach().add_(1)
    return attempt(lambda: z.backward())


@on_both
def test_overlapping_memory_cannot_be_written(torch):
    x = torch.zeros(1).expand(3)
    y = torch.zeros(3, 1).expand(3, 2)
    return (
        attempt(lambda: x.add_(1)),
        attempt(lambda: y.mul_(2)),
        attempt(lambda: x.copy_(torch.ones(3))),
        attempt(lambda: x.zero_()),
        attempt(lambda: x.fill_(2)),
        x,
    )


@on_both
def test_in_place_shapes_must_fit(torch):
    x = torch.zeros(2)
    return (
        attempt(lambda: x.add_(torch.zeros(3))),
        attempt(lambda: x.add_(torch.zeros(2, 2))),
        attempt(lambda: x.mul_(torch.zeros(2, dtype=torch.complex64))),
        attempt(lambda: torch.zeros(2, dtype=torch.int64).add_(1.5)),
        attempt(lambda: torch.zeros(2, dtype=torch.int64).add_(torch.ones(2))),
        attempt(lambda: torch.zeros(2, dtype=torch.bool).mul_(2)),
        x._version,
    )


@on_both
def test_requires_grad_on_views(torch):
    x = torch.zeros(4)
    v = x[:2]
    v.requires_grad_()
    y = v * 3
    y.sum().backward()
    base = torch.zeros(4)
    u = base[:2]
    base.requires_grad_()
    return v.grad, v.is_leaf, x.requires_grad, x.grad, u.requires_grad, u.is_leaf, u.grad_fn


@on_both
def test_writing_to_a_view_that_is_itself_a_leaf(torch):
    x = torch.zeros(4)
    v = x[:2]
    v.requires_grad_()
    return attempt(lambda: v.add_(1)), attempt(lambda: x.add_(1)), attempt(lambda: (v * 2).sum().backward()), v.grad


@on_both
def test_detach_in_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.detach_()
    v = (x * 2)[:1]
    return y.requires_grad, y.grad_fn, y.is_leaf, attempt(lambda: v.detach_()), x.detach_().requires_grad


@on_both
def test_in_place_op_that_saves_its_result(torch):
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    y = x * 1
    y.sqrt_()
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.mul_(2)
    return first, attempt(lambda: y.sum().backward())


@on_both
def test_in_place_op_that_saves_its_input(torch):
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    y = x * 1
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    y.mul_(w)
    y.mul_(w)
    y.sum().backward()
    return x.grad, w.grad


@on_both
def test_in_place_on_self_with_self(torch):
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    y = x * 1
    y.mul_(y)
    y.add_(y)
    y.sum().backward()
    return x.grad, y


@on_both
def test_view_written_with_another_view_of_the_same_base(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    y[:2].mul_(y[2:])
    y[1:3].add_(y[:2])
    y.sum().backward()
    return y, x.grad


@on_both
def test_double_backward_through_copy_slices(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * x
    y[1:3].mul_(x[:2])
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    return g, h


@on_both
def test_base_freed_before_the_view(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y[:2]
    del y
    v.mul_(3)
    v.sum().backward()
    return x.grad, chain(torch, v)


@on_both
def test_transposed_and_strided_views_written(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    y.t()[0].mul_(2)
    y.diagonal().add_(x[0])
    y[::2].mul_(x[:1])
    (y * y).sum().backward()
    return y, x.grad


@on_both
def test_write_through_an_expanded_view_of_a_history(torch):
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    y = x * 1
    v = y.expand(2, 3)
    return attempt(lambda: v.mul_(2)), attempt(lambda: v[:, :1].mul_(2)), y


@on_both
def test_in_place_on_a_tensor_without_gradients_by_one_with(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ones(2)
    y.mul_(x)
    first = y.grad_fn, y.requires_grad, y.is_leaf, y._version
    y.sum().backward()
    return first, x.grad


@on_both
def test_zero_and_fill_cut_the_history(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.zero_()
    u = x * 2
    u.fill_(3.0)
    v = x * 2
    v[0].zero_()
    y.sum().backward()
    first = x.grad.clone()
    v.sum().backward()
    return y.grad_fn, u.grad_fn, v.grad_fn, first, x.grad


@on_both
def test_names_of_in_place_nodes(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    names = []
    for write in ("add_", "sub_", "mul_", "div_"):
        y = x * 1
        getattr(y, write)(2.0)
        names.append(y.grad_fn)
    return names


@on_both
def test_in_place_with_views_under_no_grad_then_use(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        v = x[:1]
        v.mul_(5)
    y = (x * x).sum()
    y.backward()
    return x.grad, x._version, v._version


@on_both
def test_setting_data_does_not_change_versions_or_views(torch):
    x = torch.zeros(3)
    v = x[:2]
    x.data = torch.ones(3)
    x.add_(1)
    return x, v, x._version, v._version


@on_both
def test_view_as_and_alias_nodes(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    v = y.view_as(y)
    v.mul_(2)
    return chain(torch, y), chain(torch, v), chain(torch, x.view(2, 1).view(2))
