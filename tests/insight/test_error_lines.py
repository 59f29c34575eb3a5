"""Errors say, after torch's text, which lines of the user's program are to blame, however the program is written."""

import pytest

from tests.insight.programs import KINDS, error_of, line_of, named

STYLES = {
    "plain": """
x = torch.ones(3, requires_grad=True)
y = x.exp()
z = y * y  # saved
y.add_(1)  # written
z.sum().backward()
""",
    "module": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        h = self.fc(x)
        out = h.sigmoid() * h  # saved
        h.mul_(2)  # written
        return out

Net()(torch.ones(2, 3)).sum().backward()
""",
    "loop": """
h = torch.ones(3, requires_grad=True) * 1
outs = []
for step in range(3):
    outs.append(h * h)  # saved
    h += 1  # written
outs[2].sum().backward()
""",
    "lambda": """
square = lambda t: t * t  # saved
spoil = lambda t: t.zero_()  # written
y = torch.ones(3, requires_grad=True) * 2
z = square(y)
spoil(y)
z.sum().backward()
""",
    "comprehension": """
ys = [torch.ones(2, requires_grad=True) * n for n in range(3)]
zs = [y * y for y in ys]  # saved
[y.neg_() for y in ys]  # written
zs[1].sum().backward()
""",
    "several lines": """
y = torch.ones(3, requires_grad=True).exp()
z = torch.cat([
    y * y,  # saved
    y,
])
y[
    0
] = 5.0
y.index_fill_(  # written
    0,
    torch.tensor([1]),
    7.0,
)
z.sum().backward()
""",
    "library function": """
import pullback.nn.functional as F
w = torch.ones(2, 3, requires_grad=True)
x = torch.ones(4, 3)
out = F.linear(x, w)  # saved
x[0] = 2.0  # written
out.sum().backward()
""",
    "optimizer": """
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.ones(1, 2)).sum()  # saved
loss.backward(retain_graph=True)
optimizer.step()  # written
loss.backward()
""",
    "custom function": """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

y = torch.ones(3, requires_grad=True) * 1
z = Square.apply(y)  # saved
y.sqrt_()  # written
z.sum().backward()
""",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_a_tensor_written_over_names_who_saved_it_and_who_wrote(style, kind):
    source, filename = STYLES[style], KINDS[kind]
    text = error_of(source, filename)
    assert text.startswith("one of the variables needed for gradient computation has been modified by an inplace")
    assert named(text, "saved by") == (filename, line_of(source, "saved"))
    assert named(text, "written over") == (filename, line_of(source, "written"))


def test_several_writes_are_counted_and_the_last_is_named():
    source = """
y = torch.ones(3, requires_grad=True).exp()
z = y * y
y.add_(1)
y.add_(2)
y.add_(3)  # last
z.sum().backward()
"""
    text = error_of(source)
    assert "written over 3 times since, last" in text
    assert named(text, "last")[1] == line_of(source, "last")


def test_the_module_that_saved_is_named():
    assert "[net.0 (Linear)]" in error_of(STYLES["optimizer"]) or "[net.1 (Linear)]" in error_of(STYLES["optimizer"])


TWICE = {
    "plain": """
x = torch.ones(3, requires_grad=True)
y = x * x  # made
loss = y.sum()
loss.backward()  # freed
loss.backward()
""",
    "function": """
def step(loss):
    loss.backward()  # freed

def model(x):
    return (x.sin() * 2).sum()  # made

loss = model(torch.ones(3, requires_grad=True))
step(loss)
loss.backward()
""",
    "shared part": """
h = torch.ones(3, requires_grad=True).exp()  # made
first, second = h.sum(), (h + 1).sum()
torch.autograd.grad(first, h, retain_graph=True)
first.backward()  # freed
second.backward()
""",
    "grad": """
x = torch.ones(3, requires_grad=True)
y = x.tanh()  # made
torch.autograd.grad(y.sum(), x)  # freed
torch.autograd.grad(y.sum(), x)
""",
    "module": """
class Net(nn.Module):
    def forward(self, x):
        return (
            x.
            exp()  # made
        )

out = Net()(torch.ones(2, requires_grad=True))
[out.sum().backward() for _ in range(2)]  # freed
""",
    "custom function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.saved_tensors
        return grad * 2

y = Double.apply(torch.ones(3, requires_grad=True)).sum()  # made
y.backward()  # freed
y.backward()
""",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", TWICE)
def test_backward_twice_names_the_node_and_the_first_backward(style, kind):
    source, filename = TWICE[style], KINDS[kind]
    text = error_of(source, filename)
    assert text.startswith("Trying to backward through the graph a second time")
    assert named(text, "was made") == (filename, line_of(source, "made"))
    assert named(text, "freed by the backward") == (filename, line_of(source, "freed"))


CUTS = {
    "detach()": """
x = torch.ones(3, requires_grad=True)
hidden = (x * 2).detach()  # cut
loss = (hidden * hidden).sum()
loss.backward()
""",
    "a no_grad block": """
weight = torch.ones(3, 1, requires_grad=True)
with torch.no_grad():  # cut
    out = torch.ones(2, 3) @ weight
loss = F.mse_loss(out, torch.zeros(2, 1))
loss.backward()
""",
    "set_grad_enabled(False)": """
x = torch.ones(3, requires_grad=True)
with torch.set_grad_enabled(False):  # cut
    y = x.exp()
y.sum().backward()
""",
    "a cast": """
x = torch.ones(3, requires_grad=True)
for _ in range(1):
    y = x.long()  # cut
y.float().sum().backward()
""",
    "argmax, which has no derivative,": """
pick = lambda t: t.argmax()  # cut
x = torch.ones(3, requires_grad=True)
loss = pick(x).float() * 3
loss.backward()
""",
    "gt, which has no derivative,": """
logits = torch.ones(2, 2, requires_grad=True)
accuracy = (
    (logits > 0)  # cut
    .float()
    .mean()
)
accuracy.backward()
""",
    "max, which has no derivative,": """
logits = torch.ones(2, 2, requires_grad=True)
values, indices = logits.max(1)  # cut
indices.float().sum().backward()
""",
    ".data": """
x = torch.ones(3, requires_grad=True)
ys = [t.data * 2 for t in (x, x)]  # cut
torch.stack(ys).sum().backward()
""",
    "torch.tensor()": """
x = torch.ones((), requires_grad=True)
y = torch.tensor([x, x])  # cut
y.sum().backward()
""",
    "detach(), in place": """
x = torch.ones(3, requires_grad=True)
total = torch.zeros(3)
for _ in range(2):
    total += (x * 2).detach()  # cut
total.sum().backward()
""",
    "detach_()": """
y = torch.ones(3, requires_grad=True) * 2
y.detach_()  # cut
(y + 1).sum().backward()
""",
    "an inference_mode block": """
x = torch.ones(3, requires_grad=True)
with torch.inference_mode():  # cut
    y = x * 2
y.sum().backward()
""",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", CUTS)
def test_a_loss_without_history_names_what_cut_it(cut, kind):
    source, filename = CUTS[cut], KINDS[kind]
    text = error_of(source, filename)
    assert text.startswith("element 0 of tensors does not require grad and does not have a grad_fn")
    assert named(text, f"its history was cut by {cut.removesuffix(', in place')}") == (filename, line_of(source, "cut"))


@pytest.mark.parametrize(
    "way", ["y.item()", "y.tolist()", "float(y.detach().numpy())", "y.detach().numpy().sum()"], ids=str
)
def test_a_value_that_left_the_graph_is_named_as_a_guess(way):
    source = f"""
y = torch.ones(3, requires_grad=True).sum()
value = {way}  # left
loss = torch.tensor(float(value)) * 2
loss.backward()
"""
    text = error_of(source)
    assert named(text, "perhaps its value comes out of the graph through")[1] == line_of(source, "left")


def test_layers_called_in_a_no_grad_block_are_named():
    source = """
net = nn.Linear(3, 1)
with torch.no_grad():  # left
    out = net(torch.ones(2, 3))
loss = F.mse_loss(out, torch.zeros(2, 1))
loss.backward()
"""
    assert named(error_of(source), "a no_grad block")[1] == line_of(source, "left")


def test_a_loss_of_plain_tensors_gets_no_guess():
    source = """
import threading
def program():
    (torch.ones(3) * 2).sum().backward()
failures = []
threading.excepthook = lambda hook: failures.append(str(hook.exc_value))
thread = threading.Thread(target=program)
thread.start()
thread.join()
raise RuntimeError(failures[0])
"""
    assert error_of(source) == "element 0 of tensors does not require grad and does not have a grad_fn"


def test_an_unused_input_names_the_node_that_took_a_cut_tensor():
    source = """
x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
loss = (w * x.detach()).sum()  # cut
torch.autograd.grad(loss, x)
"""
    text = error_of(source)
    assert "appears to not have been used in the graph" in text
    assert named(text, "MulBackward0 takes a tensor whose history was cut by detach()")[1] == line_of(source, "cut")


def test_an_unused_input_names_variables_without_history():
    source = """
def program():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    hidden = x.detach()  # cut
    loss = (w + hidden).sum()
    torch.autograd.grad(loss, x)
program()
"""
    assert named(error_of(source), "`hidden` has no history: cut by detach()")[1] == line_of(source, "cut")


def test_an_input_that_lost_its_history_is_named():
    source = """
x = torch.ones(3, requires_grad=True)
y = x.detach()  # cut
torch.autograd.grad((x * 2).sum(), y)
"""
    text = error_of(source)
    assert text.startswith("One of the differentiated Tensors does not require grad")
    assert named(text, "cut by detach()")[1] == line_of(source, "cut")


def test_a_shape_mismatch_shows_both_operands_and_where_they_were_made():
    source = """
a = torch.ones(3, requires_grad=True) * 2  # first
b = torch.ones(4, requires_grad=True).exp()  # second
a + b
"""
    text = error_of(source)
    assert text.startswith("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0")
    assert named(text, "input: [3] torch.float32, made")[1] == line_of(source, "first")
    assert named(text, "other: [4] torch.float32, made")[1] == line_of(source, "second")


def test_a_shape_mismatch_inside_a_module_names_the_module_and_the_call():
    source = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)  # call

net = Net()
net(torch.ones(2, 3))
"""
    text = error_of(source)
    assert text.startswith("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)")
    assert "mat1: [2, 3] torch.float32" in text
    assert named(text, "in net.fc (Linear), called")[1] == line_of(source, "call")


@pytest.mark.parametrize(
    "call",
    [
        "a @ b",
        "torch.bmm(a[None], b[None])",
        "torch.cat([a, b])",
        "a.add_(b)",
        "torch.where(a > 0, a, b)",
        "F.mse_loss(a, b)",
        "F.cross_entropy(a, b[0].long())",
        "F.linear(a, b)",
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_shown(call):
    source = f"""
a = torch.ones(3, 4, requires_grad=True) * 2
b = torch.ones(5, 6, requires_grad=True) * 2
{call}
"""
    text = error_of(source)
    assert "3, 4] torch.float32, made at" in text
    assert text.count("\n") > 1


def test_a_layer_that_gets_the_wrong_shape_is_named():
    source = """
net = nn.Sequential(nn.Identity(), nn.LSTM(3, 4))
net(torch.ones(2, 2, 5))  # call
"""
    text = error_of(source)
    assert "input: [2, 2, 5] torch.float32" in text
    assert named(text, "in net.1 (LSTM), called")[1] == line_of(source, "call")


def test_an_error_of_the_users_own_is_left_alone():
    source = """
class Picky(nn.Module):
    def forward(self, x):
        raise ValueError("wrong shape")

Picky()(torch.ones(2, requires_grad=True) * 2)
"""
    assert error_of(source) == "wrong shape"


HOOKS = {
    "a hook of a tensor": """
y = torch.ones(3, requires_grad=True) * 2
y.register_hook(lambda grad: grad[:1])  # defined
y.sum().backward()
""",
    "a hook of a leaf": """
def wrong(grad):  # defined
    return 3

x = torch.ones(3, requires_grad=True)
x.register_hook(wrong)
x.sum().backward()
""",
    "a hook of a node": """
class Wrong:
    def __call__(self, inputs, outputs):  # defined
        return [None]

y = torch.ones(3, requires_grad=True) * 2
y.grad_fn.register_hook(Wrong())
y.sum().backward()
""",
}


@pytest.mark.parametrize("case", HOOKS)
def test_a_hook_that_returns_the_wrong_thing_is_shown_where_it_is_defined(case):
    source = HOOKS[case]
    assert named(error_of(source), "the hook is defined")[1] == line_of(source, "defined")


@pytest.mark.parametrize("returned", ["(grad,)", "(grad, grad, grad)", "(3, 4)", "(grad[:1], grad)"])
def test_a_function_that_returns_the_wrong_thing_is_shown_where_it_is_defined(returned):
    source = f"""
class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod  # defined
    def backward(ctx, grad):
        return {returned}

x = torch.ones(3, requires_grad=True)
Mul.apply(x, x * 2).sum().backward()
"""
    text = error_of(source)
    if returned == "(3, 4)":
        assert text.startswith("expected Variable or None (got int)")
    assert named(text, "is defined")[1] == line_of(source, "defined")


def test_a_no_grad_block_that_made_nothing_of_a_loss_is_not_blamed():
    source = """
x, w = torch.ones(3), torch.ones(3)
other = torch.ones(3, requires_grad=True)
with torch.no_grad():
    other.mul_(2)
    other * 3
loss = (x * w).sum()
loss.backward()
"""
    text = error_of(source)
    assert "no_grad" not in text
    assert text.endswith("\n  nothing it was computed from requires grad; here these do not: `x`, `w`")


@pytest.mark.parametrize("write", ["w.mul_(2)", "w.normal_()", "w.copy_(torch.zeros(3))", "w += torch.ones(3)"])
def test_a_leaf_that_was_written_in_a_no_grad_block_and_then_frozen_has_lost_no_history(write):
    source = f"""
w = torch.ones(3, requires_grad=True)
with torch.no_grad():
    {write}
w.requires_grad_(False)
(w * 2).sum().backward()
"""
    text = error_of(source)
    assert "no_grad" not in text
    assert "here these do not: `w`" in text


LAYERS = {
    "linear": "nn.Linear(4, 4)(torch.ones(2, 4))",
    "batch_norm": "nn.BatchNorm1d(4)(torch.ones(2, 4))",
    "layer_norm": "nn.LayerNorm(4)(torch.ones(2, 4))",
    "group_norm": "nn.GroupNorm(2, 4)(torch.ones(2, 4))",
    "lstm cell": "nn.LSTMCell(4, 4)(torch.ones(2, 4))[0]",
    "gru cell": "nn.GRUCell(4, 4)(torch.ones(2, 4))",
    "attention": "F.scaled_dot_product_attention(*[torch.ones(1, 2, 4, requires_grad=True)] * 3)",
    "cross_entropy": "F.cross_entropy(torch.ones(2, 4, requires_grad=True), torch.tensor([1, 2]))",
    "cosine_similarity": "F.cosine_similarity(*[torch.ones(2, 4, requires_grad=True)] * 2)",
    "outer": "torch.outer(*[torch.ones(4, requires_grad=True)] * 2)",
}


@pytest.mark.parametrize("layer", LAYERS)
def test_what_a_layer_makes_in_a_no_grad_block_remembers_the_block(layer):
    source = f"""
with torch.no_grad():  # cut
    out = {LAYERS[layer]}
for unrelated in range(2):
    with torch.no_grad():
        pass
out.sum().backward()
"""
    text = error_of(source)
    assert named(text, "its history was cut by a no_grad block")[1] == line_of(source, "cut")
