"""Seed 003: tensors that require grad, the attributes of a graph, and a Function with a constant.

`names_of_a_tensor.txt` holds the names that the document prints for dir(z), one per line.
"""

from pathlib import Path
from textwrap import dedent

import pytest

NAMES = Path(__file__).with_name("names_of_a_tensor.txt").read_text().split()
# Named tensors and the MLC device are gone from torch 2.13.
DROPPED = {
    "_update_names", "align_as", "align_to", "has_names", "is_mlc", "names", "refine_names", "rename", "rename_",
}


def sum_of_two(torch):
    x = torch.rand(5, 5, requires_grad=True)
    print(x)

    y = torch.rand(5, 5, requires_grad=True)
    print(y)

    z = torch.sum(x + y)
    print(z)

    z.backward()
    print(x.grad, '\n', y.grad)


def test_the_sum_of_two_tensors_and_its_gradients(printed):
    assert printed(sum_of_two) == dedent("""\
        tensor([[0.4963, 0.7682, 0.0885, 0.1320, 0.3074],
                [0.6341, 0.4901, 0.8964, 0.4556, 0.6323],
                [0.3489, 0.4017, 0.0223, 0.1689, 0.2939],
                [0.5185, 0.6977, 0.8000, 0.1610, 0.2823],
                [0.6816, 0.9152, 0.3971, 0.8742, 0.4194]], requires_grad=True)
        tensor([[0.5529, 0.9527, 0.0362, 0.1852, 0.3734],
                [0.3051, 0.9320, 0.1759, 0.2698, 0.1507],
                [0.0317, 0.2081, 0.9298, 0.7231, 0.7423],
                [0.5263, 0.2437, 0.5846, 0.0332, 0.1387],
                [0.2422, 0.8155, 0.7932, 0.2783, 0.4820]], requires_grad=True)
        tensor(22.5902, grad_fn=<SumBackward0>)
        tensor([[1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.]])\x20
         tensor([[1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.],
                [1., 1., 1., 1., 1.]])
    """)


def test_backward_of_a_scalar_is_short_for_backward_of_one(torch):
    x = torch.rand(5, 5, requires_grad=True)
    torch.sum(x * x).backward()
    short, x.grad = x.grad, None
    torch.sum(x * x).backward(torch.tensor(1.))
    assert torch.equal(short, x.grad)


def test_one_element_in_any_shape_needs_no_gradient_argument(torch):
    x = torch.rand(1, 1, requires_grad=True)
    (x * 2).backward()
    assert x.grad.tolist() == [[2.]]


def test_more_elements_need_a_gradient_of_the_same_shape(torch, error_of):
    x = torch.rand(2, 2, requires_grad=True)
    assert error_of(lambda torch: (x * 2).backward()).startswith(
        "RuntimeError: grad can be implicitly created only for scalar outputs"
    )
    assert error_of(lambda torch: (x * 2).backward(torch.ones(2))).startswith(
        "RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a "
        "shape of torch.Size([2, 2])."
    )


def squares_and_cubes(torch):
    x = torch.rand(5, 5, requires_grad=True)
    y = torch.rand(5, 5, requires_grad=True)
    z = x ** 2 + y ** 3
    print(z)

    z.backward(torch.ones_like(x))
    print(x.grad)

    with torch.no_grad():
        print((x + y * 2).requires_grad)

    print("x.is_leaf="+str(x.is_leaf))
    print("z.is_leaf="+str(z.is_leaf))
    print(z.grad_fn)
    print(z.grad_fn.next_functions)
    xg = z.grad_fn.next_functions[0][0]
    x_leaf = xg.next_functions[0][0]
    print(type(x_leaf))
    print(x_leaf.variable)
    print(id(x_leaf.variable) == id(x))


def test_squares_and_cubes_from_the_result_back_to_the_leaf(printed):
    assert printed(squares_and_cubes) == dedent("""\
        tensor([[0.4153, 1.4550, 0.0079, 0.0238, 0.1466],
                [0.4305, 1.0498, 0.8091, 0.2272, 0.4032],
                [0.1218, 0.1704, 0.8043, 0.4066, 0.4954],
                [0.4146, 0.5012, 0.8398, 0.0260, 0.0823],
                [0.4788, 1.3799, 0.6567, 0.7857, 0.2879]], grad_fn=<AddBackward0>)
        tensor([[0.9925, 1.5364, 0.1770, 0.2641, 0.6148],
                [1.2682, 0.9802, 1.7929, 0.9113, 1.2646],
                [0.6978, 0.8034, 0.0447, 0.3377, 0.5878],
                [1.0370, 1.3953, 1.6000, 0.3221, 0.5645],
                [1.3632, 1.8304, 0.7942, 1.7483, 0.8388]])
        False
        x.is_leaf=True
        z.is_leaf=False
        <AddBackward0 object at 0x>
        ((<PowBackward0 object at 0x>, 0), (<PowBackward0 object at 0x>, 0))
        <class 'AccumulateGrad'>
        tensor([[0.4963, 0.7682, 0.0885, 0.1320, 0.3074],
                [0.6341, 0.4901, 0.8964, 0.4556, 0.6323],
                [0.3489, 0.4017, 0.0223, 0.1689, 0.2939],
                [0.5185, 0.6977, 0.8000, 0.1610, 0.2823],
                [0.6816, 0.9152, 0.3971, 0.8742, 0.4194]], requires_grad=True)
        True
    """)


def graph_of_squares_and_cubes(torch):
    x = torch.rand(5, 5, requires_grad=True)
    y = torch.rand(5, 5, requires_grad=True)
    return x, y, x ** 2 + y ** 3


def test_a_tensor_has_every_name_the_document_lists(torch):
    assert len(NAMES) == 649
    _, _, z = graph_of_squares_and_cubes(torch)
    missing = set(NAMES) - DROPPED - set(dir(z))
    assert missing == set()


def test_the_dropped_names_are_gone_from_the_tensor(torch):
    _, _, z = graph_of_squares_and_cubes(torch)
    assert DROPPED & set(dir(z)) == set()


OF_EVERY_NODE = {
    "__call__", "_register_hook_dict", "metadata", "name", "next_functions", "register_hook", "requires_grad",
    # New since the document was written:
    "_input_metadata", "_sequence_nr", "_set_sequence_nr", "register_prehook",
}


def test_an_add_node_has_the_attributes_the_document_lists(torch):
    _, _, z = graph_of_squares_and_cubes(torch)
    assert OF_EVERY_NODE | {"_saved_alpha"} <= set(dir(z.grad_fn))
    assert z.grad_fn._saved_alpha == 1


def test_a_pow_node_has_the_attributes_the_document_lists(torch):
    x, _, z = graph_of_squares_and_cubes(torch)
    xg = z.grad_fn.next_functions[0][0]
    assert OF_EVERY_NODE | {"_saved_exponent", "_saved_self", "_raw_saved_self"} <= set(dir(xg))
    assert xg._saved_exponent == 2
    assert xg._saved_self is x


def test_a_node_says_its_name_and_keeps_metadata(torch):
    _, _, z = graph_of_squares_and_cubes(torch)
    assert z.grad_fn.name() == "AddBackward0"
    assert z.grad_fn.requires_grad is True
    assert z.grad_fn.metadata == {}
    z.grad_fn.metadata["note"] = 1
    assert z.grad_fn.metadata == {"note": 1}


def test_next_functions_is_a_tuple_of_pairs_of_a_node_and_an_int(torch):
    _, _, z = graph_of_squares_and_cubes(torch)
    edges = z.grad_fn.next_functions
    assert type(edges) is tuple and [type(edge) for edge in edges] == [tuple, tuple]
    assert [(node.name(), number) for node, number in edges] == [("PowBackward0", 0), ("PowBackward0", 0)]


def test_the_branches_end_in_the_leaves_in_the_order_of_the_sum(torch):
    x, y, z = graph_of_squares_and_cubes(torch)
    (first, _), (second, _) = z.grad_fn.next_functions
    assert first.next_functions[0][0].variable is x
    assert second.next_functions[0][0].variable is y


def test_a_created_tensor_is_a_leaf_and_a_result_is_not(torch):
    x, y, z = graph_of_squares_and_cubes(torch)
    assert (x.is_leaf, y.is_leaf, z.is_leaf) == (True, True, False)
    assert torch.rand(2).is_leaf and (torch.rand(2) + 1).is_leaf, "without requires_grad everything is a leaf"


def test_backward_puts_the_results_into_the_variables_of_the_leaves(torch):
    x, y, z = graph_of_squares_and_cubes(torch)
    z.backward(torch.ones_like(z))
    assert torch.equal(x.grad, 2 * x)
    assert torch.allclose(y.grad, 3 * y ** 2)


def mul_constant(torch):
    Function = torch.autograd.function.Function

    class MulConstant(Function):
        @staticmethod
        def forward(ctx, tensor, constant):
            ctx.constant = constant
            return tensor * constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant, None

    return MulConstant


def multiplication_by_a_constant(torch):
    MulConstant = mul_constant(torch)
    a = torch.rand(3, 3, requires_grad=True)
    b = MulConstant.apply(a, 5)
    print("a:" + str(a))
    print("b:" + str(b))

    b.backward(torch.ones_like(a))
    print(a.grad)


def test_a_function_with_a_constant(printed):
    assert printed(multiplication_by_a_constant) == dedent("""\
        a:tensor([[0.4963, 0.7682, 0.0885],
                [0.1320, 0.3074, 0.6341],
                [0.4901, 0.8964, 0.4556]], requires_grad=True)
        b:tensor([[2.4813, 3.8411, 0.4424],
                [0.6602, 1.5371, 3.1704],
                [2.4505, 4.4822, 2.2781]], grad_fn=<MulConstantBackward>)
        tensor([[5., 5., 5.],
                [5., 5., 5.],
                [5., 5., 5.]])
    """)


def test_function_is_the_same_class_under_both_names(torch):
    assert torch.autograd.function.Function is torch.autograd.Function


def test_backward_gets_as_many_arguments_as_forward_returns(torch):
    class TwoOutputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grad_double, grad_triple):
            return 2 * grad_double + 3 * grad_triple

    x = torch.ones(2, requires_grad=True)
    double, triple = TwoOutputs.apply(x)
    (double.sum() + 10 * triple.sum()).backward()
    assert x.grad.tolist() == [32., 32.]


def test_backward_must_return_as_many_gradients_as_forward_has_inputs(error_of):
    def program(torch):
        class MulConstant(mul_constant(torch)):
            @staticmethod
            def backward(ctx, grad_output):
                return grad_output * ctx.constant

        MulConstant.apply(torch.rand(3, 3, requires_grad=True), 5).sum().backward()

    assert error_of(program).startswith(
        "RuntimeError: function MulConstantBackward returned an incorrect number of gradients (expected 2, "
        "got 1)"
    )


def test_the_gradient_of_a_constant_must_be_none(error_of):
    def program(torch):
        class MulConstant(mul_constant(torch)):
            @staticmethod
            def backward(ctx, grad_output):
                return grad_output * ctx.constant, grad_output

        MulConstant.apply(torch.rand(3, 3, requires_grad=True), 5).sum().backward()

    assert error_of(program).startswith(
        "RuntimeError: function MulConstantBackward returned a gradient different than None at position 2, "
        "but the corresponding forward input was not a Variable"
    )


def test_a_function_is_not_to_be_instantiated(torch):
    # The document says that a Function may have an __init__; torch deprecates making instances.
    with pytest.warns(DeprecationWarning, match="should not be instantiated. Methods on autograd functions are all"):
        mul_constant(torch)()
