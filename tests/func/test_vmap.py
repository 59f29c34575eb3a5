"""vmap with what torch has no rule for."""

import pytest

import pullback as torch
from pullback.autograd import forward_ad


@pytest.mark.parametrize("primal", ["c", "v"])
@pytest.mark.parametrize("tangent", ["c", "v"])
def test_duals_made_inside_vmap_move(primal, tangent):
    """Also those of captured tensors, which vmap does not batch; torch has no rule for the others."""
    x, c = torch.arange(6.0).reshape(3, 2), torch.tensor([5.0, 7.0])

    def moved(v):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(*({"c": c, "v": v}[name] for name in (primal, tangent)))
            return forward_ad.unpack_dual(dual * dual).tangent

    expected = 2 * {"c": c, "v": x}[primal] * {"c": c, "v": x}[tangent]
    assert torch.equal(torch.vmap(moved)(x), expected.expand(3, 2))
