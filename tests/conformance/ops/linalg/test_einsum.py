"""einsum: equations, lists of numbers, ellipses, diagonals; graphs, gradients and errors."""

import pytest

from tests.conformance.ops.expressions import agree

EQUATIONS = [
    "'ij,jk->ik', x(2, 3), x(3, 4)", "'ij,jk', x(2, 3), x(3, 4)", "'bij,bjk->bik', x(2, 3, 4), x(2, 4, 2)",
    "'i,i->', x(3), x(3)", "'i,j->ij', x(3), x(4)", "'ii->i', x(3, 3)", "'ii', x(3, 3)", "'iji->j', x(2, 3, 2)",
    "'ij->ji', x(2, 3)", "'ij->', x(2, 3)", "'ij->j', x(2, 3)", "'...ij,...jk->...ik', x(2, 2, 3), x(3, 2)",
    "'...i->...', x(2, 3, 4)", "'i...,i...', x(3, 2), x(3, 2)", "'bn,anm,bm->ba', x(2, 3), x(4, 3, 2), x(2, 2)",
    "'i,i,i->i', x(3), x(3), x(3)", "'ij,j,k->ik', x(2, 3), x(3), x(2)", "'ab , bc -> ac', x(2, 3), x(3, 2)",
    "'ij,kj->ik', x(2, 1), x(4, 3)", "'...,...->...', x(2, 1), x(3)", "'aB,Bc->ca', x(2, 3), x(3, 2)",
    "'i->i', x(3)", "',->', torch.tensor(2.0), torch.tensor(3.0)",
    "'ij,jk->ik', x(2, 3, dtype=c128), x(3, 2, dtype=c128)",
    "'ij,jk->ik', [x(2, 3), x(3, 4)]", "x(2, 3), [0, 1], x(3, 4), [1, 2], [0, 2]", "x(2, 3), [0, 1], x(3, 4), [1, 2]",
    "x(2, 3, 4), [..., 1], [1, ...]", "'ijkl,kl->ij', x(2, 3, 2, 2), x(2, 2)", "'...i,...i->...', x(0, 3), x(0, 3)",
]  # fmt: skip
ERRORS = [
    "'i'", "'i,j', x(3)", "'i', x(3), x(3)", "'ij', x(3)", "'...ij', x(3)", "'i1', x(3, 3)", "'i->i1', x(3)",
    "'i->ii', x(3)", "'i->j', x(3)", "'i.j', x(3, 3)", "'......', x(3)", "'i->...i..', x(3)", "'i->......', x(3)",
    "'ij,jk', x(2, 3), x(4, 2)", "'...i,...i', x(2, 3), x(3, 3)", "'ii', x(2, 3)", "'i,j', 1, 2",
    "x(3), [99]", "'i,i', x(3), x(3, grad=False).long()",
]  # fmt: skip


@pytest.mark.parametrize("arguments", EQUATIONS)
def test_an_equation_means_what_it_means_to_torch(arguments):
    agree(f"torch.einsum({arguments})")


@pytest.mark.parametrize("arguments", ERRORS)
def test_a_wrong_equation_raises_torchs_error(arguments):
    agree(f"torch.einsum({arguments})")


@pytest.mark.parametrize(
    "equation",
    [
        "is,sk->ki",
        "ijs,sk->kij",
        "is,sjk->jik",
        "is,sjk->jki",
        "bis,bsk->bki",
        "bis,bsk->kib",
        "is,sk,m->kim",
        "is,sk,m->mki",
    ],
)
def test_operands_change_places_where_torchs_do(equation):
    sizes = {"i": 2, "j": 3, "k": 4, "m": 2, "s": 3, "b": 2}
    operands = [f"x({', '.join(str(sizes[c]) for c in labels)},)" for labels in equation.partition("->")[0].split(",")]
    agree(f"torch.einsum('{equation}', {', '.join(operands)})")
