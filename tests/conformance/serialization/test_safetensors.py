"""safetensors files written by the package and read by pullback, and the other way round."""

import json
import os
import struct

import numpy as np
import pytest
import torch as peer

import pullback
from pullback.serialization import safetensors as ours

theirs = pytest.importorskip("safetensors.torch")
package = pytest.importorskip("safetensors")

SIDES = {"to-us": (peer, theirs, pullback, ours), "to-torch": (pullback, ours, peer, theirs)}
SIDES["own"] = (pullback, ours, pullback, ours)
DIRECTIONS = pytest.mark.parametrize(("writer", "write", "reader", "read"), list(SIDES.values()), ids=list(SIDES))
DTYPES = ["float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16"]
DTYPES += ["uint32", "uint64", "bool", "complex64"]


def numbers(tensor):
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).detach().numpy()


def state(lib):
    """Tensors of every dtype and of unusual shapes and names."""
    tensors = {f"{kind}.weight": lib.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(lib, kind)) for kind in DTYPES}
    return {**tensors, "scalar": lib.tensor(2.5), "empty": lib.zeros(2, 0, 4), 'né"\n\x01/☃': lib.ones(3)}


def outcome(call):
    """What a call returns, or the type and text of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


@DIRECTIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives(writer, write, reader, read, dtype):
    tensor = writer.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(writer, dtype))
    got = read.load(write.save({"x": tensor}))["x"]
    assert got.dtype == getattr(reader, dtype)
    assert np.array_equal(numbers(got), numbers(tensor))


@DIRECTIONS
def test_files_hold_names_shapes_and_texts(writer, write, reader, read, tmp_path):
    path = tmp_path / "model.safetensors"
    write.save_file(state(writer), path, metadata={"format": "pt", "é": "\n☃"})
    got = read.load_file(path)
    assert {name: tuple(t.shape) for name, t in got.items()} == {n: tuple(t.shape) for n, t in state(writer).items()}
    for name, tensor in state(writer).items():
        assert np.array_equal(numbers(got[name]), numbers(tensor))
    with read.safe_open(path, framework="pt") as file:
        assert file.metadata() == {"format": "pt", "é": "\n☃"}


def test_both_write_the_same_bytes():
    assert ours.save(state(pullback)) == theirs.save(state(peer))
    texts = {"format": 'pt"\\\x7f\x1f☃'}
    assert ours.save(state(pullback), metadata=texts) == theirs.save(state(peer), metadata=texts)
    assert ours.save({}) == theirs.save({})


def test_both_list_the_names_in_the_same_order(tmp_path):
    path = tmp_path / "model.safetensors"
    theirs.save_file(state(peer), path)
    with ours.safe_open(path, "pt") as one, package.safe_open(path, "pt") as other:
        assert one.keys() == other.keys()
        assert one.offset_keys() == other.offset_keys()
        assert one.metadata() is other.metadata() is None
    assert list(ours.load_file(path)) == list(theirs.load_file(path))


INDICES = [
    np.s_[:], np.s_[0], np.s_[-1], np.s_[5], np.s_[::2], np.s_[1:3], np.s_[:, 1:], np.s_[..., -1], np.s_[None],
    np.s_[()], np.s_[0, 0, 0], np.s_[0, 0, 0, 0], np.s_[9:], np.s_[2:1], np.s_[::-1], [0, 2], True,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_slices_are_those_of_the_tensor(index, dtype, backend, tmp_path):
    path = tmp_path / "model.safetensors"
    theirs.save_file({"x": peer.arange(24).reshape(4, 3, 2).remainder(5).to(getattr(peer, dtype))}, path)
    with ours.safe_open(path, "pt", backend=backend) as one, package.safe_open(path, "pt") as other:
        mine, other = one.get_slice("x"), other.get_slice("x")
        got, expected = outcome(lambda: mine[index]), outcome(lambda: other[index])
        assert mine.get_shape() == other.get_shape()
        assert mine.get_dtype() == other.get_dtype()
    if isinstance(expected, tuple):
        assert got == expected
    else:
        assert str(got.dtype) == str(expected.dtype)
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_a_slice_owns_its_memory(tmp_path):
    path = tmp_path / "model.safetensors"
    ours.save_file({"x": pullback.zeros(3)}, path)
    before = path.read_bytes()
    with ours.safe_open(path, "pt") as file:
        part = file.get_slice("x")[1:]
        part += 1
        assert file.get_slice("x")[:].tolist() == file.get_tensor("x").tolist() == [0.0, 0.0, 0.0]
    assert part.tolist() == [1.0, 1.0]
    assert path.read_bytes() == before


BAD_CALLS = {
    "list": lambda lib, st: st.save([1]),
    "number": lambda lib, st: st.save({"a": 1}),
    "name": lambda lib, st: st.save({1: lib.ones(1)}),
    "strided": lambda lib, st: st.save({"a": lib.ones(2, 3).t()}),
    "expanded": lambda lib, st: st.save({"a": lib.ones(1).expand(3)}),
    "dtype": lambda lib, st: st.save({"a": lib.zeros(1, dtype=lib.complex128)}),
    "metadata": lambda lib, st: st.save({}, metadata=[1]),
    "text": lambda lib, st: st.save({}, metadata={"a": 1}),
    "bytes": lambda lib, st: st.load("abc"),
    "bytearray": lambda lib, st: st.load(bytearray(8)),
    "nowhere": lambda lib, st: st.load_file("nowhere.safetensors"),
    "framework": lambda lib, st: st.safe_open("nowhere.safetensors", "other"),
    "backend": lambda lib, st: st.safe_open("nowhere.safetensors", "pt", backend="other"),
    "device": lambda lib, st: st.safe_open("nowhere.safetensors", "pt", device="other"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_raises_the_same_error(name):
    expected = outcome(lambda: BAD_CALLS[name](peer, theirs))
    assert isinstance(expected, tuple)
    assert outcome(lambda: BAD_CALLS[name](pullback, ours)) == expected


SHARING = {
    "same": lambda x: {"a": x, "b": x},
    "part": lambda x: {"a": x, "b": x[:2]},
    "three": lambda x: {"a": x, "b": x[1:2], "c": x[2:]},
    "halves": lambda x: {"a": x[:2], "b": x[2:]},
    "overlap": lambda x: {"a": x[:3], "b": x[2:]},
    "apart": lambda x: {"a": x, "b": x.clone()},
    "nothing": lambda x: {"a": x[:0].clone(), "b": x[:0].clone()},
}


@pytest.mark.parametrize("name", SHARING)
def test_shared_memory_is_refused_where_the_package_refuses_it(name):
    expected = outcome(lambda: theirs.save(SHARING[name](peer.arange(4.0))))
    got = outcome(lambda: ours.save(SHARING[name](pullback.arange(4.0))))
    if isinstance(expected, bytes):
        assert got == expected
    else:
        assert got[0] == expected[0] == "RuntimeError"
        assert [line.split(":")[0] for line in got[1].splitlines()] == [
            line.split(":")[0] for line in expected[1].splitlines()
        ]


def test_a_small_part_before_another_part_of_a_whole_is_still_found():
    whole = pullback.arange(10.0)
    with pytest.raises(RuntimeError, match=r"Some tensors share memory.*\[{'a', 'b', 'c'}\]"):
        ours.save({"a": whole, "b": whole[:1], "c": whole[5:6]})


def tied(lib):
    """A module two of whose parameters are one."""
    model = lib.nn.Module()
    model.first, model.second = lib.nn.Linear(3, 3), lib.nn.Linear(3, 3)
    model.second.weight = model.first.weight
    return model


@DIRECTIONS
def test_a_model_with_tied_weights_travels(writer, write, reader, read, tmp_path):
    path = tmp_path / "model.safetensors"
    source, target = tied(writer), tied(reader)
    texts = {"format": "pt"}
    write.save_model(source, path, metadata=texts)
    assert sorted(read.load_file(path)) == ["first.bias", "first.weight", "second.bias"]
    with read.safe_open(path, "pt") as file:
        assert file.metadata()["second.weight"] == "first.weight"
    missing, unexpected = read.load_model(target, path)
    assert (set(missing), list(unexpected)) == (set(), [])
    for name, tensor in source.state_dict().items():
        np.testing.assert_array_equal(target.state_dict()[name].numpy(), tensor.numpy())


@pytest.mark.parametrize("strict", [True, False])
def test_a_model_that_does_not_fit_is_reported_alike(strict, tmp_path):
    path = tmp_path / "model.safetensors"
    theirs.save_file({"first.weight": peer.ones(3, 3), "other": peer.ones(1)}, path)
    expected = outcome(lambda: theirs.load_model(tied(peer), path, strict=strict))
    assert outcome(lambda: ours.load_model(tied(pullback), path, strict=strict)) == expected


def test_a_model_of_parts_of_a_larger_memory_is_refused_alike(tmp_path):
    errors = []
    for lib, st in ((peer, theirs), (pullback, ours)):
        model = lib.nn.Linear(2, 2)
        model.weight = lib.nn.Parameter(lib.ones(4, 2)[:2])
        errors.append(outcome(lambda: st.save_model(model, tmp_path / "x")))  # noqa: B023
    assert errors[0] == errors[1]
    assert errors[0][0] == "RuntimeError"


def test_saving_a_model_leaves_the_metadata_of_the_caller_alone(tmp_path):
    texts = {"format": "pt"}
    ours.save_model(tied(pullback), tmp_path / "x", metadata=texts)
    assert texts == {"format": "pt"}


def document(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


VALID = {
    "nothing": document({}),
    "spaces": document(b"  {}   "),
    "no metadata": document({"__metadata__": None}),
    "unknown field": document({"a": entry(extra=[1])}, bytes(8)),
    "two empty": document({"a": entry(shape=[0], offsets=[0, 0]), "b": entry(shape=[0, 5], offsets=[0, 0])}),
    "any order": document({"b": entry(offsets=[8, 16]), "a": entry()}, bytes(16)),
    "not aligned": document({"b": entry("U8", [1], [0, 1]), "a": entry(offsets=[1, 9])}, bytes(range(9))),
    "a truth of seven": document({"a": entry("BOOL", [3], [0, 3])}, b"\0\1\7"),
}


@pytest.mark.parametrize("name", VALID)
def test_what_the_package_reads_is_read(name, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(VALID[name])
    expected = theirs.load_file(path)
    for got in (ours.load_file(path), ours.load(VALID[name])):
        assert {n: (str(t.dtype), t.tolist()) for n, t in got.items()} == {
            n: (str(t.dtype), t.bool().tolist() if t.dtype == peer.bool else t.tolist()) for n, t in expected.items()
        }


def test_missing_names_and_closed_files_raise_the_same_errors(tmp_path):
    path = tmp_path / "x"
    ours.save_file({"a": pullback.ones(2)}, path)
    errors = []
    for opener in (ours.safe_open, package.safe_open):
        file = opener(path, "pt")
        errors.append([outcome(lambda: file.get_tensor("b")), outcome(lambda: file.get_slice("b"))])  # noqa: B023
        with file:
            pass
        errors[-1] += [outcome(lambda: file.keys()), outcome(lambda: file.get_tensor("a"))]  # noqa: B023
    assert errors[0] == errors[1]
    assert os.listdir(tmp_path) == ["x"]
