"""NumPy's numbers and arrays where torch takes Python's, and memory handed over by DLPack, on torch and on pullback."""

import numpy as np
import pytest

from tests.conformance.both import attempt, on_both, same

HALF, ONE = np.float64(0.5), np.int64(1)


def put(tensor, key, value):
    tensor = tensor.clone()
    tensor[key] = value
    return tensor


WRITES = """t, 0, np.float64(2.5); t, 0, np.float32(2.5); t, 0, np.int64(3); t, (0,), np.array(2.5)
t, 0, np.array([2.5]); t, slice(None), np.array([1.0, 2.0, 3.0]); i, 0, np.float64(2.7); i, 0, np.int32(7)
i, 0, np.bool_(True); t, np.int64(1), 9.0; t, np.array([0, 2]), 9.0; t, np.array([True, False, True]), 9.0
t, 0, np.float16(1.5); t, 0, np.complex128(1 + 2j); t, 0, 'x'; t, 0, None; b, 0, np.bool_(False)
t, slice(0, 2), [1.0, 2.0]"""


@pytest.mark.parametrize("write", [one.strip() for line in WRITES.splitlines() for one in line.split("; ")])
def test_numbers_and_arrays_are_written_into_tensors(write):
    def program(torch):
        t, i, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 2, 3]), torch.tensor([True, False])
        outcome = attempt(lambda: put(*eval(write, dict(t=t, i=i, b=b, np=np))))
        return getattr(outcome, "kind", outcome)

    same(program)


CALLS = """torch.add(t, t, alpha=half); torch.sub(t, t, alpha=half); t.add_(t, alpha=half); i.add(i, alpha=one)
i.add(i, alpha=half); torch.rsub(t, t, alpha=half); torch.addmm(m, m, m, beta=half, alpha=half); F.elu(t, half)
F.cross_entropy(m, i[:2] - 1, label_smoothing=half); torch.linalg.matrix_power(m, one); t * half; half * t; i * half
one * i; torch.full((2,), half); torch.full((2,), one); torch.clamp(t, half); torch.where(t > 0, half, t); t.fill_(half)
torch.arange(np.float64(3)); torch.zeros(one, one); t[one]; torch.lerp(t, t, half); torch.std(t, correction=one)
t.masked_fill(t > 0, half); torch.tensor(half); torch.tensor([half, half]); torch.as_tensor(np.float32(1))"""


@pytest.mark.parametrize("call", [one.strip() for line in CALLS.splitlines() for one in line.split("; ")])
def test_numpys_numbers_count_as_pythons(call):
    def program(torch):
        names = dict(torch=torch, F=torch.nn.functional, np=np, half=HALF, one=ONE)
        names |= dict(
            t=torch.tensor([1.0, 2.0, 3.0]), i=torch.tensor([1, 2, 3]), m=torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        )
        return attempt(lambda: eval(call, names))

    same(program)


@on_both
def test_arrays_look_at_the_memory_of_tensors(torch):
    t = torch.tensor([1.0, 2.0, 3.0])
    seen, wide = np.asarray(t), np.asarray(t, dtype=np.float64)
    t[0] = 9.0
    half = attempt(lambda: np.asarray(torch.ones(2, dtype=torch.bfloat16)))
    recorded = attempt(lambda: np.asarray(torch.ones(2, requires_grad=True)))
    return seen.tolist(), str(seen.dtype), wide.tolist(), np.asarray(t.expand(2, 3)).shape, half, recorded


@on_both
def test_capsules_are_taken_once_and_share_their_memory(torch):
    array = np.arange(6.0).reshape(2, 3)
    taken = torch.from_dlpack(array.T.__dlpack__())
    taken[0, 0] = 9.0
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    own = torch.utils.dlpack.from_dlpack(capsule)
    again = attempt(lambda: torch.from_dlpack(capsule))
    return array.tolist(), taken.stride(), own, getattr(again, "kind", again)


@on_both
def test_tensors_hand_out_capsules_with_the_options_of_the_protocol(torch):
    t = torch.tensor([1.0, 2.0])
    options = [{}, dict(stream=None), dict(stream=-1), dict(stream=3), dict(copy=True), dict(dl_device=(1, 0))]
    kinds = [attempt(lambda given=given: type(t.__dlpack__(**given)).__name__) for given in options]
    return (
        kinds,
        t.__dlpack_device__()[1],
        attempt(lambda: t.requires_grad_().__dlpack__()),
        np.from_dlpack(t.detach()).tolist(),
    )


@on_both
def test_what_is_no_capsule_is_refused(torch):
    return [attempt(lambda wrong=wrong: torch.from_dlpack(wrong)) for wrong in (3, None, "x")]
