"""What functions make of sparse tensors: entries, order, flags, and the errors of those that refuse them."""

from __future__ import annotations

import pytest

from tests.conformance.sparse.both import agree, outcome
from tests.conformance.sparse.both import torch as reference

COMPUTED = """
u
s
torch.sparse_coo_tensor(i, v)
torch.sparse_coo_tensor(i, v, (2, 3), dtype=torch.float64)
torch.sparse_coo_tensor(i, v, (2, 3), dtype=torch.int64)
torch.sparse_coo_tensor(i, v, (2, 3), requires_grad=True)
torch.sparse_coo_tensor(i, v, (2, 3), is_coalesced=True)
torch.sparse_coo_tensor(i.int(), v, (2, 3))
torch.sparse_coo_tensor(i, torch.ones(4, 2))
torch.sparse_coo_tensor([[0, 1]], [1, 2])
torch.sparse_coo_tensor([[0]], [1.0], (2,))
torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor(size=(2, 3), dtype=torch.int64)
torch.sparse_coo_tensor(torch.zeros(2, 0), torch.ones(0, 2), (2, 3, 2))
torch.sparse_coo_tensor(torch.zeros(1, 0), torch.zeros(0))
torch.sparse_coo_tensor(i, v.bool(), (2, 3)).coalesce()
u.half().coalesce()
u.bfloat16().coalesce()
u.t().coalesce()
s.indices()
s.values()
u._indices()
u._values()
u._nnz()
h.sparse_dim()
h.dense_dim()
d.sparse_dim()
d.dense_dim()
u.to_dense()
h.to_dense()
d.to_sparse()
d.to_sparse(1)
d.to_sparse_coo()
d.to_sparse(layout=torch.sparse_csr)
torch.tensor(3.0).to_sparse()
torch.tensor(0.0).to_sparse()
d.to_dense() is d
s.to_sparse() is s
u + u
s + o
s - o
o - s
s.add(o, alpha=2)
s.int() + s
s.double() + s
s + torch.zeros(2, 3).to_sparse()
d + s
d - s
d.add(u, alpha=2)
s * o
u * o
u * u
u * s
s * d
d * s
s * torch.ones(3)
s * 2
2 * s
s * torch.tensor(2.0)
torch.tensor(2.0) * s
s.int() * 1.5
s / 2
s.int() / 2
s // 2
s.div(2, rounding_mode='floor')
s ** 2
s.pow(0.5)
-u
s.abs()
u.abs()
u.sin()
s.sqrt()
s.int().sqrt()
s.square()
s.relu()
s.sgn()
s.isnan()
s.erf()
s.expm1()
s.nan_to_num()
s.sum()
u.sum()
s.int().sum()
s.bool().sum()
s.sum(0)
s.sum(dim=1, keepdim=True)
h.sum(0)
h.sum(1)
h.sum(1, keepdim=True)
s.norm()
s.norm(1)
s.norm(float('inf'))
s.norm(3)
torch.norm(u)
s.any()
s.dist(o)
d.dist(s)
s.t()
s.T
s.mT
s.transpose(0, 1)
s.permute(1, 0)
s.unsqueeze(0)
h.unsqueeze(2)
s[0]
u[0]
s[0, 2]
u[0, 2]
s[:, 1]
s[..., 0]
s[None]
s[-1]
h[0]
h[:, 1]
h[1, 1]
list(s)
s.select(0, 1)
s.unbind()
s.index_select(0, torch.tensor([1, 0, 1]))
s.index_select(1, torch.tensor([2, 0]))
h.index_select(1, torch.tensor([2, 0]))
s.narrow_copy(1, 1, 2)
torch.cat([s, o])
torch.cat([u, o], 1)
torch.cat([h, h], 1)
torch.stack([s, o])
s.clone()
s.detach()
s.double()
s.to(torch.int64)
s.bool()
s.float() is s
s.to('cpu')
torch.zeros_like(s)
torch.zeros_like(h)
torch.zeros_like(s, dtype=torch.int64)
torch.empty_like(s)
s.new_zeros(3)
torch.zeros(2, 3, layout=torch.sparse_coo)
d.sparse_mask(s)
d.sparse_mask(u)
s.sparse_mask(o)
u.sparse_mask(s)
s.mv(torch.ones(3))
s.mm(d.T)
u @ d.T
s @ torch.ones(3)
torch.ones(2) @ s
d @ s.t()
s @ s.t()
torch.mm(s, s.t())
torch.sparse.mm(u, d.T)
torch.sparse.mm(d, s.t())
torch.sparse.mm(s, s.t())
torch.bmm(s[None], d.T[None])
torch.addmm(torch.ones(2, 2), s, d.T)
torch.sparse.addmm(torch.ones(2, 2), s, d.T, beta=2, alpha=3)
torch.smm(s, d.T)
torch.hspmm(s, d.T)
torch.sspaddmm(torch.eye(2).to_sparse(), s, d.T, beta=2, alpha=3)
F.linear(torch.ones(1, 3), s)
torch.sparse.sum(s)
torch.sparse.sum(u, 0)
torch.sparse.sum(s, [0, 1])
torch.sparse.sum(h, 1)
torch.sparse.sum(h, 0)
torch.sparse.sum(s, dtype=torch.float64)
torch.sparse.softmax(s, 1)
torch.sparse.softmax(u, 0)
torch.sparse.softmax(h, 1)
torch.sparse.softmax(h, 0)
torch.sparse.log_softmax(s, 1)
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 1]), (3, 3))
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 1]), (3, 4), layout=torch.sparse_csr)
s.numel()
s.stride()
s.is_contiguous()
s.size()
len(s)
s.is_sparse
s.is_sparse_csr
s.layout
s.storage_offset()
s.element_size()
s.type()
torch.is_tensor(s)
s.is_same_size(d)
torch.result_type(s, d)
s.clone().zero_()
s.clone().div_(2)
s.clone().add_(o)
s.clone().sub_(o)
s.clone().mul_(o)
s.clone().neg_()
s.clone().abs_()
s.clone().sqrt_()
s.clone().asinh_()
s.clone().copy_(o)
d.clone().add_(u, alpha=2)
d.clone().sub_(s)
d.clone().mul_(s)
torch.nn.Parameter(s)
"""

REFUSED = """

u.indices()
u.values()
d.indices()
d.values()
d.coalesce()
d.is_coalesced()
d.crow_indices()
d._nnz()
d._indices()
csr.coalesce()
csr.indices()
csr._indices()
csr.ccol_indices()
s.crow_indices()
torch.sparse_coo_tensor(i, v[:2])
torch.sparse_coo_tensor(i, v, (2,))
torch.sparse_coo_tensor(i[0], v)
torch.sparse_coo_tensor(i, torch.ones(4, 2), (2, 3, 3))
torch.sparse_coo_tensor(i, 5.0)
torch.sparse_coo_tensor(i)
torch.sparse_coo_tensor(i, v, (-2, 3))
torch.sparse_coo_tensor(i, v, (2, 2), check_invariants=True)
torch.sparse_coo_tensor(-i, v, (2, 3), check_invariants=True)
torch.sparse_coo_tensor(i, v, (2, 3), is_coalesced=True, check_invariants=True)
torch.sparse_coo_tensor(i, v.int(), (2, 3), requires_grad=True)
s.to_sparse(1)
d.to_sparse(3)
d.to_sparse(0)
s.to_dense(torch.float64)
s + 1
1 + s
s + d
s - d
s + h
s + torch.sparse_coo_tensor((3, 3))
d + torch.sparse_coo_tensor((3, 3))
torch.ones(1) + s
s / o
s / d
s * h
s.pow(0)
2 ** s
torch.rsub(s, d)
s % 2
s == s
s != s
s < o
s > 0
s.exp()
s.cos()
s.log()
s.sigmoid()
s.mean()
s.max()
s.prod()
s.norm(dim=0)
s.view(6)
s.reshape(6)
s.flatten()
s.expand(2, 3)
s.contiguous()
s.numpy()
s.tolist()
s.data_ptr()
s.untyped_storage()
s.nbytes
s.item()
bool(s)
float(s)
s[0:1]
s[torch.tensor([0])]
s[5]
s[0, 5]
s.transpose(0, 5)
h.transpose(0, 1)
h.t()
s.index_select(0, torch.tensor([7]))
s.sum(5)
torch.cat([s, d])
torch.cat([s, h])
torch.ones_like(s)
torch.full_like(s, 2.0)
s.new_ones(2)
s.gather(0, i)
s.cumsum(0)
s.flip(0)
s.maximum(s)
s.addcmul(s, s)
torch.triu(s)
torch.softmax(s, 0)
torch.linalg.vector_norm(s)
s.clone().pow_(2)
u.clone().sin_()
s.clone().add_(1)
s.clone().add_(d)
s.clone().fill_(1)
s.clone().copy_(d)
torch.sparse.mm(s, s)
torch.sparse.mm(s, torch.ones(4, 4))
s @ torch.ones(4)
torch.mm(s, torch.ones(3, 2).double())
h.mm(torch.ones(3, 2))
torch.sparse.softmax(s.int(), 0)
torch.sparse.softmax(s, 4)
torch.sparse.softmax(d, 0)
torch.sparse.sum(d)
torch.sparse.sum(s, 5)
csr.norm()
csr.view(6)
csr.stride()
csr.is_contiguous()
csr.numpy()
csr.index_select(0, torch.tensor([0]))
torch.sparse_csr_tensor(crow, col + 5, v[:3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([0, 2, 9]), col, v[:3], (2, 3), check_invariants=True)
torch.sparse_compressed_tensor(crow, col, v[:3], (2, 3))
csr.to_sparse(1)
bsr.to_sparse_csr()
d.to_sparse_bsr((2, 2))
torch.arange(24.0).reshape(2, 3, 4).to_sparse_csr()
"""

COMPRESSED = """
torch.sparse_csr_tensor(crow, col, v[:3])
torch.sparse_csr_tensor(crow, col, v[:3], (2, 4), dtype=torch.float64)
torch.sparse_csr_tensor(crow.int(), col.int(), v[:3], (2, 3))
torch.sparse_csr_tensor([0, 1], [0], [2.0])
torch.sparse_csc_tensor(crow, col, v[:3], (3, 2))
torch.sparse_bsr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.arange(8.0).reshape(2, 2, 2), (4, 4))
torch.sparse_bsc_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.arange(8.0).reshape(2, 2, 2))
torch.sparse_compressed_tensor(crow, col, v[:3], (2, 3), layout=torch.sparse_csr)
csr.crow_indices()
csr.col_indices()
csc.ccol_indices()
csc.row_indices()
csr.to_dense()
csc.to_dense()
bsr.to_dense()
d.to_sparse_bsc((1, 3)).to_dense()
torch.ones(2, 3, 4).to_sparse_csr().to_dense()
csr.to_sparse()
csc.to_sparse()
bsr.to_sparse()
s.to_sparse_csr()
s.to_sparse_csc()
s.to_sparse_bsr((1, 3))
csr.to_sparse_csc()
csc.to_sparse_csr()
csr.to_sparse_bsr((2, 1))
csr.to_sparse_csr() is csr
csr + csr
csc + csc
bsr + bsr
csr + s.to_sparse_csr()
csr + d
d + csr
csr * 2
2 * csr
bsr * 2
csr * csr
csr * d
d * csr
-csr
csr.abs()
csr.sin()
csr.relu()
csr @ torch.ones(3)
csr @ d.T
csc @ d.T
csr.mm(d.T)
torch.sparse.mm(csr, d.T)
d.T @ csr
torch.addmm(torch.ones(2, 2), csr, d.T)
csr.t()
csc.t()
bsr.t()
csr.sum()
csr[0]
csr[0, 1]
csr.clone()
csr.double()
csr.is_sparse
csr.is_sparse_csr
csr.layout
torch.zeros_like(csr)
torch.zeros(2, 3, layout=torch.sparse_csr)
csr.clone().zero_()
csr.clone().mul_(2)
csr.clone().add_(csr)
d.sparse_mask(csr)
"""

PRINTED = """
u
s
s.double()
s.half()
h
s.int()
torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor(i, v, (2, 3), requires_grad=True)
torch.sparse_coo_tensor(i, v.clone().requires_grad_(), (2, 3))
torch.sparse_coo_tensor(i, v.clone().requires_grad_(), (2, 3)).coalesce()
torch.eye(40).to_sparse()
torch.ones(40, 40).to_sparse()
csr
csc
bsr
csr.double()
csr.clone().requires_grad_()
torch.zeros(2, 3).to_sparse_csr()
torch.nn.Parameter(s)
"""


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


@pytest.mark.parametrize("expression", lines(COMPUTED))
def test_a_function_of_sparse_tensors_gives_what_torch_gives(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", lines(COMPRESSED))
def test_a_function_of_compressed_tensors_gives_what_torch_gives(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_what_torch_refuses_of_sparse_tensors_is_refused_in_its_words(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", lines(PRINTED))
def test_a_sparse_tensor_is_printed_as_torch_prints_it(expression: str) -> None:
    agree(f"repr({expression})")


def test_the_comparison_sees_a_difference() -> None:
    with pytest.raises(AssertionError):
        agree(lambda module, names: names["s"] if module is reference else names["u"])
    assert outcome(reference, lambda: 1 / 0)[:2] == ["raised", "ZeroDivisionError"]
