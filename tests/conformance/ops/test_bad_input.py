"""Calls that cannot be: both libraries refuse them with the same words, and every tensor is left as it was."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.conformance.both import attempt, evaluated, same

INDEXING = """
x[5]
x[-4]
x[0, 7]
x[1.5]
x['a']
x[0, 0, 0]
x[:, 5]
x[i + 9]
x[i - 9]
x[torch.tensor([True, False])]
x[torch.tensor([0.5])]
x[i, j]
x[torch.tensor([[0, 1], [1, 9]])]
x[::-1]
x[::0]
s[0]
s[:]
x[object()]
x[(0, 1), (0, 9)]
x[..., 4]
x[None, 9]
x[..., ..., 0]
x[None, None, 9]
x[0, None, 9]
x[:, None, 9]
x[0:2:-1]
x[::1.5]
"""
ASSIGNMENT = """
x.__setitem__(5, 1.0)
x.__setitem__((0, 9), 1.0)
x.__setitem__(0, torch.ones(2))
x.__setitem__(slice(None), torch.ones(4))
x.__setitem__(i, torch.ones(7, 4))
x.__setitem__(i + 9, 1.0)
x.__setitem__(x > 0.5, torch.ones(2))
x.__setitem__(torch.tensor([True, False]), 1.0)
x.__setitem__(0, 'a')
x.__setitem__(1.5, 0.0)
n.__setitem__(0, torch.ones(9))
s.__setitem__(0, 1.0)
x.__setitem__(slice(None, None, -1), 1.0)
"""
GATHER = """
x.gather(0, i)
x.gather(5, i[:, None])
x.gather(0, torch.tensor([[7, 0]]))
x.gather(0, torch.tensor([[-1, 0]]))
x.gather(0, torch.tensor([[0.0]]))
x.gather(1, torch.zeros(4, 1, dtype=torch.long))
x.index_select(0, i + 9)
x.index_select(0, torch.tensor([[0]]))
x.index_select(0, torch.tensor([0.0]))
x.index_select(7, i)
x.take(torch.tensor([99]))
x.take(torch.tensor([0.5]))
torch.take_along_dim(x, i, 0)
torch.take_along_dim(x, torch.tensor([[0.0]]), 0)
x.masked_select(i)
x.masked_select(torch.tensor([True, False]))
x.select(0, 9)
x.select(3, 0)
s.select(0, 0)
x.narrow(0, 1, 9)
x.narrow(0, -9, 1)
x.narrow(0, 0, -1)
x.diagonal(0, 0, 0)
x.unfold(0, 9, 1)
x.unfold(0, 1, 0)
x.unbind(4)
s.unbind()
x.split(-1)
x.split([1, 1])
x.split(0)
x.chunk(0)
torch.tensor_split(x, 0)
x.repeat_interleave(-1)
x.repeat_interleave(torch.tensor([1, 2]), 0)
"""
SCATTER = """
x.scatter_(0, i, 1.0)
x.scatter_(0, torch.tensor([[7]]), 1.0)
x.scatter_(0, torch.tensor([[-1]]), 1.0)
x.scatter_(0, torch.tensor([[0, 1]]), torch.ones(1, 1))
x.scatter_(0, torch.tensor([[0.0]]), 1.0)
x.scatter_(9, torch.tensor([[0]]), 1.0)
x.scatter_(0, torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.double))
x.scatter_(0, torch.tensor([[0]]), 1.0, reduce='max')
x.scatter_add_(0, torch.tensor([[7]]), torch.ones(1, 1))
x.scatter_add_(0, torch.tensor([[0, 1]]), torch.ones(1, 1))
x.scatter_add_(1, torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.long))
x.scatter_reduce_(0, torch.tensor([[7]]), torch.ones(1, 1), 'sum')
x.scatter_reduce_(0, torch.tensor([[0]]), torch.ones(1, 1), 'median')
x.index_add_(0, i + 9, torch.ones(2, 4))
x.index_add_(0, i, torch.ones(3, 4))
x.index_add_(0, i, torch.ones(2, 3))
x.index_add_(0, i, torch.ones(2, 4, dtype=torch.double))
x.index_add_(0, torch.tensor([[0, 1]]), torch.ones(2, 4))
x.index_add_(0, torch.tensor([0.0, 1.0]), torch.ones(2, 4))
x[0].index_add_(0, i + 9, torch.ones(2))
x.set_(3)
x.index_copy_(0, i + 9, torch.ones(2, 4))
x.index_copy_(0, i, torch.ones(3, 4))
x.index_copy_(0, i, torch.ones(2, 4, dtype=torch.double))
x.index_copy_(0, torch.tensor([0.0, 1.0]), torch.ones(2, 4))
x.index_fill_(0, i + 9, 1.0)
x.index_fill_(0, torch.tensor([[0]]), 1.0)
x.index_fill_(0, i, torch.ones(2))
x.index_fill_(0, i, 1j)
x.index_put_((i + 9,), torch.ones(2, 4))
x.index_put_((i,), torch.ones(3))
x.index_put_((i, i, i), torch.ones(2))
x.index_put_((i,), torch.ones(2, 4, dtype=torch.double))
x.put_(torch.tensor([99]), torch.ones(1))
x.put_(torch.tensor([0, 1]), torch.ones(1))
x.put_(torch.tensor([0]), torch.ones(1, dtype=torch.double))
x.masked_fill_(i, 1.0)
x.masked_fill_(x > 0, torch.ones(2))
x.masked_fill_(torch.tensor([True, False]), 1.0)
n.masked_fill_(n > 0, 1j)
x.masked_scatter_(x > 0, torch.ones(20, dtype=torch.double))
x.masked_scatter_(i, torch.ones(20))
x.copy_(torch.ones(5))
x.fill_(torch.ones(2))
x.fill_('a')
x.select_scatter(torch.ones(3), 0, 0)
x.slice_scatter(torch.ones(3, 3), 0, 0, 1)
x.diagonal_scatter(torch.ones(9))
"""
SHAPES = """
x.view(5)
x.view(-1, -1)
x.view(-2, 6)
x.view(0, -1)
x.t().view(12)
x.t().view(-1)
x.view('a')
x.view()
x.reshape(5)
x.reshape(-1, 7)
x.reshape(-1, -1)
x.expand(2, 4)
x.expand(4)
x.expand(-1, 2, 3, 4)
x.unsqueeze(5)
x.squeeze(7)
x.transpose(0, 5)
x.permute(0)
x.permute(0, 0)
x.permute(0, 9)
torch.ones(2, 2, 2).t()
x.flatten(1, 0)
x.flatten(0, 9)
x.unflatten(0, (2, 2))
x.unflatten(0, (-1, -1))
x.movedim(0, 9)
x.swapaxes(0, 9)
x.flip(9)
x.flip(0, 0)
x.roll(1, 9)
x.roll((1, 2), 0)
x.rot90(1, (0, 0))
x.repeat(2)
x.tile(())
x.as_strided((2, 2), (1,))
x.as_strided((20, 20), (20, 1))
x.as_strided((2, 2), (-1, 1))
x.as_strided((2, 2), (2, 1), -1)
x.as_strided((2, 2), (2, 1), 99)
x.as_strided((-2, 2), (2, 1))
x.view(torch.complex64, 3)
x[:, :3].view(torch.float64)
torch.ones(3).view(torch.float64)
s.view(torch.int8)
torch.cat([x, torch.ones(2, 2)])
torch.cat([x, s])
torch.cat([])
torch.cat([x, x], 5)
torch.cat(x)
torch.cat([x, 3])
torch.stack([x, n])
torch.stack([])
torch.broadcast_to(x, (2, 2))
torch.broadcast_tensors(x, torch.ones(3))
x.diag_embed(0, 1, 1)
"""
ARITHMETIC = """
x + torch.ones(5)
x.add_(torch.ones(5))
x.add_(torch.ones(2, 3, 4))
n.add_(1.5)
n.mul_(x)
n.div_(2)
x.mul_(1j)
x.copy_('a')
x @ x
x.mm(torch.ones(3, 3))
x.addmm_(x, x)
torch.where(x, x, x)
torch.clamp(x)
x.clamp_(torch.ones(9))
torch.add(x, x, alpha='a')
torch.add(x, None)
torch.sub(x > 0, x > 1)
-(x > 0)
torch.bitwise_and(x, x)
x.lerp_(torch.ones(3, 4, dtype=torch.double), 0.5)
torch.dot(x, x)
torch.exp(x, out=n)
torch.add(x, x, out=n)
torch.sum(x, 5)
torch.sum(x, (0, 0))
x.max(5)
x.mean(dtype=torch.long)
n.mean()
torch.cumsum(x, 3)
torch.softmax(x, 7)
x.sort(9)
x.topk(9)
x.topk(-1)
x.kthvalue(9)
torch.sum('a')
torch.exp(3)
torch.zeros(-1)
torch.ones(2, 'a')
torch.full((2,), 'a')
torch.arange(0, 1, 0)
torch.arange(5, 1)
torch.linspace(0, 1, -1)
torch.eye(-1)
torch.tensor([[1], [1, 2]])
torch.tensor('a')
torch.tensor([1, 'a'])
"""
CALLS = [
    line for group in (INDEXING, ASSIGNMENT, GATHER, SCATTER, SHAPES, ARITHMETIC) for line in group.split("\n") if line
]


def attempted(torch: ModuleType, call: str, requires_grad: bool = False) -> Any:
    """What a call raises, and what all tensors look like afterwards."""
    names = {
        "torch": torch,
        "x": (torch.arange(12.0).reshape(3, 4) / 12).requires_grad_(requires_grad),
        "n": torch.tensor([1, 2, 3]),
        "s": torch.tensor(2.5),
        "i": torch.tensor([0, 2]),
        "j": torch.tensor([0, 1, 2]),
    }
    found = attempt(lambda: evaluated(call, names))
    after = [[names[name], names[name]._version, list(names[name].stride())] for name in ("x", "n", "s", "i", "j")]
    return [found, after]


@pytest.mark.parametrize("call", CALLS)
def test_a_bad_call_raises_torchs_words_and_changes_nothing(call: str) -> None:
    same(lambda torch: attempted(torch, call))


def test_a_source_that_is_too_short_writes_nothing() -> None:
    """Torch writes what there is before it refuses; here the tensor stays as it was."""
    import pullback

    x = pullback.zeros(3)
    with pytest.raises(RuntimeError):
        x.masked_scatter_(pullback.tensor([True, True, True]), pullback.ones(2))
    assert x.tolist() == [0.0, 0.0, 0.0] and x._version == 0
