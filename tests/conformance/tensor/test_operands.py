"""What Python's operators and a tensor's own questions make of unusual operands and of tensors without dimensions."""

import operator
import warnings

import numpy as np

from tests.conformance.both import attempt, on_both

ASSIGNMENTS = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
]  # fmt: skip
BIT_ASSIGNMENTS = [operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift]


@on_both
def test_an_assignment_operator_refuses_what_is_no_number(torch):
    out = []
    for value in ("a", None, [1.0, 2.0], (1,)):
        out += [attempt(lambda f=f, v=value: f(torch.ones(2), v)) for f in ASSIGNMENTS]
        out += [attempt(lambda f=f, v=value: f(torch.ones(2, dtype=torch.int32), v)) for f in BIT_ASSIGNMENTS]
    return out


@on_both
def test_an_assignment_operator_with_an_array_gives_a_new_tensor(torch):
    def assigned(assign):
        x = torch.tensor([3.0, 5.0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy about the way torch wraps results
            y = assign(x, np.array([2.0, 4.0]))
        return [y is x, x, y]

    return [assigned(assign) for assign in ASSIGNMENTS]


@on_both
def test_a_matrix_product_with_an_array_of_another_dtype(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.ones(2, 2) @ np.ones((2, 2))


@on_both
def test_subtracting_a_bool_in_place(torch):
    x = torch.ones(2)
    return [attempt(lambda: operator.isub(x, True)), attempt(lambda: x.sub_(True)), x, x.add_(True)]


@on_both
def test_sizes_of_a_tensor_without_dimensions(torch):
    x = torch.tensor(1.0)
    return [attempt(lambda d=d, f=f: f(d)) for f in (x.size, x.stride) for d in (0, -1, 5)]


@on_both
def test_the_conjugate_transpose_of_a_complex_number_is_its_conjugate(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # deprecated; said once per process
        x = torch.tensor(1 + 2j, requires_grad=True)
        y = torch.tensor(2.0)
        return [x.H, x.mH, x.adjoint(), y.H is y, y.mH is y, x.T, x.mT is x]


@on_both
def test_types_to_convert_to(torch):
    x = torch.ones(2, dtype=torch.float64)
    kinds = [7, "nonsense", int, x, torch.Tensor, torch.IntTensor, "torch.HalfTensor", torch.int8]
    return [attempt(lambda k=k: x.type(k)) for k in kinds]
