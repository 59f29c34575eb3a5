"""Integers given as NumPy's, or as tensors: where torch takes them, and where it does not."""

import numpy as np
import pytest

from tests.conformance.both import attempt, on_both

KINDS = ("int64", "int32", "uint8")


@on_both
def test_counts_may_be_tensors_of_any_integers(torch):
    found = []
    for kind in KINDS:
        five = torch.tensor(5, dtype=getattr(torch, kind))
        found += [torch.linspace(0, 1, five), torch.logspace(0, 1, five), torch.eye(five), torch.eye(3, five)]
        found += [torch.randperm(five).sort().values, torch.arange(five), torch.zeros(five), torch.ones((five, 2))]
        found += [torch.tril_indices(five, 3), torch.triu_indices(4, five, five - 4)]
    return found


@on_both
def test_steps_are_no_tensor_with_dimensions(torch):
    steps = torch.tensor([5])
    return type(attempt(lambda: torch.linspace(0, 1, steps)).kind), torch.eye(steps)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_take_the_integers_of_numpy_and_of_tensors(name):
    @on_both
    def program(torch):
        window = getattr(torch, f"{name}_window")
        lengths = (np.int64(5), np.int32(5), torch.tensor(5), torch.tensor(5, dtype=torch.int32))
        wrong = (torch.tensor([5]), torch.tensor(5.0), 5.0, True, np.float32(5), torch.tensor(-1))
        return [window(n) for n in lengths], [attempt(lambda n=n: window(n)) for n in wrong]

    program()


@on_both
def test_triangles_refuse_bools_and_fractions(torch):
    wrong = (True, 2.0, torch.tensor(2.0), torch.tensor([2]), None)
    return [attempt(lambda n=n: torch.tril_indices(n, 3)) for n in wrong], [
        attempt(lambda n=n: torch.triu_indices(3, 3, n)) for n in wrong
    ]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_images_are_scaled_to_sizes_of_numpy_and_of_tensors(mode):
    @on_both
    def program(torch):
        x = torch.arange(16.0).view(1, 1, 4, 4)
        sizes = [np.int64(3), [np.int64(3), np.int32(2)], torch.tensor(3), torch.tensor([3]), (torch.tensor(3), 2)]
        sizes += [[torch.tensor([3]), torch.tensor([2])], (torch.tensor(6, dtype=torch.int32), np.int16(5))]
        scale = torch.nn.functional.interpolate
        found = [scale(x, size=size, mode=mode) for size in sizes]
        found += [torch.nn.Upsample(size=size, mode=mode)(x) for size in sizes]
        kinds = [[torch.tensor(3.0), 2], torch.tensor(3.0), torch.tensor([3, 2]), [True, 2], [torch.tensor(True), 2]]
        return found, [isinstance(attempt(lambda s=s: scale(x, size=s, mode=mode)), torch.Tensor) for s in kinds]

    program()


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "area"])
def test_factors_that_are_tensors_are_rounded_to_a_size_or_refused(mode):
    @on_both
    def program(torch):
        x = torch.arange(100.0).view(1, 1, 10, 10)
        scale = torch.nn.functional.interpolate
        factors = (torch.tensor(0.7), torch.tensor([2.0]), [torch.tensor(0.3), 2], torch.tensor(2))
        rounded = [scale(x, scale_factor=f, mode=mode, recompute_scale_factor=True) for f in factors]
        taken = [isinstance(attempt(lambda f=f: scale(x, scale_factor=f, mode=mode)), torch.Tensor) for f in factors]
        return rounded, taken

    program()


@on_both
def test_the_first_entry_of_a_shape_is_refused_in_words_of_its_own(torch):
    x = torch.ones(2)
    makers = [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, x.new_zeros, x.new_ones, x.new_empty]
    shapes = [(5.0, 2), (2, 5.0), [True], (None,), (np.float32(5),), (2, np.float32(5)), ("a", 1)]
    return [attempt(lambda f=f, s=s: f(s)) for f in makers for s in shapes]
