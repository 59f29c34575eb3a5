"""torch.testing.assert_close, on torch and on pullback: the same verdicts and messages."""

import pytest
import torch as peer

import pullback
import pullback.testing
from tests.conformance.both import attempt, same

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


MADE = [
    {"dtype": dtype, **more}
    for dtype in ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "int8", "uint8", "bool")
    for more in (
        {}, {"low": 0}, {"low": 0, "high": 1}, {"low": -1e30, "high": 1e300}, {"low": 3, "high": 2},
        {"high": 1, "low": 1},
        {"noncontiguous": True}, {"exclude_zero": True, "low": 0, "high": 2}, {"requires_grad": True},
        {"low": float("nan")}, {"low": 1e300, "high": 1e301},
    )
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Passing `low==high`:FutureWarning")
@pytest.mark.parametrize("settings", MADE, ids=str)
def test_random_tensors_to_try_things_on_are_torchs(settings):
    def program(torch):
        torch.manual_seed(1)
        given = dict(settings, dtype=getattr(torch, settings["dtype"]), device="cpu")
        shapes = ((2, 3), (), (0, 2))
        made = [attempt(lambda s=s: torch.testing.make_tensor(s, **given)) for s in shapes]
        return made, [m.stride() for m in made if isinstance(m, torch.Tensor)], torch.rand(2)

    same(program)


@pytest.mark.filterwarnings("ignore:`torch.testing.assert_allclose:FutureWarning")
def test_the_older_comparison_is_torchs():
    def program(torch):
        pairs = [(1.0, 1.00005), (1.0, 1.1), ([1, 2], [1, 3]), ([1.0, float("nan")],) * 2, (True, False)]
        return [attempt(lambda a=a, b=b: torch.testing.assert_allclose(a, b)) for a, b in pairs] + [
            attempt(lambda d=d: torch.testing.assert_allclose(torch.ones(2, dtype=d), torch.ones(2) * 1.0005))
            for d in (torch.float16, torch.float64, torch.bfloat16)
        ]

    same(program)
