"""Where elements lie: shared memory, files, orders of dimensions; Python functions on each element; old resizing."""

import os

import numpy as np
import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.ops.expressions import agree

EXPRESSIONS = [
    "x(2, 3).dim_order()", "x(2, 3).T.dim_order()", "x(2, 3, 4).permute(2, 0, 1).dim_order()", "x(1, 1).dim_order()",
    "x(1, 1).dim_order(ambiguity_check=True)", "x(2, 3).dim_order(ambiguity_check=True)", "x(3).is_pinned()",
    "x(3).pin_memory()", "x(3).is_shared()", "x(3).is_distributed()", "torch.is_distributed(x(3))",
    "torch.get_device(x(3))", "torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()",
    "torch.empty_permuted((2, 3), (0,))",
    "torch.empty_permuted((2, 3), (0, 0))", "torch.empty_permuted((2, 3), (0, 2))",
    "torch.empty_permuted((2, 3), (0, -1))",
    "torch.empty_permuted((2, -3), (0, 1))", "torch.empty_permuted((), ()).shape", "torch.empty_permuted(2, 0)",
    "x(2, 3).resize(3, 2)", "x(2, 3).resize(6)", "x(2, 3).resize(7)", "x(2, 3).resize_as(torch.ones(6))",
    "torch.detach_copy(x(3))", "torch.gcd_(torch.tensor([4]), torch.tensor([6]))",
    "torch.lcm_(torch.tensor([4]), torch.tensor([6]))", "torch.ldexp_(torch.ones(2), torch.tensor([1]))",
    "torch.addmv_(torch.ones(2), torch.ones(2, 3), torch.ones(3))", "torch.fill_(torch.ones(2), 3.0)",
    "x(3, grad=False).apply_(lambda v: v * 2)", "torch.ones(3).int().apply_(lambda v: v + 1.5)",
    "torch.ones(3).bool().apply_(lambda v: 0)", "x(3).apply_(lambda v: v)", "torch.ones(3).apply_(3)",
    "torch.ones(3).apply_(lambda v: 'a')", "torch.ones(2, 3).T.apply_(lambda v: v + 1)",
    "torch.ones(3).map_(torch.tensor([1.0, 2, 3]), lambda a, b: a + b)",
    "torch.ones(3).map_(torch.ones(1), lambda a, b: a + b)",
    "torch.ones(3).map_(torch.ones(3).long(), lambda a, b: a)", "torch.ones(3).map_(torch.ones(2), lambda a, b: a)",
    "torch.ones(3).map_(x(3).float(), lambda a, b: a)", "torch.ones(3).map_(3, lambda a, b: a)",
    "torch.ones(3).map2_(torch.ones(3), torch.ones(1), lambda a, b, c: a + b + c)",
    "torch.ones(3).map2_(torch.ones(3).int(), torch.ones(3), lambda a, b, c: a)",
    "torch.ones(3).map2_(torch.ones(3), torch.ones(3).int(), lambda a, b, c: a)",
    "torch.from_file('/nonexistent/file', size=3)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_means_what_it_means_to_torch(expression):
    agree(expression)


@on_both
def test_tensors_know_whether_they_look_at_the_same_memory(torch):
    x = torch.ones(4)
    return [
        x.is_set_to(x),
        x.is_set_to(x.clone()),
        x.is_set_to(x[:2]),
        x.view(4).is_set_to(x),
        x.is_set_to(x.view(2, 2)),
    ]


@on_both
def test_a_function_on_each_element_is_not_counted_as_a_write(torch):
    x = torch.ones(3)
    x.apply_(lambda v: v + 1)
    x.map_(x.clone(), lambda a, b: a)
    return x._version


@on_both
def test_a_failing_function_leaves_the_tensor_as_it_was(torch):
    x = torch.ones(3)

    def fail(value):
        raise KeyError("no")

    return [attempt(lambda: x.apply_(fail)), x]


@on_both
def test_a_tensor_shares_its_memory_with_forked_processes(torch):
    x = torch.arange(6.0).reshape(2, 3).T
    seen = [x.share_memory_() is x, x.is_shared(), x, x.stride()]
    child = os.fork()
    if not child:
        x[0, 0] = 99.0
        os._exit(0)
    os.waitpid(child, 0)
    return [*seen, x]


@pytest.mark.parametrize("shared", [True, False])
def test_a_file_is_read_and_with_shared_written(tmp_path, shared):
    path = tmp_path / "numbers"
    path.write_bytes(pullback.arange(3.0).numpy().tobytes())
    x = pullback.from_file(str(path), shared=shared, size=3)
    assert x.tolist() == [0.0, 1.0, 2.0]
    x[0] = 7.0
    assert (pullback.from_file(str(path), size=3)[0] == 7.0) == shared


def test_a_shared_file_is_made_where_there_is_none(tmp_path):
    x = pullback.from_file(str(tmp_path / "new"), shared=True, size=4, dtype=pullback.int64)
    assert x.tolist() == [0, 0, 0, 0]


@on_both
def test_loading_into_a_tensor_keeps_or_replaces_it(torch):
    x, y = torch.zeros(2), torch.ones(2)
    return [x.module_load(y), x, x.module_load(y, assign=True)]


@on_both
def test_the_memory_of_an_arrays_window_begins_with_the_window(torch):
    array = np.arange(10.0)
    rest, every_other = torch.from_numpy(array[5:]), torch.from_numpy(array[::2])
    rest.add_(100)
    windows = [rest, every_other, torch.from_numpy(array.reshape(2, 5).T), torch.as_tensor(array[3:])]
    places = [(window.storage_offset(), window.untyped_storage().nbytes(), window.stride()) for window in windows]
    return places, rest.as_strided((2,), (1,), 0), every_other[1:].storage_offset(), array.tolist()
