"""Arrays whose NumPy dtype is equal to ours but another object: every way in makes them ours, on the same memory."""

import copy
import io
import multiprocessing.reduction
import pickle
import queue

import numpy as np
import pytest

import pullback as torch
from pullback.serialization import npz, safetensors
from tests.op_samples import outputs_of, sample, sampled_ops

KINDS = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]


def unpickled(kind):
    return pickle.loads(pickle.dumps(np.dtype(kind)))


def deep_copied(kind):
    return copy.deepcopy(np.dtype(kind))


def with_metadata(kind):
    return np.dtype(kind, metadata={"unit": "metre"})


def turned_twice(kind):
    return np.dtype(kind).newbyteorder().newbyteorder()


def of_other_c_type(kind):
    return np.dtype("q") if kind == "int64" and np.dtype("l").itemsize == 8 else unpickled(kind)


FOREIGN = [unpickled, deep_copied, with_metadata, turned_twice, of_other_c_type]


def array_of(kind, foreign):
    """Six elements of a dtype that is equal to NumPy's own."""
    dtype = foreign(kind)
    array = np.arange(6).astype(dtype).reshape(2, 3).view(dtype)
    assert array.dtype == np.dtype(kind)
    return array


class Interface:
    """An array of another library."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Exchanged:
    """An array of another library that knows DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(pickle.loads(pickle.dumps(x.detach().numpy())))

    @staticmethod
    def backward(ctx, grad):
        return torch.from_numpy(pickle.loads(pickle.dumps(grad.numpy())))


def through_npz(array, path):
    np.savez(path, x=array.view(array.dtype.str))  # NumPy warns that metadata is not written
    return npz.load_npz(str(path) + ".npz")["x"]


def through_pt(array, path):
    torch.save(torch.from_numpy(array), path)
    return torch.load(path)


def through_safetensors(array, path):
    return safetensors.load(safetensors.save({"x": torch.from_numpy(array)}))["x"]


def through_queue(array, path):
    buffer = io.BytesIO()
    multiprocessing.reduction.ForkingPickler(buffer).dump(torch.from_numpy(array))
    return pickle.loads(buffer.getvalue())


def through_data(array, path):
    out = torch.zeros(2)
    out.data = torch.from_numpy(array)
    return out


def through_set(array, path):
    return torch.zeros(0, dtype=torch.from_numpy(array).dtype).set_(torch.from_numpy(array))


WAYS = {
    "from_numpy": lambda a, path: torch.from_numpy(a),
    "tensor": lambda a, path: torch.tensor(a),
    "tensor of rows": lambda a, path: torch.tensor(list(map(list, a))),
    "as_tensor": lambda a, path: torch.as_tensor(a),
    "asarray": lambda a, path: torch.asarray(a),
    "asarray, copied": lambda a, path: torch.asarray(a, copy=True),
    "new_tensor": lambda a, path: torch.from_numpy(a).new_tensor(a),
    "interface": lambda a, path: torch.from_numpy(np.asarray(Interface(a))),
    "dlpack": lambda a, path: torch.from_dlpack(Exchanged(a)),
    "dlpack of an array": lambda a, path: torch.from_dlpack(a),
    "dlpack, copied": lambda a, path: torch.from_dlpack(a, copy=True),
    "subclass": lambda a, path: torch.from_numpy(a.view(np.matrix)),
    "collate": lambda a, path: torch.utils.data.default_collate(list(a)),
    "convert": lambda a, path: torch.utils.data.default_convert([a])[0],
    "a function of NumPy": lambda a, path: np.reshape(torch.from_numpy(a), (3, 2)),
    "what NumPy makes of a tensor": lambda a, path: torch.from_numpy(a).__array_wrap__(a),
    "an npz file": through_npz,
    "a checkpoint": through_pt,
    "a safetensors file": through_safetensors,
    "a pickle": lambda a, path: pickle.loads(pickle.dumps(torch.from_numpy(a))),
    "a copy": lambda a, path: copy.copy(torch.from_numpy(a)),
    "a deep copy": lambda a, path: copy.deepcopy(torch.from_numpy(a)),
    "a queue": through_queue,
    "data": through_data,
    "set_": through_set,
    "a parameter": lambda a, path: torch.nn.Parameter(torch.from_numpy(a), requires_grad=False),
    "a clone": lambda a, path: torch.from_numpy(a).clone(),
    "a view": lambda a, path: torch.from_numpy(a).t().contiguous(),
    "its grad": lambda a, path: torch.from_numpy(a).real,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
def test_every_way_in_makes_the_dtype_ours(way, foreign, tmp_path):
    for kind in KINDS:
        if way in ("a safetensors file", "tensor of rows") and kind.startswith("complex"):
            continue
        if way == "what NumPy makes of a tensor" and kind == "bool":
            continue  # comes as bytes, as in torch
        out = WAYS[way](array_of(kind, foreign), tmp_path / "file")
        assert out._array.dtype is out.dtype.numpy, kind
        assert out.untyped_storage().nbytes() >= out.nbytes
        again = out + out if kind != "bool" else out | out
        assert again._array.dtype is out.dtype.numpy and type(out._array) is np.ndarray


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", ["from_numpy", "as_tensor", "asarray", "dlpack of an array", "convert", "subclass"])
def test_the_memory_is_still_shared(way, foreign, tmp_path):
    for kind in KINDS:
        array = array_of(kind, foreign)
        out = WAYS[way](array, None)
        out.fill_(1)
        assert (array == 1).all()
        part = array_of(kind, foreign)[:, 1:]
        seen = torch.from_numpy(part)
        part[1, 1] = 0
        assert seen.stride() == (3, 1) and seen[1, 1].item() == 0


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
def test_such_arrays_meet_tensors(foreign):
    a = torch.from_numpy(array_of("float64", foreign))
    own = torch.ones(3, 2, dtype=torch.float64)
    assert (a @ own).tolist() == [[3, 3], [12, 12]]
    assert torch.cat([a, own.t()]).shape == (4, 3)
    assert torch.nn.functional.linear(a, own.t()).shape == (2, 2)
    assert torch.addmm(torch.zeros(2, 2, dtype=torch.float64), a, own).shape == (2, 2)
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    (x * a).sum().backward()
    assert x.grad.tolist() == a.tolist() and x.grad._array.dtype is np.dtype("float64")
    (Custom.apply(x) * a).sum().backward()
    assert x.grad._array.dtype is np.dtype("float64")


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
def test_such_arrays_are_indices_and_values(foreign):
    x = torch.arange(6.0)
    assert x[np.array([1, 3]).astype(foreign("int64"))].tolist() == [1, 3]
    mask = np.array([1, 0, 0, 0, 0, 1]).astype(foreign("bool")).view(foreign("bool"))
    assert x[mask].tolist() == [0, 5]
    x[mask] = torch.from_numpy(np.array([7.0, 8.0]).astype(foreign("float32")).view(foreign("float32")))
    assert x.tolist() == [7, 1, 2, 3, 4, 8]
    assert torch.embedding(torch.eye(3), torch.from_numpy(np.array([2]).astype(foreign("int64")))).tolist() == [
        [0, 0, 1]
    ]
    value = foreign("float32").type(2)
    assert (x * value)._array.dtype is np.dtype("float32")


def test_bfloat16_of_a_copied_dtype_is_ours():
    kind = torch.bfloat16.numpy
    for foreign in (copy.deepcopy(kind), pickle.loads(pickle.dumps(kind)), np.dtype(kind, metadata={"a": 1})):
        out = torch.from_numpy(np.ones(3, kind).view(foreign))
        assert out.dtype is torch.bfloat16 and out._array.dtype is kind
        assert (out + torch.ones(3, dtype=torch.bfloat16)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("way", ["from_numpy", "tensor", "as_tensor", "asarray", "dlpack of an array", "collate"])
def test_the_other_byte_order_is_refused(way):
    with pytest.raises(ValueError, match="byte order different from the native byte order"):
        WAYS[way](np.ones((2, 2), np.dtype("float64").newbyteorder()), None)


def test_the_threads_of_a_queue_are_no_way_around():
    waiting = queue.Queue()
    waiting.put(torch.from_numpy(array_of("float64", unpickled)))
    assert waiting.get()._array.dtype is np.dtype("float64")


def test_what_ops_make_has_our_dtypes():
    found = 0
    for key in sampled_ops(differentiable=False):
        for out in outputs_of(sample(key).call({})):
            found += 1
            assert out._array.dtype is out.dtype.numpy, key
    assert found > 300
