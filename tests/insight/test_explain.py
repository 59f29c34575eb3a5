"""explain says in words how a tensor came to be and what its backward will do."""

import json
import pathlib

import pytest

import pullback as torch
from pullback import nn


def here(text):
    """How this file's line with some text is shown."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return f"test_explain.py:{lines.index('    ' + text) + 1}: {text}"


def test_the_op_its_line_and_its_operands_are_named():
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    z = (x * y).exp()
    told = torch.explain(z)
    assert (told.name, told.op, told.place.text) == ("z", "exp", "z = (x * y).exp()")
    assert told.operands == ["result of mul float32 [3]"]
    assert str(told).splitlines()[:3] == [
        "z: float32 [3], made by exp (ExpBackward0)",
        f"  at         test_explain.py:{told.place.line}: z = (x * y).exp()",
        "  operand 0  result of mul float32 [3]",
    ]


def test_leaves_are_called_what_the_program_calls_them():
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    assert torch.explain(x * y).operands == ["x, leaf float32 [3]", "y, leaf float32 [3]"]
    weights = [torch.ones(2, requires_grad=True)]
    table = {"scale": torch.ones(2, requires_grad=True)}
    names = [leaf.name for leaf in torch.explain(weights[0] * table["scale"]).leaves]
    assert names == ["weights[0]", "table['scale']"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_parameters_are_called_by_the_name_of_their_module():
    net = Net()
    told = torch.explain(net(torch.ones(2, 4)).sum())
    assert [leaf.name for leaf in told.leaves] == [
        "net.second.bias", "net.second.weight", "net.first.bias", "net.first.weight",
    ]  # fmt: skip
    assert torch.explain(net(torch.ones(2, 4)), names=net).leaves[0].name == "second.bias"
    assert torch.explain(net(torch.ones(2, 4))).place.module == "net.second (Linear)"


def test_a_leaf_used_twice_gets_a_sum():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    (leaf,) = torch.explain(x * x).leaves
    assert leaf.edges == 2
    assert "  x  float32 [2]  sum of 2 gradients; added to the .grad it has" in str(torch.explain(x * x))


def test_tensors_without_history_say_what_they_are():
    x = torch.ones(2, requires_grad=True)
    assert str(torch.explain(x)) == "x: float32 [2], a leaf that collects gradients in .grad; it has none yet"
    plain = torch.ones(2)
    assert "no history and requires_grad=False" in str(torch.explain(plain))
    cut = (x * 2).detach()
    assert str(torch.explain(cut)).endswith("no history: cut off by detach() at " + here("cut = (x * 2).detach()"))
    with torch.inference_mode():
        made = torch.ones(2)
    assert "made in inference mode" in str(torch.explain(made))


def test_what_is_kept_alive_is_counted():
    x = torch.ones(256, requires_grad=True)
    told = torch.explain(x.exp().sum())
    assert told.memory.total == 1024
    assert "kept alive for backward: 1.0 KiB" in str(told)


def test_hooks_and_retained_gradients_are_listed():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    h.retain_grad()

    def halve(grad):
        return grad / 2

    h.register_hook(halve)
    x.register_post_accumulate_grad_hook(lambda t: None)
    h.grad_fn.register_prehook(halve)
    told = torch.explain(h.sum())
    line = halve.__code__.co_firstlineno
    assert told.retained == ["h"]
    assert told.hooks == [
        f"halve (test_explain.py:{line}) on h",
        f"halve (test_explain.py:{line}) before MulBackward0",
        f"<lambda> (test_explain.py:{line + 4}) after x has its gradient",
    ]


def test_saved_tensors_that_were_written_over_are_named():
    x = torch.ones(2, requires_grad=True)
    h = x.exp()
    loss = (h * 2).sum()
    with torch.no_grad():
        h.zero_()
    told = torch.explain(loss)
    ((node, saved),) = told.stale
    assert (node.name(), saved.name, saved.version, saved.now) == ("ExpBackward0", "result", 0, 1)
    assert "backward will fail: written over since they were saved" in str(told)
    assert saved.written_at.text == "h.zero_()"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_graph_that_was_used_says_so():
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sum()
    assert not torch.explain(loss).freed
    loss.backward()
    assert torch.explain(loss).freed
    assert "backward has run already" in str(torch.explain(loss))
    assert str(torch.explain(loss)).endswith(": loss.backward()")


def test_the_story_is_that_of_the_moment_it_was_asked_for():
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sum()
    told = torch.explain(loss)
    text = str(told)
    loss.backward()
    assert str(told) == text


def test_long_histories_are_cut_short():
    x = torch.ones(2, requires_grad=True)
    for _ in range(100):
        x = x * 2
    told = torch.explain(x)
    assert len(told.nodes) == 100 and "  and 88 more" in str(told)


def test_the_explanation_as_plain_data_and_as_html():
    x = torch.ones(2, requires_grad=True)
    told = torch.explain((x * x).sum())
    data = json.loads(json.dumps(told.json()))
    assert (data["op"], data["ops"], data["leaves"][0]["name"]) == ("sum", 2, "x")
    assert data["place"]["line"] == told.place.line
    assert told._repr_html_().startswith("<p><b>this tensor: float32 [], made by sum")


def test_other_things_than_tensors_are_refused():
    with pytest.raises(TypeError, match="explain expects a Tensor, but got float"):
        torch.explain(1.0)
