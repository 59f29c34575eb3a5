"""A tensor that no memory can hold: torch's RuntimeError, and nothing is half written."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both

HUGE = 2**44


def expanded(torch):
    return torch.ones(1).expand(HUGE)


CALLS = {
    "empty": lambda torch: torch.empty(HUGE),
    "zeros": lambda torch: torch.zeros(HUGE),
    "full": lambda torch: torch.full((HUGE,), 1.0),
    "arange": lambda torch: torch.arange(HUGE),
    "eye": lambda torch: torch.eye(2**22),
    "rand": lambda torch: torch.rand(HUGE),
    "sizes that overflow": lambda torch: torch.empty(2**62),
    "new_zeros": lambda torch: torch.ones(1).new_zeros(HUGE),
    "zeros_like": lambda torch: torch.zeros_like(expanded(torch)),
    "a sum of rows and columns": lambda torch: torch.ones(2**22, 1) + torch.ones(1, 2**22),
    "a product of matrices": lambda torch: torch.ones(2**21, 1) @ torch.ones(1, 2**23),
    "an outer product": lambda torch: torch.outer(torch.ones(2**22), torch.ones(2**22)),
    "exp": lambda torch: expanded(torch).exp(),
    "clone": lambda torch: expanded(torch).clone(),
    "cat": lambda torch: torch.cat([expanded(torch), expanded(torch)]),
    "a cast": lambda torch: expanded(torch).double(),
    "a layer": lambda torch: torch.nn.Linear(2**22, 2**22),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_is_torchs(name):
    @on_both
    def program(torch):
        return attempt(lambda: CALLS[name](torch))

    program()


def test_an_output_and_a_gradient_are_as_they_were_when_there_is_no_memory_for_the_result():
    """torch gives the output its new size first; here nothing is changed."""
    out, x = pullback.ones(3), pullback.ones(2**22, 1, requires_grad=True)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        pullback.add(pullback.ones(2**22, 1), pullback.ones(1, 2**22), out=out)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        (x.expand(2**22, 2**22)).backward(pullback.ones(1, 1).expand(2**22, 2**22).T * pullback.ones(1, 2**22))
    assert out.tolist() == [1, 1, 1] and out._version == 0 and x.grad is None
