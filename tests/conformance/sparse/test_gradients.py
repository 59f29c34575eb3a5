"""Gradients through sparse tensors: of dense and sparse operands, their layouts, and the nodes that are recorded."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.conformance.sparse.both import agree, described

PROGRAMS = {
    "sparse.mm": ("u D", "torch.sparse.mm(a, b)"),
    "mm": ("u D", "torch.mm(a, b)"),
    "matmul": ("s D", "a @ b"),
    "dense @ sparse": ("d s", "a @ b.t()"),
    "sparse @ sparse": ("u o", "torch.sparse.mm(a, b.t())"),
    "mv": ("u x", "a @ b"),
    "addmm": ("E u D", "torch.addmm(a, b, c)"),
    "sparse.addmm": ("E s D", "torch.sparse.addmm(a, b, c, beta=2, alpha=3)"),
    "bmm": ("B C", "torch.bmm(a, b)"),
    "to_dense": ("u", "a.to_dense()"),
    "to_dense unmasked": ("u", "a.to_dense(masked_grad=False)"),
    "coalesce": ("u", "a.coalesce()"),
    "values": ("u", "a.coalesce().values()"),
    "made of values": ("v", "torch.sparse_coo_tensor(i, a, (2, 3))"),
    "product of values": ("v D", "torch.sparse.mm(torch.sparse_coo_tensor(i, a, (2, 3)), b)"),
    "coalesced values": ("v", "torch.sparse_coo_tensor(i, a, (2, 3)).coalesce().values()"),
    "to_sparse": ("d", "a.to_sparse()"),
    "to_sparse(1)": ("d", "a.to_sparse(1)"),
    "to_sparse_csr": ("d", "a.to_sparse_csr()"),
    "to_sparse_csc": ("d", "a.to_sparse_csc()"),
    "to_sparse_bsr": ("d", "a.to_sparse_bsr((1, 3))"),
    "coo to csr": ("s", "a.to_sparse_csr()"),
    "csr to coo": ("csr", "a.to_sparse()"),
    "sparse_mask": ("d", "a.sparse_mask(u)"),
    "mul by number": ("u", "a * 2"),
    "div by number": ("s", "a / 2"),
    "mul by scalar tensor": ("s two", "a * b"),
    "neg": ("u", "-a"),
    "sum of two": ("u o", "a + b"),
    "difference": ("s o", "a - b"),
    "product of two": ("s o", "a * b"),
    "product with dense": ("s d", "a * b"),
    "dense plus sparse": ("d u", "a + b"),
    "abs": ("u", "a.abs()"),
    "relu": ("u", "a.relu()"),
    "pow": ("s", "a ** 2"),
    "sin": ("s", "a.sin()"),
    "sqrt": ("s", "a.sqrt()"),
    "sum": ("u", "a.sum()"),
    "sparse.sum": ("u", "torch.sparse.sum(a)"),
    "sparse.sum along": ("u", "torch.sparse.sum(a, 0)"),
    "sparse.sum along dense": ("h", "torch.sparse.sum(a, 1)"),
    "sparse.softmax": ("u", "torch.sparse.softmax(a, 1)"),
    "sparse.log_softmax": ("s", "torch.sparse.log_softmax(a, 1)"),
    "transpose": ("u", "a.transpose(0, 1)"),
    "t": ("s", "a.t()"),
    "element": ("s", "a[0, 2]"),
    "row": ("s", "a[0]"),
    "double": ("u", "a.double()"),
    "clone": ("s", "a.clone()"),
    "csr @ dense": ("csr D", "a @ b"),
    "csr @ vector": ("csr x", "a @ b"),
    "sparse.mm of csr": ("csr D", "torch.sparse.mm(a, b)"),
    "csr to_dense": ("csr", "a.to_dense()"),
    "csr * number": ("csr", "a * 2"),
    "csr + csr": ("csr csr", "a + b"),
    "csr values": ("csr", "a.values()"),
    "csr of values": ("three", "torch.sparse_csr_tensor(crow, col, a, (2, 3)) @ D"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradients_are_those_of_torch(name: str) -> None:
    leaves, expression = PROGRAMS[name]

    def program(torch: Any, names: dict[str, Any]) -> Any:
        d, s = names["d"], names["s"]
        names |= {"D": d.T.contiguous(), "x": torch.ones(3), "E": torch.ones(2, 2), "two": torch.tensor(2.0)}
        names |= {"three": torch.tensor([1.0, 2.0, 3.0])}
        names |= {"B": torch.stack([s, s]), "C": torch.stack([names["D"], names["D"]])}
        made = [names[leaf].detach().clone().requires_grad_() for leaf in leaves.split()]
        out = eval(expression, names | dict(zip("abc", made, strict=False)))
        dense = out if out.layout == torch.strided else out.to_dense()
        dense.mul(torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
        return [[described(torch, one.grad, False) for one in made], described(torch, out)]

    agree(program)


def test_a_dense_gradient_and_a_sparse_one_meet_in_either_order() -> None:
    for first in (True, False):

        def program(torch: Any, names: dict[str, Any], first: bool = first) -> Any:
            weight = torch.arange(15.0).reshape(5, 3).requires_grad_()
            numbers = torch.tensor([[1, 2, 1], [0, 3, 2]])
            steps = [lambda: names["F"].embedding(numbers, weight, sparse=True).sum(), lambda: (weight * weight).sum()]
            for step in steps if first else steps[::-1]:
                step().backward()
            together = weight.detach().clone().requires_grad_()
            (names["F"].embedding(numbers, together, sparse=True).sum() + (together * together).sum()).backward()
            return [weight.grad, together.grad]

        agree(program)


def test_sparse_gradients_accumulate() -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        leaf = names["u"].clone().requires_grad_()
        for _ in range(3):
            torch.sparse.mm(leaf, torch.ones(3, 2)).sum().backward()
        return leaf.grad

    agree(program, flags=False)


def test_a_second_derivative_goes_through_a_sparse_product() -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        values = names["v"].clone().requires_grad_()
        dense = torch.ones(3, 2, requires_grad=True)
        out = torch.sparse.mm(torch.sparse_coo_tensor(names["i"], values, (2, 3)), dense)
        (slope,) = torch.autograd.grad((out**2).sum(), dense, create_graph=True)
        slope.sum().backward()
        return [values.grad, dense.grad]

    agree(program, flags=False)


def test_the_gradient_of_values_passes_gradcheck() -> None:
    torch = pullback
    indices, dense = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    values = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def product(values: Any, dense: Any) -> Any:
        return torch.sparse.mm(torch.sparse_coo_tensor(indices, values, (2, 3)), dense)

    assert torch.autograd.gradcheck(product, (values, dense))
    assert torch.autograd.gradgradcheck(product, (values, dense))


def test_grad_gives_a_sparse_gradient() -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        weight = torch.ones(5, 3, requires_grad=True)
        out = names["F"].embedding(torch.tensor([1, 2, 1]), weight, sparse=True)
        return torch.autograd.grad((out * torch.arange(9.0).reshape(3, 3)).sum(), weight)

    agree(program)
