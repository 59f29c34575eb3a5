"""why_no_grad finds the one reason a gradient is missing, and its line."""

import json

import pytest

import pullback as torch
from pullback import nn


@pytest.fixture
def w():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def other():
    return torch.ones(2, requires_grad=True)


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, grad):
        return None, grad


def source(reason):
    return reason.place.text.split("  #")[0]


# ------------------------------------------------------------------ the function is followed


def cut_by_detach(w):
    h = (w * 2).exp()
    h = h.detach()  # cut
    return (h * other()).sum()


def cut_by_data(w):
    h = w.data * 2  # cut
    return (h * other()).sum()


def cut_by_no_grad(w):
    with torch.no_grad():
        h = w * 2  # cut
    return (h * other()).sum()


def cut_by_a_view_in_no_grad(w):
    h = w * 2
    with torch.no_grad():
        v = h[:1]  # cut
    return (v * other()).sum()


def cut_by_an_integer_cast(w):
    h = (w * 3).long()  # cut
    return (h * other()).sum()


def cut_by_argmax(w):
    best = w.argmax()  # cut
    return other()[best]


def cut_by_a_comparison(w):
    mask = w > 1.5  # cut
    return (other() * mask).sum()


def cut_by_item(w):
    number = w.sum().item()  # cut
    return (other() * number).sum()


def cut_by_float(w):
    number = w.sum().tolist()  # cut
    return (other() * number).sum()


def cut_by_numpy(w):
    array = w.detach().numpy() + 1  # cut
    return (torch.from_numpy(array) * other()).sum()


def cut_by_set_grad_enabled(w):
    torch.set_grad_enabled(False)
    h = w + 1  # cut
    torch.set_grad_enabled(True)
    return (h * other()).sum()


@pytest.mark.parametrize(
    "program, code",
    [
        (cut_by_detach, "detach"),
        (cut_by_data, "detach"),
        (cut_by_no_grad, "no_grad"),
        (cut_by_a_view_in_no_grad, "no_grad"),
        (cut_by_set_grad_enabled, "no_grad"),
        (cut_by_an_integer_cast, "integer"),
        (cut_by_argmax, "integer"),
        (cut_by_a_comparison, "integer"),
        (cut_by_item, "number"),
        (cut_by_float, "number"),
        (cut_by_numpy, "detach"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_cut_is_found_at_its_line(w, program, code):
    reason = torch.why_no_grad(w, lambda: program(w))
    assert reason.code == code
    assert reason.place.text.endswith("# cut")
    assert reason.place.function == program.__name__


def test_a_cut_inside_a_module_names_the_module():
    class Frozen(nn.Module):
        def forward(self, x):
            return x.detach()

    net = nn.Sequential(nn.Linear(2, 2), Frozen(), nn.Linear(2, 1))
    reason = torch.why_no_grad(net[0].weight, lambda: net(torch.ones(1, 2)).sum())
    assert reason.code == "detach" and source(reason) == "return x.detach()"
    assert reason.place.module == "net.1 (Frozen)"
    assert str(reason).startswith("the loss does not lead back to ")


def test_a_custom_function_is_not_taken_for_a_cut(w):
    reason = torch.why_no_grad(w, lambda: (NoGradient.apply(other(), w).detach() * other()).sum())
    assert reason.code == "detach"


def test_the_class_is_as_before_once_the_function_has_been_followed(w):
    before = {name: vars(torch.Tensor).get(name) for name in ("detach", "data", "item", "tolist", "numpy", "__float__")}
    with pytest.raises(ZeroDivisionError):
        torch.why_no_grad(w, lambda: 1 / 0)
    torch.why_no_grad(w, lambda: cut_by_item(w))
    assert {name: vars(torch.Tensor).get(name) for name in before} == before


def test_a_tensor_that_was_not_used(w):
    assert "nothing was computed from it" in torch.why_no_grad(w, lambda: other().sum()).text

    def dropped():
        w.exp()
        return other().sum()

    reason = torch.why_no_grad(w, dropped)
    assert reason.code == "unused" and "what was computed from it did not enter the loss" in reason.text


# ------------------------------------------------------------------ only the loss is known


def test_an_alias_without_history_is_recognised_by_its_memory(w):
    loss = (w.detach() * other()).sum()
    reason = torch.why_no_grad(w, loss)
    assert reason.code == "detach" and source(reason) == "loss = (w.detach() * other()).sum()"


def test_a_graph_that_leads_elsewhere(w):
    reason = torch.why_no_grad(w, other().sum())
    assert reason.code == "unused" and "give why_no_grad a function" in reason.advice


def test_a_loss_without_a_graph(w):
    assert torch.why_no_grad(w, torch.ones(2).sum()).code == "no_graph"
    with torch.no_grad():  # here
        loss = w.sum()
    reason = torch.why_no_grad(w, loss)
    assert reason.code == "no_grad" and source(reason) == "with torch.no_grad():"
    assert "the loss has no graph: cut off by a no_grad block" in reason.text


def test_a_tensor_that_lost_its_history(w):
    h = (w * 2).detach()
    reason = torch.why_no_grad(h, (h * other()).sum())
    assert reason.code == "detach" and source(reason) == "h = (w * 2).detach()"
    best = w.argmax().float()
    assert torch.why_no_grad(best, other().sum()).code == "integer"


def test_an_operand_that_lost_its_history_is_suspected(w):
    h = (w * 2).detach().exp()
    reason = torch.why_no_grad(w, (h * other()).sum())
    assert reason.code == "detach" and source(reason) == "h = (w * 2).detach().exp()"
    assert reason.text.startswith(
        "the loss does not lead to w; mul was given a tensor without history: cut off by detach"
    )


def test_a_computed_tensor_does_not_keep_its_gradient(w):
    h = w * 2
    loss = h.exp().sum()
    reason = torch.why_no_grad(h, loss)
    assert reason.code == "not_retained" and source(reason) == "h = w * 2"
    assert str(reason).endswith("h.retain_grad() before backward")
    loss.backward()
    h.retain_grad()
    assert torch.why_no_grad(h, loss).code == "not_retained"


def test_backward_has_not_run_yet(w):
    assert torch.why_no_grad(w, w.exp().sum()).code == "not_called"
    assert torch.why_no_grad(w).code == "not_called"


def test_the_gradient_was_set_to_none(w):
    loss = w.exp().sum()
    loss.backward()
    assert torch.why_no_grad(w, loss).code == torch.why_no_grad(w).code == "has_grad"
    torch.optim.SGD([w], 0.1).zero_grad()
    reason = torch.why_no_grad(w, loss)
    assert reason.code == "cleared" and "w.grad is None since" in reason.text
    assert source(reason) == "loss.backward()"


def test_a_function_that_returns_none(w):
    loss = NoGradient.apply(w, other()).sum()
    reason = torch.why_no_grad(w, loss)
    assert reason.code == "none" and "backward of NoGradient returned None" in reason.text
    assert source(reason) == "loss = NoGradient.apply(w, other()).sum()"


def test_a_gradient_that_is_zero_everywhere(w):
    h = (-w).relu()
    reason = torch.why_no_grad(w, (h * 3).sum())
    assert reason.code == "zero" and source(reason) == "h = (-w).relu()"
    assert "ends at ReluBackward0" in reason.text


def test_a_tensor_that_does_not_require_gradients():
    x, n = torch.ones(2), torch.ones(2, dtype=torch.int64)
    assert torch.why_no_grad(x, other().sum()).code == "requires_grad"
    assert torch.why_no_grad(n, other().sum()).code == "integer"


def test_requires_grad_was_switched_off_after_use(w):
    loss = w.exp().sum()
    w.requires_grad_(False)
    assert torch.why_no_grad(w, loss).code == "switched_off"


def test_a_backward_that_fails(w):
    h = w.exp()
    loss = h.sum()
    with torch.no_grad():
        h.zero_()
    reason = torch.why_no_grad(w, loss)
    assert reason.code == "fails" and "modified by an inplace operation" in reason.text
    assert source(reason) == "h.zero_()"


def test_looking_changes_nothing(w):
    seen = []
    h = w.exp()
    h.register_hook(seen.append)
    loss = (h * h).sum()
    torch.why_no_grad(w, loss)
    assert not seen and w.grad is None
    loss.backward()
    assert len(seen) == 1 and w.grad is not None


def test_the_reason_as_plain_data(w):
    reason = torch.why_no_grad(w, lambda: cut_by_detach(w))
    data = json.loads(json.dumps(reason.json()))
    assert data["code"] == "detach" and data["place"]["file"] == __file__


def test_wrong_arguments_are_refused(w):
    with pytest.raises(TypeError, match="why_no_grad expects a Tensor"):
        torch.why_no_grad("w", w.sum())
    with pytest.raises(TypeError, match="loss must be a Tensor or a function"):
        torch.why_no_grad(w, 3.0)
    with pytest.raises(TypeError, match="the function must return the loss"):
        torch.why_no_grad(w, lambda: None)
