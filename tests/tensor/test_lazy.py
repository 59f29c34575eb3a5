"""Lazy conjugates: views that remember a sign, and of which plain tensors know nothing."""

import pullback as torch
from pullback._lazy import LazyTensor


def test_a_conjugate_shares_memory_and_writes_through():
    x = torch.tensor([1 + 2j, 3 - 4j])
    c = x.conj()
    c[0] = 5j
    assert x.tolist() == [-5j, 3 - 4j] and c.tolist() == [5j, 3 + 4j]
    assert c.data_ptr() == x.data_ptr() and c._base is x and c._version == x._version == 1


def test_a_write_behind_its_back_shows_in_a_conjugate():
    x = torch.tensor([1 + 2j])
    c = x.conj()
    x.numpy()[0] = 7j
    assert c.tolist() == [-7j]


def test_results_of_lazy_tensors_are_plain():
    c = torch.tensor([[1 + 2j, 3j]]).conj()
    for made in (c + c, c * 2, c @ c.mT, c.clone(), c.sum(), torch.cat([c, c]), c.exp(), c.abs(), c.resolve_conj()):
        assert type(made) is torch.Tensor


def test_twice_conjugated_is_plain_again():
    x = torch.tensor([1 + 2j])
    assert type(x.conj()) is LazyTensor and type(x.conj().conj()) is torch.Tensor
    assert torch.ones(2).conj().is_conj() is False


def test_conjugates_that_are_saved_are_read_at_backward():
    x = torch.tensor([1 + 2j, 3j], requires_grad=True)
    y = torch.tensor([2 - 1j, 1j])
    (x * y.conj()).real.sum().backward()
    assert torch.equal(x.grad, y)
