"""vmap with what torch has no rule for."""

import pytest

import pullback as torch
from pullback.autograd import forward_ad
from pullback.batching import strategies


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


def by_hand(function, *batches):
    """What a loop gives."""
    return torch.stack([function(*[batch[i] for batch in batches]) for i in range(len(batches[0]))])


@pytest.mark.parametrize("dim", [-3, -2, 2])
def test_a_dimension_that_entries_do_not_have_is_refused_as_of_one(dim):
    """Also where the batch has it: it is not part of what the program sees."""
    x = torch.ones(3, 2)
    if dim == -2:
        x = x[:, 0]
    between = dim - (dim < 0)
    for function in (lambda v: v.sum(dim), lambda v: v.cumsum(dim), lambda v: torch.stack([v, v], between)):
        with pytest.raises(IndexError) as wanted:
            function(x[0])
        with pytest.raises(IndexError) as got:
            torch.vmap(function)(x)
        assert str(got.value) == str(wanted.value)


def test_elements_are_looked_for_among_those_of_their_entry(monkeypatch):
    monkeypatch.setattr(strategies, "said", set())  # what was said once is said again
    x, among = torch.arange(6).reshape(3, 2), torch.tensor([[0, 1], [1, 4], [9, 9]])
    with pytest.warns(UserWarning, match="performance drop"):
        assert torch.equal(torch.vmap(torch.isin)(x, among), by_hand(torch.isin, x, among))
    assert torch.equal(torch.vmap(lambda v: torch.isin(v, among))(x), torch.isin(x, among))


def test_a_mask_of_fewer_dimensions_broadcasts_against_the_scores_of_an_entry():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 2, 2, 5, 4, generator=generator) for _ in range(3))
    masks = torch.randn(3, 5, 5, generator=generator)
    attend = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(torch.vmap(attend)(q, k, v, masks), by_hand(attend, q, k, v, masks))
    shared = lambda q, k, v: attend(q, k, v, masks[0])
    torch.testing.assert_close(torch.vmap(shared)(q, k, v), by_hand(shared, q, k, v))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "loss", ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy"]
)
@pytest.mark.filterwarnings("error")
def test_losses_and_their_gradients_run_on_the_whole_batch(loss, reduction):
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.rand(3, 2, 4, generator=generator) for _ in range(2))
    compute = lambda a, b: getattr(torch.nn.functional, loss)(a, b, reduction=reduction)
    slope = torch.func.grad(lambda a, b: (compute(a, b) * 2).sum())
    for function in (compute, slope):
        torch.testing.assert_close(torch.vmap(function)(x, y), by_hand(function, x, y))
    shared = lambda a: slope(a, y[0])
    torch.testing.assert_close(torch.vmap(shared)(x), by_hand(shared, x))
    curved = torch.func.grad(lambda a, b: slope(a, b).square().sum())
    torch.testing.assert_close(torch.vmap(curved)(x, y), by_hand(curved, x, y))


@pytest.mark.filterwarnings("error")
def test_unpooling_runs_on_the_whole_batch():
    x = torch.arange(3 * 2 * 4 * 4.0).reshape(3, 2, 4, 4).sin()

    def there_and_back(image):
        values, places = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
        return torch.nn.functional.max_unpool2d(values, places, 2)

    assert torch.equal(torch.vmap(there_and_back)(x), by_hand(there_and_back, x))
