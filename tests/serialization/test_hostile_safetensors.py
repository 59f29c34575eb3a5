"""safetensors and .npz files that lie about themselves: a clear error, and no memory for what is not there."""

import io
import json
import os
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import pullback
from pullback.serialization.npz import load_npz, save_npz
from pullback.serialization.safetensors import SafetensorError, load, load_file, safe_open, save, save_file


def document(header, data=b"", length=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


TWICE = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'

HOSTILE = {
    "empty": (b"", "header too small"),
    "seven bytes": (bytes(7), "header too small"),
    "no header": (bytes(8), "invalid JSON"),
    "length beyond the end": (document(b"{}", length=50), "invalid header length"),
    "length of a gigabyte": (document(b"{}", length=10**9), "header too large"),
    "largest length": (document(b"{}", length=2**64 - 1), "header too large"),
    "no JSON": (document(b"{abc"), "invalid JSON"),
    "more than JSON": (document(b"{}x"), "invalid JSON"),
    "no UTF-8": (document(b'{"\xff":1}'), "invalid UTF-8"),
    "UTF-16": (document("{}".encode("utf-16")), "invalid UTF-8"),
    "mark of the byte order": (document(b"\xef\xbb\xbf{}"), "invalid JSON"),
    "half a character": (document(b'{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'), "not text"),
    "list": (document(b"[]"), "not an object"),
    "number": (document(b"5"), "not an object"),
    "NaN": (document(b'{"a":NaN}'), "not JSON"),
    "very deep lists": (document(b"[" * 10**6), "nested too deeply"),
    "very deep objects": (document(b'{"a":' * 10**5), "nested too deeply"),
    "very long number": (document(b'{"a":' + b"9" * 10**5 + b"}"), "invalid JSON"),
    "name twice": (document(TWICE, b"\0"), "duplicate key 'a'"),
    "field twice": (document(b'{"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}}'), "duplicate key"),
    "metadata twice": (document(b'{"__metadata__":{},"__metadata__":{}}'), "duplicate key"),
    "text twice": (document(b'{"__metadata__":{"a":"1","a":"2"}}'), "duplicate key"),
    "metadata of numbers": (document({"__metadata__": {"a": 1}}), "texts to texts"),
    "metadata of text": (document({"__metadata__": "x"}), "texts to texts"),
    "tensor of text": (document({"a": "x"}), "not an object"),
    "no shape": (document({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)), "missing field `shape`"),
    "unknown dtype": (document({"a": entry("F31")}, bytes(8)), "unknown dtype 'F31'"),
    "dtype of a list": (document({"a": entry(["F32"])}, bytes(8)), "unknown dtype"),
    "shape of text": (document({"a": entry(shape="2")}, bytes(8)), "the shape of tensor `a`"),
    "negative size": (document({"a": entry(shape=[-2])}, bytes(8)), "the shape of tensor `a`"),
    "size with a point": (document({"a": entry(shape=[2.0])}, bytes(8)), "the shape of tensor `a`"),
    "size of truth": (document({"a": entry(shape=[True, 2])}, bytes(8)), "the shape of tensor `a`"),
    "very large size": (document({"a": entry(shape=[2**70])}, bytes(8)), "the shape of tensor `a`"),
    "too many dimensions": (document({"a": entry("U8", [1] * 65, [0, 1])}, b"\0"), "at most 64 sizes"),
    "product that overflows": (document({"a": entry(shape=[2**40, 2**40])}, bytes(8)), "overflow"),
    "product that wraps to its size": (document({"a": entry("U8", [2**32, 2**32], [0, 0])}), "overflow"),
    "overflow behind a zero": (document({"a": entry(shape=[0, 2**64 - 1], offsets=[0, 0])}), "overflow"),
    "overflow hidden by a zero": (document({"a": entry(shape=[2**62, 2**62, 0], offsets=[0, 0])}), "overflow"),
    "shape too large": (document({"a": entry(shape=[3])}, bytes(8)), "takes 12 bytes, and its offsets leave 8"),
    "shape too small": (document({"a": entry(shape=[1])}, bytes(8)), "takes 4 bytes, and its offsets leave 8"),
    "petabytes": (document({"a": entry("U8", [10**15], [0, 10**15])}, bytes(8)), "not fully covered"),
    "half a byte": (document({"a": entry("F4", [3], [0, 1])}, b"\0"), "byte boundary"),
    "one offset": (document({"a": entry(offsets=[8])}, bytes(8)), "the data_offsets of tensor `a`"),
    "three offsets": (document({"a": entry(offsets=[0, 8, 8])}, bytes(8)), "the data_offsets of tensor `a`"),
    "negative offset": (document({"a": entry(offsets=[-8, 0])}, bytes(8)), "the data_offsets of tensor `a`"),
    "reversed offsets": (document({"a": entry(offsets=[8, 0])}, bytes(8)), "before it starts"),
    "overlap": (document({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)), "`b`: it overlaps"),
    "same bytes": (document({"a": entry(), "b": entry()}, bytes(8)), "`b`: it overlaps"),
    "hole": (document({"a": entry(), "b": entry(offsets=[12, 20])}, bytes(20)), "`b`: it leaves a hole"),
    "hole at the start": (document({"a": entry(offsets=[4, 12])}, bytes(12)), "`a`: it leaves a hole"),
    "beyond the end": (document({"a": entry()}, bytes(4)), "not fully covered"),
    "more data than tensors": (document({"a": entry()}, bytes(12)), "not fully covered"),
    "data without tensors": (document({}, bytes(3)), "not fully covered"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_that_lies_is_refused(name, tmp_path):
    content, reason = HOSTILE[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    for read in (lambda: load(content), lambda: load_file(path), lambda: safe_open(path, "pt")):
        with pytest.raises(SafetensorError, match=r"^Error while deserializing header: ") as caught:
            read()
        assert reason in str(caught.value)


def test_a_header_of_more_than_100_megabytes_is_not_even_read(tmp_path):
    path = tmp_path / "model.safetensors"
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 150_000_000))
        file.truncate(200_000_000)  # a sparse file: no bytes are written
    tracemalloc.start()
    try:
        with pytest.raises(SafetensorError, match="header too large"):
            load_file(path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["petabytes", "product that overflows", "length of a gigabyte", "beyond the end"])
def test_no_memory_is_asked_for_before_the_header_is_believed(name, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name][0])
    tracemalloc.start()
    try:
        with pytest.raises(SafetensorError):
            load_file(path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_a_file_cut_after_it_was_opened_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"x": pullback.ones(1_000_000)}, path)  # more than opening reads ahead
    with safe_open(path, "pt") as file:
        os.truncate(path, 1000)
        with pytest.raises(SafetensorError, match="shorter"):
            file.get_tensor("x")


def test_a_dtype_that_does_not_exist_here_leaves_the_other_tensors_readable(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(document({"a": entry(), "b": entry("F4", [2], [8, 9])}, bytes(9)))
    with safe_open(path, "pt") as file:
        assert file.get_tensor("a").tolist() == [0.0, 0.0]
        with pytest.raises(NotImplementedError, match="tensor `b` has the dtype F4"):
            file.get_tensor("b")
    with pytest.raises(NotImplementedError, match="tensor `b`"):
        load_file(path)


def mutated(content, rng):
    """The same bytes with a few changed, removed, doubled or cut."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.randrange(1, 30)
        kind = rng.randrange(6)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            data[at : at + 1] = rng.choice(b'0123456789[]{}",:-.e').to_bytes(1, "little")
        else:
            data = data[: max(at, 1)]
    return bytes(data)


def checkpoint():
    weight = pullback.arange(12.0).reshape(3, 4)
    tensors = {"weight": weight, "bias": pullback.ones(2).half(), "step": pullback.tensor(3)}
    tensors |= {"mask": pullback.tensor([True, False]), "empty": pullback.zeros(0, 3), "bytes": pullback.ones(3).byte()}
    return tensors


@pytest.mark.parametrize("what", ["file", "header"])
def test_a_thousand_damaged_files_end_in_a_clear_error_or_in_tensors(what, tmp_path):
    original = save(checkpoint(), metadata={"format": "pt", "é": "☃"})
    length = struct.unpack("<Q", original[:8])[0]
    header, data = original[8 : 8 + length], original[8 + length :]
    path = tmp_path / "model.safetensors"
    rng = random.Random(what)
    refused = 0
    for _ in range(1000):
        content = mutated(original, rng) if what == "file" else document(mutated(header, rng), data)
        path.write_bytes(content)
        try:
            value = load(content)
        except (SafetensorError, NotImplementedError) as error:
            assert str(error)
            refused += 1
            with pytest.raises(type(error)):
                load_file(path)
        else:
            assert sum(tensor.nbytes for tensor in value.values()) <= len(content)
            again = load_file(path)
            assert list(value) == list(again)
            for name, tensor in value.items():
                np.testing.assert_array_equal(tensor.numpy(), again[name].numpy())
    assert 500 < refused < 1000
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_file({"x": pullback.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="non contiguous"):
        save_file({"x": pullback.ones(2, 3).t()}, path)
    monkeypatch.setattr("pullback.serialization.safetensors.contents", lambda *_: [b"abc", None])
    with pytest.raises(TypeError):
        save_file({"x": pullback.ones(2)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_directory_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(SafetensorError, match=r"I/O error: No such file or directory \(os error 2\) at path .*nowhere"):
        save_file({}, tmp_path / "nowhere" / "x")


@pytest.mark.parametrize(("name", "error"), [("__metadata__", ValueError), ("\ud800", SafetensorError)])
def test_a_name_that_could_not_be_read_again_is_not_written(name, error):
    with pytest.raises(error):
        save({name: pullback.ones(1)})


# ------------------------------------------------------------------ .npz


def test_tensors_travel_through_npz_files_and_numpy_reads_them(tmp_path):
    path = tmp_path / "model.npz"
    model = pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.BatchNorm1d(3))
    tensors = {**model.state_dict(), **checkpoint(), "file": weight().t(), "a/b": pullback.ones(1) * 2j}
    save_npz(path, tensors)
    got = load_npz(path)
    assert list(got) == list(tensors)
    with np.load(path, allow_pickle=False) as arrays:
        for name, tensor in tensors.items():
            assert got[name].dtype is tensor.dtype
            np.testing.assert_array_equal(got[name].numpy(), tensor.numpy())
            np.testing.assert_array_equal(arrays[name], tensor.numpy())


def weight():
    return pullback.arange(6.0).reshape(2, 3)


def test_bfloat16_is_stored_as_its_bits(tmp_path):
    path = tmp_path / "model.npz"
    tensors = {"x": weight().bfloat16().t(), "y": weight(), "z": pullback.tensor(1.5, dtype=pullback.bfloat16)}
    save_npz(path, tensors)
    got = load_npz(path)
    assert [t.dtype for t in got.values()] == [pullback.bfloat16, pullback.float32, pullback.bfloat16]
    assert got["x"].tolist() == weight().t().tolist() and got["z"].item() == 1.5
    with np.load(path, allow_pickle=False) as arrays:
        assert list(arrays["__bfloat16__"]) == ["x", "z"]
        numbers = (arrays["x"].astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(numbers, weight().t().numpy())


@pytest.mark.parametrize("save_arrays", [np.savez, np.savez_compressed])
def test_files_of_numpy_are_read(save_arrays, tmp_path):
    path = tmp_path / "x.npz"
    arrays = {
        "a": np.zeros((100, 100)),
        "swapped": np.arange(3, dtype=">i4"),
        "columns": np.asfortranarray(np.eye(2, 3)),
    }
    save_arrays(path, **arrays)
    got = load_npz(path)
    assert {name: tensor.tolist() for name, tensor in got.items()} == {n: a.tolist() for n, a in arrays.items()}


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.array([print], dtype=object), "unpickling"),
        (np.array(["text"]), "no tensor has"),
        (np.zeros(2, "i4,f4"), "no tensor has"),
        (np.array(["2020-01-01"], "M8[D]"), "no tensor has"),
    ],
)
def test_an_array_that_is_no_tensor_is_refused(array, reason, tmp_path):
    np.savez(tmp_path / "x.npz", x=array)
    with pytest.raises(ValueError, match=reason):
        load_npz(tmp_path / "x.npz")


def npy(shape="(2,)", kind="<f4", data=bytes(8)):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}".encode().ljust(118)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (npy(shape="(10**15,)"), "is no .npy file"),
        (npy(shape="(1000000000000000,)"), "has 8 bytes"),
        (npy(shape="(-2,)"), "has 8 bytes"),
        (npy(shape="(3,)"), "has 8 bytes"),
        (npy(kind="|V0"), "has 8 bytes"),
        (npy(kind="|O"), "unpickling"),
        (b"", "is no .npy file"),
        (b"\x93NUMPY\x09\x00", "is no .npy file"),
    ],
)
def test_an_array_that_lies_about_its_size_is_refused(content, reason, tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(ValueError, match=reason):
        load_npz(path)


def test_a_thousand_damaged_npz_files_end_in_a_clear_error_or_in_tensors(tmp_path):
    path = tmp_path / "model.npz"
    save_npz(path, checkpoint())
    original, rng = path.read_bytes(), random.Random(0)
    refused = 0
    for _ in range(1000):
        path.write_bytes(mutated(original, rng))
        try:
            value = load_npz(path)
        except ValueError as error:
            assert str(error)
            refused += 1
        else:
            repr(value)
    assert refused > 250


@pytest.mark.parametrize("tensors", [[1], {1: pullback.ones(1)}, {"x": 1}, {"x": np.ones(1)}])
def test_only_tensors_by_name_are_written_to_npz(tensors, tmp_path):
    with pytest.raises(TypeError):
        save_npz(tmp_path / "x.npz", tensors)
    assert os.listdir(tmp_path) == []


def test_a_name_npz_keeps_for_itself_is_refused(tmp_path):
    with pytest.raises(ValueError, match="__bfloat16__"):
        save_npz(tmp_path / "x.npz", {"__bfloat16__": pullback.ones(1)})


def test_a_stream_of_bytes_is_not_a_path():
    with pytest.raises(TypeError):
        load_file(io.BytesIO(save({})))
