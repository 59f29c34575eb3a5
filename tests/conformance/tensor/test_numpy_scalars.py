"""NumPy's scalars assigned to elements of tensors."""

import numpy as np
import pytest

from tests.conformance.both import attempt, same

SCALARS = (
    np.float64(2), np.float32(2), np.float16(1), np.int64(3), np.int32(3), np.uint8(3), np.bool_(True),
    np.complex128(1 + 2j), np.complex64(1 + 2j), np.array(2.0), np.array([2.0]), np.array(3), np.str_("a"),
)  # fmt: skip
DTYPES = ("float32", "float16", "int64", "uint8", "bool", "complex64")
WRITES = {
    "an element": lambda torch, t, v: t.__setitem__(1, v),
    "all": lambda torch, t, v: t.__setitem__(slice(None), v),
    "a dots": lambda torch, t, v: t.__setitem__(..., v),
    "a mask": lambda torch, t, v: t.__setitem__(torch.tensor([True, False, True]), v),
    "an index": lambda torch, t, v: t.__setitem__(torch.tensor([0]), v),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", WRITES)
def test_scalars_of_numpy_are_assigned_where_torch_assigns_them(how, dtype):
    def program(torch):
        found = []
        for scalar in SCALARS:
            t = torch.tensor([0, 1, 2]).to(getattr(torch, dtype))
            found.append([attempt(lambda t=t, v=scalar: WRITES[how](torch, t, v)), t])
        return found

    same(program)
