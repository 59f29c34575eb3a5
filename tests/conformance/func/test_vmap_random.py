"""Random numbers inside vmap: an error, different for each entry, or the same for all, exactly as torch draws them."""

import numpy as np
import pytest
import torch as reference

import pullback

DRAWS = {
    "rand": lambda torch, x: torch.rand(3),
    "randn of sixteen and more": lambda torch, x: torch.randn((2, 4)),
    "randint": lambda torch, x: torch.randint(0, 10, (3,)),
    "randperm": lambda torch, x: torch.randperm(4),
    "normal of a size": lambda torch, x: torch.normal(1.0, 2.0, (3,)),
    "rand_like": lambda torch, x: torch.rand_like(x),
    "randn_like": lambda torch, x: torch.randn_like(x),
    "randint_like": lambda torch, x: torch.randint_like(x, 10),
    "bernoulli": lambda torch, x: torch.bernoulli(x * 0.5),
    "multinomial": lambda torch, x: torch.multinomial(x, 2),
    "poisson": lambda torch, x: torch.poisson(x * 3),
    "normal around a tensor": lambda torch, x: torch.normal(x, 1.0),
    "in place": lambda torch, x: torch.empty_like(x).uniform_(),
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.5),
    "gumbel_softmax": lambda torch, x: torch.nn.functional.gumbel_softmax(x),
}


def drawn(torch, draw, randomness, given, chunk_size=None):
    torch.manual_seed(3)
    mapped = torch.vmap(lambda x: draw(torch, given(torch, x)), randomness=randomness, chunk_size=chunk_size)
    try:
        return mapped(torch.ones(4, 3)).numpy()
    except RuntimeError as error:
        return str(error)


def same(a, b):
    return a == b if isinstance(a, str) or isinstance(b, str) else np.allclose(a, b)


@pytest.mark.parametrize("randomness", ["different", "same", "error"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_a_batch(name, randomness):
    expected, ours = (drawn(t, DRAWS[name], randomness, lambda _, x: x) for t in (reference, pullback))
    assert same(ours, expected)


@pytest.mark.parametrize("randomness", ["different", "same", "error"])
@pytest.mark.parametrize("name", [name for name in DRAWS if "rand" not in name or "like" in name])
def test_draws_that_follow_a_tensor_without_batch(name, randomness):
    expected, ours = (drawn(t, DRAWS[name], randomness, lambda t, x: t.ones(3)) for t in (reference, pullback))
    assert same(ours, expected)


@pytest.mark.parametrize("name", ["randn_like", "multinomial", "randperm"])
def test_draws_in_chunks(name):
    expected, ours = (drawn(t, DRAWS[name], "different", lambda _, x: x, 3) for t in (reference, pullback))
    assert same(ours, expected)


@pytest.mark.parametrize("outer", ["different", "same", "error"])
@pytest.mark.parametrize("inner", ["different", "same", "error"])
@pytest.mark.parametrize("name", ["rand", "randn of sixteen and more", "rand_like", "randperm"])
def test_draws_in_nested_vmaps(name, inner, outer):
    outcomes = []
    for torch in (reference, pullback):
        torch.manual_seed(3)
        once = torch.vmap(lambda x, torch=torch: DRAWS[name](torch, x), randomness=inner)
        try:
            outcomes.append(torch.vmap(once, randomness=outer)(torch.ones(2, 3, 3)).numpy())
        except RuntimeError as error:
            outcomes.append(str(error))
    assert same(outcomes[1], outcomes[0])


def test_draws_are_ordinary_again_afterwards():
    outcomes = []
    for torch in (reference, pullback):
        torch.vmap(lambda x, torch=torch: torch.poisson(x) + torch.rand(3), randomness="different")(torch.ones(2, 3))
        torch.manual_seed(3)
        outcomes.append((torch.poisson(torch.ones(3)) + torch.rand(3)).numpy())
    assert same(outcomes[1], outcomes[0])
