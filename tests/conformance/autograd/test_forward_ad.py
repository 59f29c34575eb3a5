"""Forward mode: dual levels, tangents through ops, views and in-place writes, and every check on tangents."""

import pytest

from tests.conformance.both import attempt, on_both, same


@on_both
def test_tangent_of_an_expression(torch):
    ad = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    with ad.dual_level():
        dual = ad.make_dual(x, t)
        y = (dual * dual + dual.exp()).sum()
        out = ad.unpack_dual(y)
    return out.primal, out.tangent, type(out).__name__, out._fields


@on_both
def test_tangents_end_with_their_level(torch):
    ad = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])
    with ad.dual_level():
        dual = ad.make_dual(x, t)
        y = dual * 2
        inside = ad.unpack_dual(y).tangent
    outside = attempt(lambda: ad.unpack_dual(y).tangent)
    with ad.dual_level():
        again = ad.unpack_dual(y).tangent
    return inside, outside, again


@on_both
def test_levels_do_not_nest(torch):
    ad = torch.autograd.forward_ad

    def nested():
        with ad.dual_level():
            with ad.dual_level():
                pass

    error = attempt(nested)
    return error, attempt(lambda: ad.exit_dual_level()), attempt(lambda: ad.make_dual(torch.ones(1), torch.ones(1)))


@on_both
def test_entering_and_leaving_by_hand(torch):
    ad = torch.autograd.forward_ad
    level = ad.enter_dual_level()
    dual = ad.make_dual(torch.ones(1), torch.ones(1))
    seen = ad.unpack_dual(dual * 3)
    wrong = attempt(lambda: ad.exit_dual_level(level=5))
    ad.exit_dual_level(level=level)
    return level, seen.primal, seen.tangent, wrong


@on_both
def test_checks_on_tangents(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.ones(2))
        return [
            attempt(lambda: ad.make_dual(x, torch.ones(3))),
            attempt(lambda: ad.make_dual(x, torch.ones(1, 2))),
            attempt(lambda: ad.make_dual(torch.tensor([1, 2]), torch.ones(2))),
            attempt(lambda: ad.make_dual(x, torch.tensor([1, 2]))),
            attempt(lambda: ad.make_dual(dual, torch.ones(2))),
            attempt(lambda: ad.make_dual(x, dual)),
            attempt(lambda: ad.make_dual(x, torch.ones(2, dtype=torch.float64))),
            attempt(lambda: ad.make_dual(x, 3)),
            attempt(lambda: ad.unpack_dual(3)),
        ]


@on_both
def test_dual_is_a_view_and_keeps_history(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2, requires_grad=True)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.ones(2))
        y = dual * dual
        primal, tangent = ad.unpack_dual(y)
        (g,) = torch.autograd.grad(primal.sum(), x, retain_graph=True)
        (h,) = torch.autograd.grad(tangent.sum(), x)
    return dual._is_view(), dual.requires_grad, primal.requires_grad, tangent.requires_grad, g, h


@on_both
def test_unpacking_without_tangent(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2, requires_grad=True)
    with ad.dual_level():
        primal, tangent = ad.unpack_dual(x)
        return primal is x, primal._is_view(), tangent, primal.requires_grad


@on_both
def test_views_of_duals(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 10.0], [100.0, 1000.0]]))
        outs = [dual[0], dual.t(), dual.view(-1), dual.unbind(0)[1], dual.diagonal(), dual[:, 1:], dual.sum(0)]
        return [tuple(ad.unpack_dual(o)) for o in outs]


@on_both
def test_writes_change_tangents(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        y = dual.clone()
        y.mul_(3)
        first = tuple(ad.unpack_dual(y))
        y.mul_(y)
        y.add_(torch.ones(2))
        second = tuple(ad.unpack_dual(y))
        y.zero_()
        return first, second, ad.unpack_dual(y).primal, ad.unpack_dual(y).tangent


@on_both
def test_writing_a_dual_into_plain_memory(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        a = torch.zeros(2)
        a.copy_(dual)
        b = torch.zeros(2)
        b.add_(dual)
        c = torch.zeros(2, 2)
        c[0] = dual
        return [tuple(ad.unpack_dual(o)) for o in (a, b, c, c[0], c[1])]


@on_both
def test_writing_through_views_of_duals(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        base = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0])).clone()
        view = base[:1]
        view.mul_(5)
        first = [tuple(ad.unpack_dual(o)) for o in (base, view)]
        base.mul_(2)
        return first, [tuple(ad.unpack_dual(o)) for o in (base, view)]


@on_both
def test_write_under_no_grad_still_moves_tangents(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        with torch.no_grad():
            y = dual * 2
        return tuple(ad.unpack_dual(y))


@on_both
def test_detach_drops_neither_value(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        return (
            ad.unpack_dual(dual.detach()).tangent,
            ad.unpack_dual(dual.clone()).tangent,
            ad.unpack_dual(dual.data).tangent,
        )


@on_both
def test_integer_results_have_no_tangent(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        values, indices = dual.max(0)
        return tuple(ad.unpack_dual(values)), ad.unpack_dual(indices).tangent, ad.unpack_dual(dual > 1).tangent


@on_both
def test_mixed_operands(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        plain = torch.tensor([[3.0, 4.0], [5.0, 6.0]])
        outs = [dual * plain, plain @ dual, torch.cat([dual, dual * 0]), dual / 2, 2 / dual, dual**2, -dual, dual + 1]
        return [tuple(ad.unpack_dual(o)) for o in outs]


@on_both
def test_level_as_a_decorator(torch):
    ad = torch.autograd.forward_ad

    @ad.dual_level()
    def derivative(x):
        return ad.unpack_dual(ad.make_dual(x, torch.ones_like(x)) ** 3).tangent

    return derivative(torch.tensor([2.0]))


@on_both
def test_level_ends_after_an_error(torch):
    ad = torch.autograd.forward_ad

    def fail():
        with ad.dual_level():
            raise ValueError("inside")

    error = attempt(fail)
    with ad.dual_level():
        return error, ad.unpack_dual(ad.make_dual(torch.ones(1), torch.ones(1))).tangent


@on_both
def test_complex_tangents(torch):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(torch.tensor([1 + 2j]), torch.tensor([1 - 1j]))
        return [ad.unpack_dual(o).tangent for o in (dual * dual, dual.exp(), dual.abs(), dual.conj(), dual.real)]


@on_both
def test_forward_over_reverse_and_reverse_over_forward(torch):
    ad = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.tensor([1.0, 0.0]))
        y = (dual**3).sum()
        (g,) = torch.autograd.grad(y, dual, create_graph=True)
        return tuple(ad.unpack_dual(g)), torch.autograd.grad(ad.unpack_dual(y).tangent, x)


@on_both
def test_layout_of_tangents(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2)
    same, other = torch.ones(2), torch.ones(2, 2)[:, 0]
    with ad.dual_level():
        a, b = ad.make_dual(x, same), ad.make_dual(x, other)
        kept = ad.unpack_dual(a).tangent is same
        copied = ad.unpack_dual(b).tangent
        b.mul_(2)
        return kept, copied.stride(), copied, other


@on_both
def test_primals_are_views(torch):
    ad = torch.autograd.forward_ad
    x = torch.ones(2, requires_grad=True)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.ones(2))
        y = dual * 2
        primals = [ad.unpack_dual(t).primal for t in (x, dual, y)]
        return [(p._is_view(), p._base is x, p._base is y, p.is_leaf, p.requires_grad) for p in primals]


@on_both
def test_tangents_of_gradients_without_a_graph(torch):
    ad = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.tensor([1.0, 10.0]))
        (g,) = torch.autograd.grad((dual**3).sum(), dual)
        return tuple(ad.unpack_dual(g))


@pytest.mark.parametrize("name", ["conj_physical", "conj", "neg", "positive", "real", "clone", "frac", "resolve_conj"])
@pytest.mark.parametrize("number", [1 + 2j, 1.5])
@pytest.mark.parametrize("written", [0, 1])
def test_the_tangent_of_a_result_looks_at_that_of_its_operand_only_where_torch_s_does(name, number, written):
    def program(torch):
        def function(x):
            made = getattr(torch, name)(x), x
            made[written].mul_(2)
            return made

        x, t = torch.tensor([number]), torch.tensor([number]) * 3
        return attempt(lambda: torch.func.jvp(function, (x,), (t,)))

    same(program)


@pytest.mark.parametrize("loss", ["mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"])
@pytest.mark.parametrize("moves", ["both", "input", "target"])
@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 1e30, 2.0])
def test_tangents_of_losses_are_added_where_both_move(loss, moves, number):
    def program(torch):
        function = getattr(torch.nn.functional, loss)
        a, b = torch.tensor([number, 1.0, 3.0]).double(), torch.tensor([2.0, 0.5, 3.0]).double()
        change, other = torch.tensor([0.25, 0.5, 1.0]).double(), torch.tensor([0.75, -0.5, 2.0]).double()
        if moves == "both":
            return torch.func.jvp(lambda a, b: function(a, b, reduction="none"), (a, b), (change, other))
        if moves == "input":
            return torch.func.jvp(lambda a: function(a, b, reduction="sum"), (a,), (change,))
        return torch.func.jvp(lambda b: function(a, b, reduction="sum"), (b,), (other,))

    same(program)


@pytest.mark.parametrize("call", ["pow", "float_power", "__rpow__", "prod"])
def test_tangents_of_complex_results_are_not_lazy(call):
    def program(torch):
        x = torch.tensor([1.5 + 0.5j, 2.0])
        function = (lambda x: x.prod()) if call == "prod" else (lambda x: getattr(x, call)(3))
        return [(t.is_conj(), t.is_neg()) for t in torch.func.jvp(function, (x,), (x,))]

    same(program)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8"])
@pytest.mark.parametrize("of", ["float64", "float32", "complex128"])
def test_powers_of_integers_move_in_the_precision_of_the_exponent(of, dtype):
    def program(torch):
        base = torch.tensor([2, 3, 5, 7]).to(getattr(torch, dtype))
        x = torch.tensor([1.3, 0.7, -1.7, 2.9], dtype=torch.float64).to(getattr(torch, of))
        _, pushed = torch.func.jvp(lambda x: base**x, (x,), (torch.ones_like(x),))
        leaf = x.clone().requires_grad_()
        (pulled,) = torch.autograd.grad((base**leaf).sum(), leaf)
        (twice,) = torch.autograd.grad((base**leaf).abs().sum(), leaf, create_graph=True)
        exact = torch.log(base.double()) * base.double() ** x
        tolerance = 1e-5 if of == "float32" else 1e-12
        return [bool(((t - exact).abs() <= tolerance * exact.abs()).all()) for t in (pushed, pulled, twice)]

    same(program)
