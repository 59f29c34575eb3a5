"""Seed 004, the programs of section 2: recording, detach, accumulation, in-place ops, descent, hooks, training.

What the text of the document claims is tested in test_mechanics.py.
"""

from textwrap import dedent

import pytest

NON_LEAF_GRAD = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def autograd_demo(torch):
    data0 = torch.randn(2, 2, 4)
    w_0 = torch.randn(2, 4, 3, requires_grad=True)
    data2 = torch.bmm(data0, w_0)
    data3 = torch.sigmoid(data2)
    w_1 = torch.randn(2, 3, 5, requires_grad = True)
    output = torch.matmul(data3, w_1)
    loss = output.sum()
    loss.backward()
    w_0 = w_0 - 0.001* w_0.grad

    print("run autograd_demo finished !!!")
    print(loss)
    print(w_0)
    print(w_1.grad)


def test_a_step_of_gradient_descent_through_two_batched_products(printed):
    # The document prints the first line only.
    assert printed(autograd_demo) == dedent("""\
        run autograd_demo finished !!!
        tensor(0.9714, grad_fn=<SumBackward0>)
        tensor([[[-1.3527, -1.6959,  0.5666],
                 [ 0.7934,  0.5989, -1.5552],
                 [-0.3414,  1.8530, -0.2160],
                 [-0.7429,  0.5628,  0.2590]],

                [[-0.1741, -0.6788,  0.9382],
                 [ 0.4888,  1.2031,  0.0845],
                 [-1.2006, -0.0051, -0.5182],
                 [-0.3067, -1.5810,  1.7066]]], grad_fn=<SubBackward0>)
        tensor([[[1.4807, 1.4807, 1.4807, 1.4807, 1.4807],
                 [0.6823, 0.6823, 0.6823, 0.6823, 0.6823],
                 [1.0037, 1.0037, 1.0037, 1.0037, 1.0037]],

                [[0.5698, 0.5698, 0.5698, 0.5698, 0.5698],
                 [0.9546, 0.9546, 0.9546, 0.9546, 0.9546],
                 [0.9454, 0.9454, 0.9454, 0.9454, 0.9454]]])
    """)


def inference_of_requires_grad(torch):
    x = torch.rand(5, 5)
    y = torch.rand(5, 5)
    z = torch.rand((5, 5), requires_grad=True)

    a = x + y
    print(f"Does `a` require gradients? : {a.requires_grad}")
    b = x + z
    print(f"Does `b` require gradients?: {b.requires_grad}")


def test_requires_grad_is_inferred_from_the_inputs(printed):
    assert printed(inference_of_requires_grad) == dedent("""\
        Does `a` require gradients? : False
        Does `b` require gradients?: True
    """)


def test_backward_of_a_detached_result_is_an_error(error_of):
    # The document expects tensor([6.]) in x.grad after this, but detach leaves nothing to differentiate.
    def program(torch):
        x = torch.tensor([2.0], requires_grad=True)
        y = x.pow(2)
        z = y.detach()
        w = z * 3
        w.backward()

    assert error_of(program).startswith(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    )


def test_detach_shares_the_values_and_leaves_the_graph_alone(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x.pow(2)
    z = y.detach()
    assert not z.requires_grad and z.grad_fn is None and z.is_leaf
    assert z.data_ptr() == y.data_ptr()
    (y + z * 3).backward()
    assert x.grad.tolist() == [4.], "only the path that was not detached counts"


def set_no_grad(torch):
    x = torch.ones(5, requires_grad=True)  # input tensor
    y = torch.zeros(3)  # expected output  # noqa: F841
    w = torch.randn(5, 3, requires_grad=True) # requires_grad
    b = torch.randn(3, requires_grad=True)
    z = torch.matmul(x, w)+b
    z.backward(torch.randn_like(z))
    print("x grad: ", x.grad)

    with torch.no_grad():
        z = torch.matmul(x, w)+b

    print("requires_grad: ", z.requires_grad)


def test_no_grad_switches_the_recording_off(printed):
    assert printed(set_no_grad) == dedent("""\
        x grad:  tensor([-1.7388,  0.6116, -1.8909,  1.3276, -1.2935])
        requires_grad:  False
    """)


def test_set_grad_enabled_switches_it_off_everywhere(torch, error_of):
    # The two lines that the document leaves commented out.
    def program(torch):
        torch.set_grad_enabled(False)
        z = torch.matmul(torch.ones(5, requires_grad=True), torch.randn(5, 3))
        z.backward(torch.ones_like(z))

    assert error_of(program).startswith(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    )


def grad_accumulate(torch):
    x = torch.ones(5)  # input tensor
    label = torch.zeros(3)  # expected output
    w = torch.randn(5, 3, requires_grad=True) # requires_grad
    b = torch.randn(3, requires_grad=True)
    output = torch.matmul(x, w)+b

    loss = torch.nn.functional.binary_cross_entropy_with_logits(output, label)
    loss.backward(retain_graph=True)
    print(f"Grad for w first time = {w.grad}")
    print(f"Gradient function for z = {output.grad_fn}")
    print(f"Gradient function for loss = {loss.grad_fn}")
    w.grad.zero_()
    loss.backward(retain_graph=True)
    print(f"Grad for w second time = {w.grad}")


def test_gradients_are_set_to_zero_between_two_backwards(printed):
    assert printed(grad_accumulate) == dedent("""\
        Grad for w first time = tensor([[0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027]])
        Gradient function for z = <AddBackward0 object at 0x>
        Gradient function for loss = <BinaryCrossEntropyWithLogitsBackward0 object at 0x>
        Grad for w second time = tensor([[0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027],
                [0.2661, 0.1179, 0.0027]])
    """)


def test_an_in_place_op_on_a_leaf_that_requires_grad_is_an_error(error_of):
    def inplace_demo(torch):
        data1 = torch.randn(3, 4)
        data1.requires_grad = True

        data1.mul_(2)
        loss = data1.var()

        loss.backward()

    assert error_of(inplace_demo).startswith(
        "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
    )


def test_under_no_grad_a_leaf_and_its_view_can_be_updated_in_place(torch):
    y = torch.ones(5, 5, requires_grad=True)
    (3 * y).sum().backward()
    address = y.data_ptr()
    with torch.no_grad():
        v = y.view(5, 5)
        v.sub_(y.grad * 0.1)
        y.sub_(0.1 * y.grad)
    assert torch.allclose(y, torch.full((5, 5), 0.4))
    assert y.is_leaf and y.requires_grad and y.grad_fn is None
    assert y.data_ptr() == address and y._version == 2 and v._version == 2


def autograd_demo_v1(torch):
    def hook(grad):
        print("hook: ", grad)

    torch.manual_seed(0)
    x = torch.ones(5, requires_grad=True) # input
    w = torch.randn(5, 5, requires_grad=True) # weight
    b = torch.randn_like(x)
    label = torch.Tensor([0, 0, 1, 0, 0])

    for _ in range(100):
        if w.grad:
            w.grad.zero_()

        z = torch.matmul(w, x) + b # linear layer
        output = torch.sigmoid(z)
        output.register_hook(hook)
        output.retain_grad() # tensor([-0.0405, -0.0722, -0.1572,  0.3101, -0.0403]
        loss = (output-label).var() # l2 loss
        loss.backward()
        print(w.grad)
        print("loss: ", loss)


def test_the_first_demo_stops_in_its_second_round(torch, capsys):
    # `if w.grad` asks a tensor of 25 elements for its truth.
    with pytest.raises(RuntimeError, match=r"^Boolean value of Tensor with more than one value is ambiguous"):
        autograd_demo_v1(torch)
    assert capsys.readouterr().out == dedent("""\
        hook:  tensor([-0.0405, -0.0722, -0.1572,  0.3101, -0.0403])
        tensor([[-0.0065, -0.0065, -0.0065, -0.0065, -0.0065],
                [-0.0087, -0.0087, -0.0087, -0.0087, -0.0087],
                [-0.0047, -0.0047, -0.0047, -0.0047, -0.0047],
                [ 0.0269,  0.0269,  0.0269,  0.0269,  0.0269],
                [-0.0065, -0.0065, -0.0065, -0.0065, -0.0065]])
        loss:  tensor(0.1293, grad_fn=<VarBackward0>)
    """)


def test_the_gradient_of_the_output_is_retained(torch):
    torch.manual_seed(0)
    x = torch.ones(5, requires_grad=True)
    w = torch.randn(5, 5, requires_grad=True)
    b = torch.randn_like(x)
    output = torch.sigmoid(torch.matmul(w, x) + b)
    output.retain_grad()
    (output - torch.Tensor([0, 0, 1, 0, 0])).var().backward()
    # The numbers that the document notes beside retain_grad.
    assert str(output.grad) == "tensor([-0.0405, -0.0722, -0.1572,  0.3101, -0.0403])"


def autograd_demo_v2(torch):
    torch.manual_seed(0)
    x = torch.ones(5, requires_grad=True)
    w = torch.randn(5, 5, requires_grad=True)
    b = torch.randn_like(x)
    label = torch.Tensor([0, 0, 1, 0, 0])

    for _ in range(100):
        w.retain_grad()
        z = torch.matmul(w, x) + b # linear layer
        output = torch.sigmoid(z)
        loss = (output-label).var() # l2 loss
        loss.backward()
        w = w - 0.2 * w.grad
        print("loss: ", loss)


def autograd_demo_v3(torch):
    torch.manual_seed(0)
    x = torch.ones(5, requires_grad=True)
    y = torch.randn(5, 5, requires_grad=True)
    b = torch.randn_like(x)

    for i in range(100):
        if i > 0:
            y.grad.zero_()
        z = torch.matmul(y, x) + b # linear layer
        output = torch.sigmoid(z)
        label = torch.Tensor([0, 0, 1, 0, 0])
        loss = (output-label).var() # l2 loss
        loss.backward()

        with torch.no_grad():
            y.sub_(0.2 * y.grad)

        print("loss: ", loss)


# Both programs take the same steps: a new w has no gradient yet, and the updated y has its gradient set to zero.
LOSSES = """
0.1293 0.1284 0.1275 0.1265 0.1255 0.1245 0.1235 0.1224 0.1213 0.1201 0.1190 0.1178 0.1165 0.1152 0.1139 0.1125 0.1111
0.1097 0.1082 0.1067 0.1051 0.1035 0.1018 0.1001 0.0983 0.0965 0.0947 0.0928 0.0908 0.0889 0.0868 0.0848 0.0827 0.0806
0.0785 0.0764 0.0742 0.0721 0.0699 0.0678 0.0656 0.0635 0.0614 0.0594 0.0573 0.0554 0.0534 0.0515 0.0497 0.0479 0.0462
0.0446 0.0430 0.0415 0.0400 0.0386 0.0373 0.0360 0.0348 0.0336 0.0326 0.0315 0.0305 0.0296 0.0287 0.0279 0.0271 0.0263
0.0256 0.0250 0.0243 0.0237 0.0231 0.0226 0.0221 0.0216 0.0211 0.0207 0.0203 0.0198 0.0195 0.0191 0.0188 0.0184 0.0181
0.0178 0.0175 0.0172 0.0170 0.0167 0.0164 0.0162 0.0160 0.0158 0.0156 0.0153 0.0152 0.0150 0.0148 0.0146
"""


@pytest.mark.parametrize("program", [autograd_demo_v2, autograd_demo_v3])
def test_a_hundred_steps_towards_a_label(printed, program):
    lines = printed(program).splitlines()
    assert lines == [f"loss:  tensor({loss}, grad_fn=<VarBackward0>)" for loss in LOSSES.split()]


def test_retain_grad_lets_the_new_weights_of_every_step_have_gradients(torch):
    torch.manual_seed(0)
    x = torch.ones(5, requires_grad=True)
    y = torch.randn(5, 5, requires_grad=True)
    b = torch.randn_like(x)
    losses = []
    for _ in range(100):
        y.retain_grad()
        z = torch.matmul(y, x) + b # linear layer
        output = torch.sigmoid(z)
        label = torch.Tensor([0, 0, 1, 0, 0])
        loss = (output-label).var() # l2 loss
        loss.backward()
        y = y - 0.1 * y.grad
        losses.append(loss.item())
    assert not y.is_leaf
    assert losses == sorted(losses, reverse=True)
    assert f"{losses[0]:.4f} {losses[-1]:.4f}" == "0.1293 0.0469"


def test_the_second_way_to_keep_a_gradient_has_a_misspelt_name(error_of):
    assert error_of(lambda torch: torch.Tensor([1, 2, 3]).regiter_hook(print)).startswith(
        "AttributeError: 'Tensor' object has no attribute 'regiter_hook'"
    )


def test_a_hook_needs_a_tensor_that_requires_grad(error_of):
    # With the name corrected, the document's program stops here.
    assert error_of(lambda torch: torch.Tensor([1, 2, 3]).register_hook(print)).startswith(
        "RuntimeError: cannot register a hook on a tensor that doesn't require gradient"
    )


@pytest.mark.parametrize("factor", [None, 0.001])
def test_a_hook_can_keep_a_gradient_and_change_it(torch, factor):
    grad_list = []

    def aa(grad):
        grad_list.append(grad)
        if factor:
            return factor * grad

    a = torch.Tensor([1, 2, 3]).requires_grad_()
    c = torch.Tensor([4, 5, 6])
    a.register_hook(aa)
    b = a.mul(c)
    b.backward(torch.ones_like(b))
    assert [grad.tolist() for grad in grad_list] == [[4., 5., 6.]]
    assert torch.equal(a.grad, c * (factor or 1))


def exp_of_ones_own(torch):
    Function = torch.autograd.Function

    class Exp(Function):
        @staticmethod
        def forward(ctx, i):
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            result, = ctx.saved_tensors
            return grad_output * result

    input = torch.randn(3, requires_grad=True)
    output = Exp.apply(input)
    print(output)
    output.backward(torch.ones_like(output))
    print(input.grad)


def test_a_backward_of_ones_own(printed):
    assert printed(exp_of_ones_own) == dedent("""\
        tensor([4.6692, 0.7457, 0.1132], grad_fn=<ExpBackward>)
        tensor([4.6692, 0.7457, 0.1132])
    """)


def backward_of_a_matrix(torch):
    inp = torch.eye(4, 5, requires_grad=True)
    out = (inp+1).pow(2).t()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"First call\n{inp.grad}")
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nSecond call\n{inp.grad}")
    inp.grad.zero_()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"\nCall after zeroing gradients\n{inp.grad}")


def test_backward_of_a_matrix_accumulates_until_zeroed(printed):
    assert printed(backward_of_a_matrix) == dedent("""\
        First call
        tensor([[4., 2., 2., 2., 2.],
                [2., 4., 2., 2., 2.],
                [2., 2., 4., 2., 2.],
                [2., 2., 2., 4., 2.]])

        Second call
        tensor([[8., 4., 4., 4., 4.],
                [4., 8., 4., 4., 4.],
                [4., 4., 8., 4., 4.],
                [4., 4., 4., 8., 4.]])

        Call after zeroing gradients
        tensor([[4., 2., 2., 2., 2.],
                [2., 4., 2., 2., 2.],
                [2., 2., 4., 2., 2.],
                [2., 2., 2., 4., 2.]])
    """)


def train_demo(torch):
    w1 = [[0.1, 0.15], [0.2, 0.25], [0.3, 0.35]]
    w2 = [[0.4, 0.45, 0.5], [0.55, 0.6, 0.65]]
    w1 = torch.tensor(w1, requires_grad=True)
    w2 = torch.tensor(w2, requires_grad=True)
    b1 = torch.ones(3, 1).float()
    b2 = torch.ones(2, 2).float()

    input1 = torch.tensor([5, 10]).reshape(2, 1).to(torch.float32)
    label = torch.tensor([0.01, 0.99]).reshape(2, 1)

    for i in range(300):
        if w1.grad or w2.grad:
            w1.grad.zero_()
            w2.grad.zero_()

        w1.retain_grad()
        w2.retain_grad()
        net_h = torch.mm(w1, input1) + b1
        out_h = torch.sigmoid(net_h)

        net_o = torch.matmul(w2, out_h) + b2
        out_o = torch.sigmoid(net_o)
        loss = (out_o - label).var()
        loss.backward()

        if i < 100:
            w1 = w1 - 0.5 * w1.grad
            w2 = w2 - 0.5 * w2.grad
        else:
            w1 = w1 - 0.02 * w1.grad
            w2 = w2 - 0.02 * w2.grad

        print(loss)


TRAINING = """
0.3009 0.2953 0.2894 0.2831 0.2765 0.2694 0.2617 0.2532 0.2440 0.2339 0.2228 0.2108 0.1977 0.1838 0.1692 0.1541 0.1389
0.1242 0.1101 0.0972 0.0855 0.0752 0.0663 0.0586 0.0520 0.0464 0.0416 0.0375 0.0340 0.0310 0.0283 0.0261 0.0241 0.0223
0.0208 0.0194 0.0182 0.0171 0.0161 0.0152 0.0144 0.0136 0.0129 0.0123 0.0118 0.0112 0.0108 0.0103 0.0099 0.0095 0.0091
0.0088 0.0085 0.0082 0.0079 0.0077 0.0074 0.0072 0.0070 0.0068 0.0066 0.0064 0.0062 0.0060 0.0059 0.0057 0.0056 0.0054
0.0053 0.0052 0.0051 0.0049 0.0048 0.0047 0.0046 0.0045 0.0044 0.0043 0.0043 0.0042 0.0041 0.0040 0.0039 0.0039 0.0038
0.0037 0.0037 0.0036 0.0035 0.0035 0.0034 0.0034 0.0033 0.0032 0.0032 0.0031 0.0031 0.0030 0.0030 0.0030 0.0029 0.0029
0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029
0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029 0.0029
0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028
0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028
0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028
0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0028 0.0027 0.0027 0.0027 0.0027 0.0027
0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027
0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027
0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027
0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0027 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026
0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026
0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026 0.0026
"""


def test_training_two_layers_for_three_hundred_steps(printed):
    # From the second round on the new weights are asked for a gradient they do not have yet.
    with pytest.warns(UserWarning, match=NON_LEAF_GRAD):
        lines = printed(train_demo).splitlines()
    assert lines == [f"tensor({loss}, grad_fn=<VarBackward0>)" for loss in TRAINING.split()]
