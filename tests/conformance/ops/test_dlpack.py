"""DLPack: memory shared with torch and NumPy, both ways."""

import gc

import numpy as np
import pytest
import torch as peer

import pullback

BOTH = pytest.mark.parametrize("torch", [peer, pullback], ids=["torch", "pullback"])
DTYPES = [
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
@pytest.mark.parametrize("giver, taker", [(peer, pullback), (pullback, peer)], ids=["from torch", "to torch"])
def test_a_tensor_travels_without_a_copy(giver, taker, dtype, shape):
    given = giver.ones(shape, dtype=getattr(giver, dtype))
    given = given.t() if given.ndim == 2 else given
    taken = taker.from_dlpack(given)
    assert taken.dtype is getattr(taker, dtype)
    assert taken.shape == given.shape
    assert not given.numel() or (taken.data_ptr(), taken.stride()) == (given.data_ptr(), given.stride())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("giver, taker", [(peer, pullback), (pullback, peer)], ids=["from torch", "to torch"])
def test_writes_show_on_both_sides_and_the_memory_outlives_its_giver(giver, taker, dtype):
    given = giver.ones(1000, dtype=getattr(giver, dtype))
    taken = taker.from_dlpack(given)
    taken.mul_(3)
    assert set(given.tolist()) == {3.0}
    del given
    gc.collect()
    assert set(taken.tolist()) == {3.0}


@BOTH
def test_a_capsule_is_taken_once(torch):
    capsule = torch.utils.dlpack.to_dlpack(torch.arange(3))
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
        torch.utils.dlpack.from_dlpack(capsule)


@BOTH
def test_numpy_takes_what_it_knows(torch):
    assert np.from_dlpack(torch.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="Unsupported dtype in DLTensor"):
        np.from_dlpack(torch.ones(2, dtype=torch.bfloat16))


def test_a_type_pullback_has_not_is_refused():
    with pytest.raises(RuntimeError, match="Unsupported dtype"):
        pullback.from_dlpack(peer.ones(2, dtype=peer.float8_e4m3fn))


def test_torchs_own_tensors_still_come_over_after_a_class_has_overridden_functions():
    class Louder(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    pullback.add(pullback.ones(2).as_subclass(Louder), 1)
    assert pullback.from_dlpack(peer.ones(3)).tolist() == [1.0, 1.0, 1.0]
