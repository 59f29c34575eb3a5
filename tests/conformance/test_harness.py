"""The harness itself: torch agrees with torch, every kind of fault is found, samples arrive unchanged."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch

from tests.conformance import aspects, harness, wrong_peer
from tests.conformance.compare import difference, structure
from tests.conformance.known_differences import KNOWN_DIFFERENCES
from tests.conformance.library import TORCH, Conversion, Library
from tests.conformance.samples import DTYPES, ops, samples

WRONG = Library(wrong_peer)


@pytest.mark.parametrize("op", ["add", "sum", "sort", "view", "cat", "where", "nn.functional.dropout", "linalg.svd"])
def test_torch_agrees_with_itself(op):
    result = harness.run([op], peer=TORCH)[op]
    assert result.failed() == []
    assert result.tallies["value"].total > 10 and result.tallies["grad"].total > 2


@pytest.mark.parametrize("aspect", aspects.ALL)
def test_a_fault_is_found_in(aspect):
    op = wrong_peer.FAULTS[aspect]
    result = harness.run([op], [aspect], peer=WRONG)[op]
    assert result.failed() == [aspect]
    assert "raised" not in result.tallies[aspect].differences[0]


def test_a_fault_in_one_op_leaves_the_others_alone():
    assert harness.run(["div", "log"], peer=WRONG).problems({}) == []


def test_an_op_that_raises_fails_in_value():
    def raises(*args, **kwargs):
        raise NotImplementedError("later")

    peer = Library(types.SimpleNamespace(from_numpy=torch.from_numpy, log=raises), "small")
    result = harness.run(["log"], peer=peer)["log"]
    assert result.failed() == ["value"]
    assert "raised NotImplementedError: later" in result.tallies["value"].differences[0]


def test_only_ops_the_peer_has_are_collected_and_the_others_are_missing():
    peer = Library(types.SimpleNamespace(from_numpy=torch.from_numpy, add=torch.add, special=torch.special), "small")
    assert "add" in harness.collected(peer) and "special.i1" in harness.collected(peer)
    assert "mul" not in harness.collected(peer) and "Tensor.view" in harness.missing(peer)
    assert "mul" in harness.missing(peer) and "add" not in harness.missing(peer)


def test_known_differences_are_strict():
    result = harness.run(["mul"], ["value", "shape"], peer=WRONG)["mul"]
    assert len(result.problems({})) == 1
    assert result.problems({("mul", "value"): "on purpose"}) == []
    gone = result.problems({("mul", "value"): "on purpose", ("mul", "shape"): "no longer"})
    assert len(gone) == 1 and "no longer" in gone[0]


def test_known_differences_name_existing_ops_and_aspects():
    for op, aspect in KNOWN_DIFFERENCES:
        assert op in ops() and aspect in aspects.ALL, (op, aspect)


def test_the_table_has_a_row_for_each_op_and_marks_failures():
    table = harness.run(["mul", "div"], ["value", "dtype"], peer=WRONG).table().splitlines()
    assert table[0].split() == ["op", "value", "dtype"]
    assert [row.split()[0] for row in table[1:]] == ["mul", *harness.select(["div"]), "all"]
    assert table[1].split()[1].endswith("!") and not table[2].split()[1].endswith("!")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_keep_layout_dtype_and_sharing(dtype):
    base = torch.arange(24).to(dtype).reshape(4, 6)
    given = [base, base.t(), base[1::2, ::3], base[0].expand(3, 6), base[:, :0], base[1, 1]]
    arrived = Conversion(TORCH)(given)
    for one, other in zip(given, arrived):
        assert one is not other and (one.numel() == 0 or one.data_ptr() != other.data_ptr())
        assert torch.equal(one, other) and one.dtype == other.dtype
        assert one.numel() == 0 or one.stride() == other.stride()
    arrived[0].zero_()
    assert not arrived[1].any() and base.any()


def test_samples_keep_requires_grad_identity_and_lazy_bits():
    x = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    conversion = Conversion(TORCH)
    arrived = conversion({"a": [x, x], "b": (torch.randn(2).conj(), torch.randn(2, dtype=torch.complex64).conj())})
    assert arrived["a"][0] is arrived["a"][1] and arrived["a"][0].requires_grad and len(conversion.leaves) == 1
    assert arrived["b"][1].is_conj() and not arrived["b"][0].requires_grad


def test_plain_values_become_the_peers_own():
    convert = Conversion(TORCH)
    given = (torch.float32, torch.channels_last, torch.strided, torch.device("cpu"), slice(1, None), ..., None, "mean")
    assert convert(given) == given
    assert convert(torch.Size([2, 3])) == (2, 3)


def test_structure_names_the_fields():
    assert structure(TORCH, torch.sort(torch.ones(2))) == "sort(values=Tensor, indices=Tensor)"
    assert structure(TORCH, (torch.ones(1), [1, None])) == "tuple(Tensor, list(int, NoneType))"


def test_differences_say_where():
    assert difference([np.ones(2)], [np.array([1.0, 1.1])]) == "[0] at (1,): expected 1.0, got 1.1 (1 of 2 differ)"
    assert difference(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])) is None
    assert difference(np.array([np.inf]), np.array([-np.inf])) is not None
    assert difference([1, None], [1, 0]) == "[1] expected None, got 0"
    assert difference(1, 1.0) is not None and difference(True, 1) is not None


def test_samples_are_the_same_on_every_run():
    first, second = (samples(ops()["addmm"], torch.float64) for _ in range(2))
    assert all(torch.equal(one.input, other.input) for one, other in zip(first, second, strict=True))
