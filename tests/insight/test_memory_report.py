"""memory_report adds up what backward keeps alive."""

import json
import weakref

import pullback as torch
from pullback import nn


def sizes(report):
    return {what: size for what, size, _ in report.by_op}


def test_saved_bytes_are_added_up_by_op_largest_first():
    x = torch.ones(256, requires_grad=True)
    report = torch.memory_report(x.exp().sin().sum())
    assert report.by_op == [("exp", 1024, 1), ("sin", 0, 1)], "sin keeps the result of exp, which exp keeps already"
    y = torch.ones(1000, requires_grad=True) * 2
    report = torch.memory_report((y.exp() * x.sigmoid()[0]).sum())
    assert [what for what, _, _ in report.by_op][:2] == ["exp", "sigmoid"]


def test_shared_memory_is_counted_once():
    x = torch.ones(100, requires_grad=True).clone()
    assert torch.memory_report((x * x + x[:50].sum() * x).sum()).total == 400 + 4


def test_a_view_keeps_all_of_its_memory():
    x = torch.ones(100, 10, requires_grad=True) * 1
    assert torch.memory_report(x[0].sin().sum()).total == 4000


def test_leaves_live_anyway():
    x, w = torch.ones(8, 4), torch.ones(4, 2, requires_grad=True)
    report = torch.memory_report((x @ (w * 2)).exp().sum() + (w * w).sum())
    assert report.leaf_bytes == 32
    assert "and refers to 32 B of leaves, which live anyway" in str(report)
    assert report.total - report.leaf_bytes == sum(size for _, size, _ in report.by_op)


def test_lines_are_named():
    x = torch.ones(512, requires_grad=True)
    a = x.exp()
    b = a.sigmoid()
    report = torch.memory_report(b.sum())
    assert [(what.split(": ", 1)[1], size) for what, size, _ in report.by_line] == [
        ("a = x.exp()", 2048),
        ("b = a.sigmoid()", 2048),
    ]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.thin = nn.Linear(4, 64), nn.Linear(64, 1)

    def forward(self, x):
        return self.thin(self.wide(x).tanh())


def test_modules_count_with_those_inside_them():
    net = Net()
    report = torch.memory_report(net(torch.ones(16, 4)).sum())
    assert {what: size for what, size, _ in report.by_module} == {
        "net": 16 * 64 * 4 + 16 * 4 * 4,
        "net.wide": 16 * 4 * 4,
        "net.thin": 0,
    }


def test_any_output_of_a_model_will_do():
    x = torch.ones(4, requires_grad=True)
    outputs = {"a": x.exp(), "b": [x.sigmoid(), (x.tanh(), 3)]}
    assert sizes(torch.memory_report(outputs)) == {"exp": 16, "sigmoid": 16, "tanh": 16}
    assert torch.memory_report(torch.ones(3)).total == 0


def test_a_freed_graph_says_so():
    x = torch.ones(4, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    report = torch.memory_report(loss)
    assert report.total == 0 and report.freed == 1
    assert str(report) == "backward keeps 0 B alive, in 0 saved tensors\n  1 saved tensor freed: backward has run"


def test_tensors_packed_by_hooks_are_not_unpacked():
    x = torch.ones(4, requires_grad=True)
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: "packed", unpacked.append):
        loss = x.exp().sum()
    report = torch.memory_report(loss)
    assert report.packed == 1 and not unpacked
    assert "1 saved tensor packed by hooks, of unknown size" in str(report)


def test_a_custom_function_keeps_what_it_saved_and_what_hangs_on_its_ctx():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            ctx.square = a * a
            return a**3

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 * ctx.square

    x = torch.ones(10, requires_grad=True) * 2
    report = torch.memory_report(Cube.apply(x))
    assert {item.name: item.bytes for item in report.items} == {"saved_tensors[0]": 40, "ctx.square": 40}
    assert sizes(report) == {"Cube": 80}


def test_a_write_through_a_view_keeps_what_its_op_saved():
    y = torch.ones(10, requires_grad=True) * 1
    w = torch.ones(5, requires_grad=True) * 2
    y[:5].mul_(w)
    assert "CopySlices" in sizes(torch.memory_report(y.sum()))


def test_the_report_as_plain_data_and_as_html():
    report = torch.memory_report(torch.ones(4, requires_grad=True).exp().sum())
    data = json.loads(json.dumps(report.json()))
    assert data["total_bytes"] == 16 and data["by_op"] == [{"what": "exp", "bytes": 16, "tensors": 1}]
    assert data["saved"][0]["place"]["file"] == __file__
    assert "<td style='text-align:left'>exp</td>" in report._repr_html_()


def test_a_report_keeps_nothing_alive():
    x = torch.ones(4, requires_grad=True)
    loss = x.exp().sum()
    node = weakref.ref(loss.grad_fn)
    report, told = torch.memory_report(loss), str(torch.explain(loss))
    del loss
    assert node() is None and report.total == 16 and told


def test_reporting_changes_nothing():
    x = torch.ones(4, requires_grad=True)
    loss = (x.exp() * x).sum()
    torch.memory_report(loss)
    loss.backward()
    assert x.grad is not None
