"""What errors add to torch's text: which value is out of range and where, which name was meant, what is true here."""

import pytest

import pullback as torch
from pullback import nn
from pullback._runtime.messages import is_slip, like
from pullback.nn import functional as F

OUTSIDE = {
    "embedding": (
        lambda: F.embedding(torch.tensor([[0, 1], [5, 2]]), torch.ones(4, 2)),
        "input[1, 0] is 5; it may be from 0 to 3",
    ),
    "negative": (
        lambda: nn.Embedding(4, 2)(torch.tensor([1, -1])),
        "input[1] is -1; it may be from 0 to 3",
    ),
    "one index": (
        lambda: nn.Embedding(4, 2)(torch.tensor(9)),
        "input is 9; it may be from 0 to 3",
    ),
    "class": (
        lambda: F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3])),
        "target[1] is 3; it may be from 0 to 2",
    ),
    "class, others ignored": (
        lambda: F.nll_loss(torch.zeros(3, 3), torch.tensor([-100, 1, 7])),
        "target[2] is 7; it may be from 0 to 2",
    ),
    "class of a picture": (
        lambda: F.cross_entropy(torch.zeros(1, 3, 2, 2), torch.tensor([[[0, 1], [4, 2]]])),
        "target[0, 1, 0] is 4; it may be from 0 to 2",
    ),
    "margin": (
        lambda: F.multi_margin_loss(torch.zeros(2, 3), torch.tensor([0, 3])),
        "target[1] is 3; it may be from 0 to 2",
    ),
    "one_hot": (
        lambda: F.one_hot(torch.tensor([[0, 1], [2, 5]]), 3),
        "tensor[1, 1] is 5; it may be from 0 to 2",
    ),
    "one_hot of a negative class": (
        lambda: F.one_hot(torch.tensor([0, -1]), 3),
        "tensor[1] is -1; it may be from 0 to 2",
    ),
    "subscript": (
        lambda: torch.ones(3)[torch.tensor([0, -4])],
        "index[1] is -4; it may be from -3 to 2",
    ),
    "two subscripts": (
        lambda: torch.ones(3, 3)[torch.tensor([0, 1]), torch.tensor([0, 3])],
        "indices[1][1] is 3; it may be from -3 to 2",
    ),
    "index_select": (
        lambda: torch.ones(3).index_select(0, torch.tensor([2, 3])),
        "index[1] is 3; it may be from 0 to 2",
    ),
    "index_select of columns": (
        lambda: torch.ones(3, 3).index_select(1, torch.tensor([2, 3])),
        "index[1] is 3; it may be from 0 to 2",
    ),
    "gather": (
        lambda: torch.ones(2, 3).gather(1, torch.tensor([[0, 1], [2, 3]])),
        "index[1, 1] is 3; it may be from 0 to 2",
    ),
    "take": (
        lambda: torch.ones(2, 3).take(torch.tensor([5, 6])),
        "index[1] is 6; it may be from -6 to 5",
    ),
    "index_add_": (
        lambda: torch.ones(3).index_add_(0, torch.tensor([1, 3]), torch.ones(2)),
        "index[1] is 3; it may be from 0 to 2",
    ),
    "index_fill_": (
        lambda: torch.ones(3).index_fill_(0, torch.tensor([1, 3]), 0),
        "index[1] is 3; it may be from -3 to 2",
    ),
    "index_copy_": (
        lambda: torch.ones(3).index_copy_(0, torch.tensor([1, 3]), torch.ones(2)),
        "index[1] is 3; it may be from 0 to 2",
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_value_out_of_range_is_named_with_its_place_and_the_limit(case):
    program, hint = OUTSIDE[case]
    with pytest.raises((IndexError, RuntimeError)) as caught:
        program()
    assert str(caught.value).splitlines()[1] == f"  {hint}"


@pytest.mark.parametrize(
    "call", [lambda: torch.ones(2).cuda(), lambda: torch.ones(2, device="cuda"), torch.cuda.synchronize]
)
def test_an_error_about_cuda_says_where_pullback_computes(call):
    with pytest.raises(AssertionError) as caught:
        call()
    first, added = str(caught.value).split("\n")
    assert first == "Torch not compiled with CUDA enabled"
    assert added.startswith("  pullback computes on the CPU")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("sigmiod", "sigmoid"), ("Relu", "relu"), ("arrange", "arange"), ("tensr", "tensor"), ("optm", "optim")],
)
def test_a_misspelt_name_of_the_module_suggests_the_one_that_was_meant(name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(torch, name)
    first, added = str(caught.value).split("\n")
    assert first == f"module 'torch' has no attribute '{name}'"
    assert repr(meant) in added


@pytest.mark.parametrize(("name", "why"), [("qint8", "quantized tensors"), ("Gradient", "TorchScript's types")])
def test_a_name_that_torch_has_is_no_slip(name, why):
    with pytest.raises(AttributeError) as caught:
        getattr(torch, name)
    first, added = str(caught.value).split("\n")
    assert first == f"module 'torch' has no attribute '{name}'"
    assert added.startswith("  torch has it and pullback has not: ") and why in added


def test_a_name_unlike_all_others_gets_no_suggestion():
    with pytest.raises(AttributeError) as caught:
        torch.frobnicate_everything
    assert str(caught.value) == "module 'torch' has no attribute 'frobnicate_everything'"
    assert like("_privat", ["_private"]) == ""


@pytest.mark.parametrize(
    ("name", "other", "slip"),
    [("ab", "ba", True), ("abc", "ac", True), ("abc", "abcd", True), ("abc", "acbd", False), ("abc", "abc", False)],
)
def test_a_slip_is_one_letter_or_two_that_changed_places(name, other, slip):
    assert is_slip(name, other) is slip
