"""torch.testing.assert_close, on torch and on pullback: the same verdicts and messages."""

import pytest
import torch as peer

import pullback
import pullback.testing

CASES = [
    "torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7])",
    "torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 4.0])",
    "torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.5], [3.5, 4.0]])",
    "torch.tensor([1, 2, 3]), torch.tensor([1, 2, 5])",
    "torch.tensor([True, False]), torch.tensor([True, True])",
    "torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)",
    "torch.tensor([1.0]), torch.tensor([1.0, 2.0])",
    "torch.tensor([float('nan')]), torch.tensor([float('nan')]), equal_nan=True",
    "torch.tensor([1.0]), torch.tensor([1.1]), rtol=0.2, atol=0.0",
    "torch.tensor([1.0]), torch.tensor([1.1]), rtol=0.01, atol=0.0",
    "torch.ones(2, 3).t(), torch.ones(3, 2), check_stride=True",
    "1.0, 1.0 + 1e-9",
    "1.0, 2.0",
    "1, 2",
    "True, False",
    "None, None",
    "None, 1",
    "[torch.ones(2), 3], [torch.ones(2), 3]",
    "[torch.ones(2), 3], [torch.ones(2), 4]",
    "[1, 2], [1]",
    "{'a': 1.0}, {'a': 2.0}",
    "{'a': 1.0}, {'b': 1.0}",
    "{'a': [1.0, torch.zeros(2)]}, {'a': [1.0, torch.ones(2)]}",
    "torch.tensor([1 + 2j]), torch.tensor([1 + 2j])",
    "torch.tensor(1.0), torch.tensor(2.0)",
    "torch.ones(1), torch.ones(1), rtol=1",
]


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_and_the_message_are_torchs(case):
    results = []
    for torch in (peer, pullback):
        try:
            eval(f"torch.testing.assert_close({case})", {"torch": torch})
            results.append(None)
        except (AssertionError, ValueError) as error:
            results.append((type(error).__name__, str(error)))
    assert results[0] == results[1]


def test_a_message_of_ones_own_takes_the_place_of_the_text():
    with pytest.raises(AssertionError, match=r"^mine$"):
        pullback.testing.assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match=r"^so: Scalars"):
        pullback.testing.assert_close(1.0, 2.0, msg=lambda text: f"so: {text}")
