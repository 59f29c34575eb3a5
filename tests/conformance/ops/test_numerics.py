"""Integrals, distances, correlations, histograms, look-ups, segments: values, graphs, gradients, errors."""

import warnings

import pytest

from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree

T = "torch.tensor"
EXPRESSIONS = {
    "trapezoid": [
        "torch.trapezoid(x(3, 4))", "torch.trapezoid(x(3, 4), dx=2.5)", "torch.trapezoid(x(3, 4), x(4))",
        "torch.trapezoid(x(3, 4), x(3), dim=0)", "torch.trapz(x(3, 4), x(3, 4))",
        "torch.trapezoid(x(2, 3, 4), x(3, 4))",
        "torch.trapezoid(torch.arange(4))", "torch.trapezoid(x(2, 0))", "torch.trapezoid(x(3, dtype=c128))",
        "torch.trapezoid(x(3) > 0)", "torch.trapezoid(x(3), dx=1j)", "torch.trapezoid(x(3), dx=True)",
        "torch.trapezoid(x(3, 4), x(3))", "torch.trapezoid(x(3), x(3) > 0)", "torch.trapezoid(x(3), x(3), dx=2)",
        "torch.trapezoid(torch.tensor(1.0))", "torch.trapezoid(x(3), dim=3)", "torch.trapezoid(x(3), 2.0)",
        "torch.cumulative_trapezoid(x(3, 4))", "torch.cumulative_trapezoid(x(3, 4), x(4))",
        "torch.cumulative_trapezoid(x(3, 4), dim=0, dx=3)", "torch.cumulative_trapezoid(x(3) > 0)",
        "torch.cumulative_trapezoid(x(3), dx=1j)", "torch.cumulative_trapezoid(x(3, 4), x(3))",
        "torch.cumulative_trapezoid(torch.tensor(1.0))", "torch.cumulative_trapezoid(x(0))",
    ],
    "gradient": [
        "torch.gradient(x(4, 5))", "torch.gradient(x(4, 5), dim=1)", "torch.gradient(x(4, 5), spacing=2.0, dim=(0,))",
        "torch.gradient(x(4, 5), spacing=[2.0, 3])", "torch.gradient(x(4, 5), edge_order=2)",
        "torch.gradient(x(4), spacing=(torch.tensor([1.0, 2, 4, 5], dtype=f64),))",
        "torch.gradient(x(4), spacing=(torch.tensor([1.0, 2, 4, 5], dtype=f64),), edge_order=2)",
        "torch.gradient(torch.arange(4))", "torch.gradient(x(3), spacing=torch.tensor(2.0))",
        "torch.gradient(torch.tensor(2.0))", "torch.gradient(torch.ones(3, dtype=torch.uint8))",
        "torch.gradient(x(3), spacing=[1.0, 2.0])", "torch.gradient(x(3, 3), spacing=[1.0, 2.0], dim=0)",
        "torch.gradient(x(3), edge_order=3)", "torch.gradient(x(1))", "torch.gradient(x(3, 3), dim=(0, 0))",
        "torch.gradient(x(3), spacing=(x(3, 3),))", "torch.gradient(x(3), dim=3)", "torch.gradient(x(3) > 0)",
    ],
    "correlation": [
        "torch.cov(x(3, 5))", "torch.cov(x(5))", "torch.cov(x(3, 5, dtype=c128))", "x(3, 5).cov(correction=0)",
        f"torch.cov(x(2, 3), fweights={T}([1, 2, 3]))", f"torch.cov(x(2, 3), aweights={T}([0.5, 1, 2], dtype=f64))",
        f"torch.cov(x(2, 3), fweights={T}([1, 2, 3]), aweights={T}([0.5, 1, 2], dtype=f64))",
        "torch.cov(torch.arange(6).reshape(2, 3))", "torch.cov(x(1, 2, 3))", "torch.cov(x(3) > 0)",
        f"torch.cov(x(3), fweights={T}([1.0, 2, 3]))", f"torch.cov(x(3), fweights={T}([1, 2]))",
        f"torch.cov(x(3), fweights={T}([1, -2, 3]))", f"torch.cov(x(3), aweights={T}([1, 2, 3]))",
        f"torch.cov(x(3), aweights={T}([-1.0, 2, 3]))", f"torch.cov(x(3), aweights={T}([0.0, 0, 0]))",
        f"torch.cov(x(3), fweights={T}([[1, 2, 3]]))", "torch.corrcoef(x(3, 5))", "torch.corrcoef(x(3, 5, dtype=c128))",
        "torch.corrcoef(x(5))", "torch.corrcoef(x(1, 2, 3))",
    ],
    "cdist": [
        *[f"torch.cdist(x(4, 3), x(5, 3) * 2, p={p})" for p in ("0", "0.5", "1", "1.5", "2.0", "3", "float('inf')")],
        "torch.cdist(x(2, 4, 3), x(5, 3) + 1)", "torch.cdist(x(30, 3), x(5, 3) + 1)",
        "torch.cdist(x(2, 30, 3), x(5, 3) + 1)",
        "torch.cdist(x(4, 3), x(4, 3) + 1, compute_mode='use_mm_for_euclid_dist')",
        "torch.cdist(x(30, 3), x(4, 3) + 1, compute_mode='donot_use_mm_for_euclid_dist')",
        "torch.cdist(x(4, 3), x(0, 3))",
        "torch.cdist(x(4, 0), x(2, 0))", "torch.cdist(x(3), x(3))", "torch.cdist(torch.ones(2, 3).long(), x(2, 3))",
        "torch.cdist(x(2, 3), x(2, 4))", "torch.cdist(x(2, 3), x(2, 3), p=-1)",
        "torch.cdist(x(2, 3), x(2, 3), compute_mode='a')",
        "torch.cdist(x(2, 2, 3), x(3, 2, 3))", "torch.cdist(x(2, 3), torch.ones(2, 3))",
    ],
    "cross": [
        "torch.cross(x(4, 3), x(4, 3) + 1, dim=1)", "torch.cross(x(3, 3), x(3, 3).T, 0)",
        "torch.cross(x(3, 4), x(3, 1), dim=0)",
        "x(4, 3).cross(x(4, 3), dim=-1)", "torch.linalg.cross(x(4, 3), x(1, 3))",
        "torch.linalg.cross(x(3, dtype=c128), x(3, dtype=c128) + 1)", "torch.cross(x(2, 3), x(2), dim=-1)",
        "torch.cross(x(3, 3), x(3, 3), dim=5)", "torch.cross(x(3, 2), x(3, 2), dim=1)",
        "torch.linalg.cross(x(3), torch.ones(3).long())",
    ],
    "renorm": [
        "torch.renorm(x(3, 4), 2, 0, 1.0)", "torch.renorm(x(3, 4), 1, -1, 2)", "torch.renorm(x(3, 4), 3.5, 1, 1.5)",
        "torch.renorm(x(2, 3, 2), float('inf'), 1, 1.0)", "torch.renorm(x(3, 4, dtype=c128), 2, 0, 1.0)",
        "x(3, 4, grad=False).renorm_(2, 0, 1.0)", "torch.renorm(x(3), 2, 0, 1)", "torch.renorm(x(2, 2), -1, 0, 1)",
        "torch.renorm(x(2, 2), 2, 0, -1)", "torch.renorm(torch.ones(2, 2).long(), 2, 0, 1)",
        "torch.renorm(x(2, 2), 2, 3, 1)",
        "torch.renorm(x(2, 2), 2j, 0, 1)", "torch.renorm(x(2, 2), 2, 0, 1j)",
    ],
    "histogram": [
        "torch.histogram(x(10, grad=False), 4)", "torch.histogram(x(10), 4)[0].shape",
        "torch.histogram(x(10, grad=False), 4, range=(-1.0, 1.0))",
        "torch.histogram(x(10, grad=False), 3, weight=torch.ones(10, dtype=f64), density=True)",
        f"torch.histogram(x(10, grad=False), {T}([-1.0, 0, 2], dtype=f64))", "torch.histogram(torch.tensor([]), 3)",
        "torch.histogram(torch.ones(3), 3)", "torch.histogram(torch.ones(3).long(), 3)", "torch.histogram(x(3), 0)",
        "torch.histogram(x(3), torch.tensor([], dtype=f64))", "torch.histogram(x(3), x(2, 2))",
        "torch.histogram(x(3), torch.ones(3))", "torch.histogram(x(4), 4, weight=torch.ones(3, dtype=f64))",
        "torch.histogram(x(3), 4, weight=torch.ones(3))", "torch.histogram(x(3), 4, range=(4.0, 0.0))",
        "torch.histogram(x(3), 4, range=(0.0,))", "torch.histogram(torch.tensor([1.0, float('inf')]), 3)",
        "torch.histogramdd(x(8, 2, grad=False), [2, 3])", "torch.histogramdd(x(8, 2, grad=False), 2)",
        "torch.histogramdd(x(8, 2, grad=False), [2, 3], range=[0.0, 1.0, 0.0, 2.0])",
        f"torch.histogramdd(x(8, 2, grad=False), [{T}([-2.0, 0, 2], dtype=f64), {T}([-2.0, 1, 2], dtype=f64)])",
        "torch.histogramdd(x(8, 2, grad=False), [2, 3], weight=torch.ones(8, dtype=f64), density=True)",
        "torch.histogramdd(x(3), [2])", "torch.histogramdd(x(4, 2), [2])", "torch.histogramdd(x(4, 2), [0, 1])",
        "torch.histogramdd(x(4, 2), [2, 3], range=[0.0, 1.0])",
        "torch.histogramdd(x(4, 2), (torch.ones(2, dtype=f64),))",
    ],
    "lookup": [
        f"torch.isin({T}([1, 2, 3]), {T}([2, 5]))", f"torch.isin({T}([1, 2, 3]), {T}([2, 5]), invert=True)",
        f"torch.isin({T}([1, 2, 3]), 2)", f"torch.isin(2, {T}([1, 2]))", f"torch.isin({T}([1]), 1.5)",
        f"torch.isin({T}([float('nan')]), {T}([float('nan')]))", f"torch.isin({T}([True]), {T}([True]))",
        f"torch.isin({T}([1j]), {T}([1j]))", f"torch.isin({T}([1, 2], dtype=torch.uint8), 300)",
        f"torch.unravel_index({T}([1, 5]), (2, 3))", f"torch.unravel_index({T}([1, 5]), 6)",
        f"torch.unravel_index({T}([7, -1]), (2, 3))", f"torch.unravel_index({T}(1.0), (2, 3))",
        f"torch.unravel_index({T}([1]), (2, -3))", f"torch.unravel_index({T}([1]), 'a')",
        f"torch.unravel_index({T}([1]), ())",
        "torch.nonzero_static(torch.arange(6).reshape(2, 3), size=3)",
        "torch.nonzero_static(torch.ones(2), size=4, fill_value=7)",
        "torch.nonzero_static(torch.tensor(1.0), size=2)", "torch.nonzero_static(torch.ones(2), size=-1)",
        "torch.nonzero_static(torch.ones(2))", "torch.hash_tensor(torch.tensor([1.0, 2, 3])).item()",
        "torch.hash_tensor(torch.tensor([[1, 2], [3, 9]]), 1).tolist()", "torch.hash_tensor(torch.ones(2), mode=1)",
        "torch.hash_tensor(torch.ones(0))", "torch.hash_tensor(torch.tensor([-1], dtype=torch.int8)).item()",
    ],
    "matrices": [
        "torch.vander(x(3))", "torch.vander(x(3), 4)", "torch.vander(x(3), increasing=True)", "torch.vander(x(3), 0)",
        "torch.vander(x(3), 1)", "torch.vander(torch.tensor([1, 2]).int())", "torch.vander(torch.tensor([True]))",
        "torch.vander(x(2, 2))", "torch.vander(x(2), -1)", "(x(3, 4) * 1).fill_diagonal_(5.0)",
        "(x(7, 2) * 1).fill_diagonal_(5.0, wrap=True)", "(x(3, 3, 3) * 1).fill_diagonal_(5.0)",
        "x(3).fill_diagonal_(1)",
        "torch.ones(2, 3, 3).fill_diagonal_(1)", "x(2, 3).sum_to_size(1, 3)", "x(2, 3).sum_to_size(3)",
        "x(2, 3).sum_to_size(())", "x(2, 3).sum_to_size(2, 3)", "x(2, 3).sum_to_size((2, 1))", "x(3).sum_to_size(2)",
        "x(3).sum_to_size(1, 3)",
    ],
    "segments": [
        *[f"torch.segment_reduce(x(5, 2), '{how}', lengths={T}([2, 0, 3]))" for how in ("sum", "mean", "max", "min",
        "prod")],
        f"torch.segment_reduce(x(5), 'mean', lengths={T}([2, 0, 3]), initial=2.0)",
        f"torch.segment_reduce(x(5), 'min', offsets={T}([0, 2, 5]))",
        f"torch.segment_reduce(x(2, 3), 'prod', lengths={T}([[1, 2], [3, 0]]), axis=1)",
        f"torch.segment_reduce(x(5), 'sum', lengths={T}([2, 1]), unsafe=True)",
        f"torch.segment_reduce(x(5), 'sum', lengths={T}([2, 1]))",
        f"torch.segment_reduce(x(3), 'foo', lengths={T}([3]))",
        "torch.segment_reduce(x(3), 'sum')", f"torch.segment_reduce(torch.ones(3).long(), 'sum', lengths={T}([3]))",
        f"torch.segment_reduce(x(2, 3), 'sum', lengths={T}([1, 2]), axis=1)",
        f"torch.segment_reduce(x(3), 'sum', lengths={T}([-1, 4]))",
        f"torch.segment_reduce(x(3), 'sum', indices={T}([0]))",
        f"torch.segment_reduce(x(3), 'sum', lengths={T}([1.0, 2]))",
    ],
}  # fmt: skip


@pytest.mark.parametrize("expression", [e for group in EXPRESSIONS.values() for e in group])
def test_an_expression_means_what_it_means_to_torch(expression):
    agree(expression)


@on_both
def test_a_product_with_zeros_has_torchs_gradient_in_a_segment(torch):
    x = torch.tensor([0.0, 2.0, 3.0, 0.0, 0.0], requires_grad=True)
    torch.segment_reduce(x, "prod", lengths=torch.tensor([3, 2])).sum().backward()
    return x.grad


def test_the_dimension_of_cross_is_the_first_of_size_three():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree("torch.cross(x(4, 3), x(4, 3) + 1)")
        agree("torch.cross(x(2), x(2))")


@on_both
def test_too_few_observations_are_warned_about(torch):
    return torch.cov(torch.ones(3), correction=5)


@on_both
def test_distances_have_torchs_second_derivative_by_products(torch):
    x = torch.linspace(0, 1, 60, dtype=torch.float64).reshape(30, 2).requires_grad_()
    y = torch.linspace(-1, 0, 6, dtype=torch.float64).reshape(3, 2)
    (first,) = torch.autograd.grad(torch.cdist(x, y).sum(), x, create_graph=True)
    return torch.autograd.grad((first**2).sum(), x)


@on_both
def test_results_in_inference_mode_are_inference_tensors(torch):
    x, i = torch.linspace(0, 1, 9).reshape(3, 3), torch.tensor([1, 2])
    with torch.inference_mode():
        made = [
            torch.einsum("ij,jk->ik", x, x), torch.einsum("i,j->ij", x[0], x[1]), torch.isin(i, 1), torch.vander(x[0]),
            torch.unravel_index(i, (3, 3))[0], torch.trapezoid(x), torch.trapezoid(x[:, :0]), torch.cov(x),
            torch.cdist(x, x),
            torch.fft.fft(x), torch.hann_window(3), torch.histogram(x, 2).hist, torch.nonzero_static(x, size=2),
            torch.fft.fftfreq(3), torch.stft(x[0], 3, window=torch.ones(3), return_complex=True, center=False),
        ]  # fmt: skip
    return [tensor.is_inference() for tensor in made]


@on_both
def test_the_functional_module_has_the_same_functions(torch):
    return [
        torch.functional.einsum is torch.einsum,
        torch.functional.stft is torch.stft,
        torch.functional.split is torch.split,
    ]
