"""backward and grad: signatures, roots, gradients given, errors and warnings."""

from collections import UserDict

from tests.conformance.both import attempt, on_both


@on_both
def test_backward_of_a_vector_needs_a_gradient(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return attempt(lambda: (x * 2).backward()), attempt(lambda: torch.autograd.grad(x * 2, x))


@on_both
def test_backward_of_one_element_of_any_shape_needs_none(torch):
    x = torch.tensor([[3.0]], requires_grad=True)
    (x * x).backward()
    return x.grad


@on_both
def test_backward_of_an_empty_tensor_needs_a_gradient(torch):
    x = torch.zeros(0, requires_grad=True)
    return attempt(lambda: (x * 2).backward())


@on_both
def test_backward_of_a_complex_scalar_needs_a_gradient(torch):
    x = torch.tensor(1.0 + 2.0j, requires_grad=True)
    return attempt(lambda: (x * x).backward())


@on_both
def test_backward_without_a_graph_is_an_error(torch):
    x = torch.tensor(1.0)
    y = torch.tensor(1.0, requires_grad=True)
    return (
        attempt(lambda: x.backward()),
        attempt(lambda: torch.autograd.backward([y * 2, x])),
        attempt(lambda: torch.autograd.grad(x, y)),
        attempt(lambda: torch.autograd.grad([y * 2, x], [y])),
        attempt(lambda: torch.tensor(1).backward()),
        attempt(lambda: torch.tensor([1.0, 2.0]).backward()),
        attempt(lambda: torch.tensor([1.0, 2.0]).backward(torch.tensor([1.0, 2.0]))),
    )


@on_both
def test_backward_twice_is_an_error_unless_retained(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, attempt(lambda: y.backward()), x.grad


@on_both
def test_backward_twice_through_nodes_that_save_nothing_works(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x + 1
    y.backward()
    y.backward()
    return x.grad


@on_both
def test_backward_of_a_leaf_gives_one(torch):
    x = torch.tensor(3.0, requires_grad=True)
    x.backward()
    x.backward()
    return x.grad, torch.autograd.grad(x, x)


@on_both
def test_gradient_of_the_wrong_shape_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    return (
        attempt(lambda: y.backward(torch.ones(3))),
        attempt(lambda: y.backward(torch.ones(1))),
        attempt(lambda: y.backward(torch.ones(2, 1))),
        attempt(lambda: torch.autograd.grad(y, x, torch.ones(3))),
    )


@on_both
def test_gradient_that_is_no_tensor_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    return (
        attempt(lambda: y.backward(1.0)),
        attempt(lambda: y.backward([1.0, 2.0])),
        attempt(lambda: torch.autograd.backward(y, ["a"])),
        attempt(lambda: torch.autograd.grad(y, x, [1.0])),
    )


@on_both
def test_number_of_gradients_must_match_number_of_tensors(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    return (
        attempt(lambda: torch.autograd.backward([y, y], [torch.ones(2)])),
        attempt(lambda: torch.autograd.grad([y], [x], [torch.ones(2), torch.ones(2)])),
        attempt(lambda: torch.autograd.backward([y.sum()], [])),
    )


@on_both
def test_gradient_of_another_dtype_is_cast(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.backward(torch.ones(2, dtype=torch.float64))
    z = x * 3
    z.backward(torch.ones(2, dtype=torch.int64))
    return x.grad


@on_both
def test_complex_gradient_of_a_real_output_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    c = torch.tensor([1.0 + 1j], requires_grad=True)
    return (
        attempt(lambda: (x * 2).backward(torch.ones(2, dtype=torch.complex64))),
        attempt(lambda: (c * 2).backward(torch.ones(1))),
    )


@on_both
def test_several_roots_and_repeated_roots_add_up(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    torch.autograd.backward([y.sum(), y.sum(), (x * 3).sum()])
    first = x.grad.clone()
    z = (x * x).sum()
    torch.autograd.backward([z, z])
    return first, x.grad


@on_both
def test_root_that_lies_on_the_way_of_another_root(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * x
    torch.autograd.backward([y, z])
    return x.grad


@on_both
def test_leaf_as_a_root_beside_others(torch):
    x = torch.tensor(2.0, requires_grad=True)
    torch.autograd.backward([x, x * x, x])
    return x.grad


@on_both
def test_none_gradients_for_scalars_only(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([x.sum(), x * 2], [None, torch.ones(2)])
    return x.grad, attempt(lambda: torch.autograd.backward([x.sum(), x * 2], [torch.tensor(1.0), None]))


@on_both
def test_gradient_may_require_grad_itself(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([1.0, 1.0], requires_grad=True)
    (g,) = torch.autograd.grad(x * x, x, v, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), v)
    return g, g.grad_fn, h


@on_both
def test_grad_of_an_unused_input_is_an_error_unless_allowed(torch):
    x = torch.tensor(1.0, requires_grad=True)
    u = torch.tensor([1.0, 2.0], requires_grad=True)
    return (
        attempt(lambda: torch.autograd.grad(x * 2, [x, u])),
        torch.autograd.grad(x * 2, [x, u], allow_unused=True),
        torch.autograd.grad(x * 2, [x, u], materialize_grads=True),
        torch.autograd.grad(x * 2, [u, x], materialize_grads=True, create_graph=True),
        attempt(lambda: torch.autograd.grad(x * 2, [x, u], materialize_grads=True, allow_unused=False)),
    )


@on_both
def test_grad_of_an_input_that_requires_none_is_an_error(torch):
    x = torch.tensor(1.0, requires_grad=True)
    return (
        attempt(lambda: torch.autograd.grad(x * 2, [torch.tensor(1.0)])),
        attempt(lambda: torch.autograd.grad(x * 2, [torch.tensor(1.0)], allow_unused=True)),
        attempt(lambda: torch.autograd.grad(x * 2, [])),
        attempt(lambda: torch.autograd.grad([], [x])),
    )


@on_both
def test_grad_does_not_touch_the_leaves(torch):
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    g = torch.autograd.grad(x * w, x)
    return g, x.grad, w.grad


@on_both
def test_grad_stops_at_intermediate_inputs(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * y
    return torch.autograd.grad(z, y, retain_graph=True), torch.autograd.grad(z, [y, x])


@on_both
def test_grad_with_the_output_as_input(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    return torch.autograd.grad(y, [y, x])


@on_both
def test_grad_gives_the_same_input_twice(torch):
    x = torch.tensor(2.0, requires_grad=True)
    a, b = torch.autograd.grad(x * x, [x, x])
    return a, b


@on_both
def test_only_inputs_is_deprecated(torch):
    x = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(x * x, x, only_inputs=False)


@on_both
def test_grad_variables_is_deprecated(torch):
    x = torch.tensor([2.0], requires_grad=True)
    torch.autograd.backward(x * x, grad_variables=torch.ones(1))
    return x.grad, attempt(
        lambda: torch.autograd.backward(x * x, grad_tensors=torch.ones(1), grad_variables=torch.ones(1))
    )


@on_both
def test_backward_with_inputs_fills_only_these(torch):
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    z = x * w
    z.backward(inputs=[x], retain_graph=True)
    first = (x.grad, w.grad)
    z.backward(inputs=w)
    return first, x.grad, w.grad


@on_both
def test_backward_with_inputs_that_are_not_leaves(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * 3
    z.backward(inputs=[y, x])
    return y.grad, x.grad, y.retains_grad


@on_both
def test_backward_with_no_inputs_is_an_error(torch):
    x = torch.tensor(2.0, requires_grad=True)
    return (
        attempt(lambda: (x * 2).backward(inputs=[])),
        attempt(lambda: (x * 2).backward(inputs=[torch.tensor(1.0)])),
        attempt(lambda: torch.autograd.backward([])),
        attempt(lambda: torch.autograd.backward([], inputs=[x])),
    )


@on_both
def test_backward_with_an_input_that_is_not_reached(torch):
    x = torch.tensor(2.0, requires_grad=True)
    u = torch.tensor(2.0, requires_grad=True)
    (x * x).backward(inputs=[x, u])
    return x.grad, u.grad


@on_both
def test_integer_outputs_have_no_history(torch):
    x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    values, indices = torch.max(x, 0)
    return values.requires_grad, indices.requires_grad, indices.grad_fn, attempt(lambda: indices.backward())


@on_both
def test_integer_tensors_cannot_require_gradients(torch):
    def assign():
        torch.tensor([1]).requires_grad = True

    return (
        attempt(lambda: torch.tensor([1], requires_grad=True)),
        attempt(lambda: torch.tensor([1]).requires_grad_()),
        attempt(assign),
        attempt(lambda: torch.tensor([True]).requires_grad_()),
        torch.tensor([1]).requires_grad_(False),
    )


@on_both
def test_requires_grad_of_a_computed_tensor_cannot_be_switched_off(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2

    def assign(value):
        y.requires_grad = value

    return (
        attempt(lambda: assign(False)),
        attempt(lambda: assign(True)),
        attempt(lambda: y.requires_grad_(False)),
        attempt(lambda: y.requires_grad_()),
        attempt(lambda: assign(1)),
        attempt(lambda: assign("a")),
        attempt(lambda: assign(None)),
    )


@on_both
def test_grad_of_a_nonleaf_warns(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2
    return y.grad, (x * 1).retain_grad(), x.grad


@on_both
def test_assigning_grad_is_checked(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def assign(value):
        x.grad = value

    def remove():
        del x.grad

    return (
        attempt(lambda: assign(torch.ones(3))),
        attempt(lambda: assign(torch.ones(2, dtype=torch.float64))),
        attempt(lambda: assign(torch.ones(2, dtype=torch.int64))),
        attempt(lambda: assign(1.0)),
        attempt(lambda: assign(x)),
        attempt(lambda: assign(torch.ones(2))),
        x.grad,
        attempt(lambda: assign(None)),
        x.grad,
        attempt(remove),
    )


@on_both
def test_backward_under_no_grad_works_on_a_recorded_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    with torch.no_grad():
        y.backward()
        inside = attempt(lambda: (x * x).backward())
    return x.grad, inside


@on_both
def test_gradient_edges_stand_for_tensors(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * x
    edge = torch.autograd.graph.get_gradient_edge
    a = torch.autograd.grad(z, [edge(y), edge(x)], retain_graph=True)
    b = torch.autograd.grad(edge(z), x, retain_graph=True)
    c = torch.autograd.grad(edge(y), x, grad_outputs=torch.tensor(3.0))
    torch.autograd.backward(edge(x * 5))
    return a, b, c, x.grad, type(edge(x)).__name__, edge(y).node, edge(y).output_nr


@on_both
def test_gradient_edges_of_tensors_without_history_are_an_error(torch):
    x = torch.tensor([2.0, 1.0], requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge
    return (
        attempt(lambda: edge(torch.tensor(1.0))),
        attempt(lambda: torch.autograd.grad(edge(x * 2), x)),
    )


@on_both
def test_batched_gradients_give_a_row_each(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    grad = torch.autograd.grad
    return (
        grad(y, x, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), is_grads_batched=True),
        grad((x * x).sum(), x, torch.tensor([1.0, 2.0]), is_grads_batched=True),
        attempt(lambda: grad(x * x, x, torch.ones(2, 3), is_grads_batched=True)),
        attempt(lambda: grad(x * x, x, is_grads_batched=True)),
    )


@on_both
def test_wrong_arguments_to_backward_and_grad(torch):
    x = torch.tensor(2.0, requires_grad=True)
    return (
        attempt(lambda: torch.autograd.grad("a", x)),
        attempt(lambda: torch.autograd.grad(x * 2, "a")),
        attempt(lambda: torch.autograd.grad(x * 2, 1)),
        attempt(lambda: torch.autograd.grad(x * 2, [x, None])),
        attempt(lambda: torch.autograd.backward(1.0)),
        attempt(lambda: torch.autograd.backward([1.0])),
        attempt(lambda: torch.autograd.backward(x * 2, inputs=[1])),
        attempt(lambda: (x * 2).backward(gradient=torch.tensor(2.0), retain_graph=None, create_graph=False)),
        x.grad,
        attempt(lambda: torch.autograd.grad(x * 2, x, torch.tensor(2.0), None, False, True, None, False)),
    )


@on_both
def test_inputs_may_be_a_dict(torch):
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    g = torch.autograd.grad(x * w, {"x": x, "w": w})
    (x * w).backward(inputs={"x": x})
    return g, x.grad, w.grad, attempt(lambda: torch.autograd.grad(x * w, UserDict(x=x)))


@on_both
def test_materialize_grads_needs_tensors(torch):
    x = torch.tensor(2.0, requires_grad=True)
    u = torch.tensor(2.0, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(u)
    return attempt(lambda: torch.autograd.grad(x * 2, edge, materialize_grads=True))


def test_creating_a_graph_in_backward_warns_once_per_process(run_python):
    program = """
import warnings
warnings.simplefilter("always")
import {0} as torch
with warnings.catch_warnings(record=True) as caught:
    for _ in range(2):
        x = torch.tensor(1.0, requires_grad=True)
        (x * x).backward(create_graph=True)
print([(w.category, str(w.message).split(" (Triggered")[0]) for w in caught])
"""
    assert run_python(program.format("torch")) == run_python(program.format("pullback"))


@on_both
def test_integer_inputs_in_formulas_count_as_the_default_dtype(torch):
    base = torch.tensor([2, 3, 200], dtype=torch.uint8)
    exponent = torch.tensor([2.0, 3.0, 0.5], dtype=torch.float64, requires_grad=True)
    (base**exponent).sum().backward()
    return exponent.grad


@on_both
def test_out_is_refused_before_anything_else(torch):
    x = torch.ones(2, requires_grad=True)
    return (
        attempt(lambda: torch.mul(x, torch.ones(3), out=torch.empty(0))),
        attempt(lambda: torch.mul(torch.ones(2), torch.ones(2), out=x)),
    )
