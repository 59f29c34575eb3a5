"""A file takes memory for what it holds, whatever it says: records that overlap, lengths that lie, copies of copies."""

import io
import os
import pickle
import random
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import pullback
from pullback.serialization import npz, safetensors
from pullback.serialization.archive import ArchiveWriter

CLEAR = (pickle.UnpicklingError, RuntimeError, EOFError, NotImplementedError, ValueError, safetensors.SafetensorError)
MB = 2**20


def peak_of(program):
    """The most memory a program has had at once, and what it gave or raised."""
    tracemalloc.start()
    try:
        try:
            out = program()
        except CLEAR as error:
            out = error
        return tracemalloc.get_traced_memory()[1], out
    finally:
        tracemalloc.stop()


def entry(name, size, offset, crc=0, method=0, packed=None):
    """An entry of a zip file's directory."""
    packed = size if packed is None else packed
    fixed = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, method, 0, 33, crc, packed, size, len(name), 0, 0, 0, 0, 0, offset
    )
    return fixed + name


def with_directory(records, entries):
    directory = b"".join(entries)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(directory), len(records), 0)
    return io.BytesIO(records + directory + end)


def header(name, size):
    return struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, size, size, len(name), 0) + name


def storages(count, length):
    """A pickle of tensors, each on a storage of its own."""
    file = io.BytesIO()
    pullback.save([pullback.ones(1) for _ in range(count)], file)
    with zipfile.ZipFile(file) as archive:
        content = archive.read("archive/data.pkl")
    return re.sub(
        rb"(cpuq.|h.)K\x01tq(.)Q", lambda m: m[1] + b"J" + struct.pack("<i", length) + b"tq" + m[2] + b"Q", content
    )


def overlapping(count, size):
    """A zip file whose directory names the same bytes many times."""
    content = storages(count, 1)
    records = header(b"archive/data.pkl", len(content)) + content
    entries = [entry(b"archive/data.pkl", len(content), 0, zipfile.crc32(content))]
    place, block = len(records), bytes(size)
    records += header(b"archive/data/0", size) + block
    crc = zipfile.crc32(block)
    entries += [entry(f"archive/data/{i}".encode(), size, place, crc) for i in range(count)]
    return with_directory(records, entries)


def archive_of(**records):
    """A checkpoint of the given records."""
    file = io.BytesIO()
    with ArchiveWriter(file, "archive") as writer:
        for name, content in records.items():
            writer.record({"pickle": "data.pkl"}.get(name, f"data/{name.removeprefix('n')}"), content)
    file.seek(0)
    return file


def test_the_file_made_by_hand_is_read_when_it_does_not_overlap():
    assert [x.tolist() for x in pullback.load(overlapping(1, 4))] == [[0.0]]


@pytest.mark.parametrize("mapped", [False, True])
def test_records_that_overlap_are_refused(mapped, tmp_path):
    file = overlapping(100, MB)
    (tmp_path / "a.pt").write_bytes(file.getvalue())
    peak, out = peak_of(lambda: pullback.load(tmp_path / "a.pt", mmap=mapped))
    assert isinstance(out, RuntimeError) and "PytorchStreamReader failed" in str(out)
    assert peak < 10 * MB


def test_a_record_that_lies_inside_another_is_refused():
    content = storages(2, 1)
    inner = header(b"archive/data/1", 4) + bytes(4)
    records = header(b"archive/data.pkl", len(content)) + content
    place = len(records)
    outer = header(b"archive/data/0", len(inner)) + inner
    entries = [
        entry(b"archive/data.pkl", len(content), 0, zipfile.crc32(content)),
        entry(b"archive/data/0", len(inner), place, zipfile.crc32(inner)),
        entry(b"archive/data/1", 4, place + len(outer) - len(inner), zipfile.crc32(bytes(4))),
    ]
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
        pullback.load(with_directory(records + outer, entries))


def test_two_records_of_one_name_are_refused():
    content = pickle.dumps(1, 2)
    one = header(b"archive/data.pkl", len(content)) + content
    entries = [entry(b"archive/data.pkl", len(content), at, zipfile.crc32(content)) for at in (0, len(one))]
    assert pullback.load(with_directory(one, entries[:1])) == 1
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
        pullback.load(with_directory(one + one, entries))


@pytest.mark.parametrize("size", [2**20, 2**31, 2**32 - 2])
def test_a_record_longer_than_the_file_is_refused(size):
    content = pickle.dumps(1, 2)
    one = header(b"archive/data.pkl", len(content)) + content
    peak, out = peak_of(lambda: pullback.load(with_directory(one, [entry(b"archive/data.pkl", size, 0)])))
    assert isinstance(out, RuntimeError) and peak < MB


@pytest.mark.parametrize("method", [0, 8])
def test_a_record_that_would_be_larger_unpacked_is_refused(method):
    content = pickle.dumps(1, 2)
    one = header(b"archive/data.pkl", len(content)) + content
    lying = entry(b"archive/data.pkl", 2**31, 0, method=method, packed=len(content))
    peak, out = peak_of(lambda: pullback.load(with_directory(one, [lying])))
    assert isinstance(out, RuntimeError) and "compressed" in str(out) and peak < MB


def test_storages_that_are_not_read_are_as_large_as_their_records():
    file = archive_of(pickle=storages(1, 2**30), n0=bytes(4))
    with pullback.serialization.skip_data():
        peak, out = peak_of(lambda: pullback.load(file))
    assert isinstance(out, pickle.UnpicklingError) and "shorter than the file says" in str(out) and peak < MB


def test_storages_of_an_old_file_are_together_no_larger_than_the_file():
    file = io.BytesIO()
    pullback.save([pullback.ones(10) for _ in range(200)], file, _use_new_zipfile_serialization=False)
    content = file.getvalue()
    lying = content.replace(b"K\nN", b"J" + struct.pack("<i", MB // 4) + b"N") + bytes(2 * MB)
    assert len(lying) > len(content) + 2 * MB
    peak, out = peak_of(lambda: pullback.load(io.BytesIO(lying)))
    assert isinstance(out, pickle.UnpicklingError) and "longer than the file" in str(out)
    assert peak < 30 * MB


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"cbuiltins\nbytearray\nq\x00B" + struct.pack("<I", MB) + bytes(MB) + b"q\x01", b"h\x00h\x01\x85R0"),
        (b"cbuiltins\nset\nq\x00(" + b"K\x01" * MB + b"tq\x01", b"h\x00h\x01\x85R0"),
        (b"ctorch\nSize\nq\x00(" + b"K\x01" * MB + b"tq\x01", b"h\x00h\x01\x85R0"),
        (
            b"ccollections\nOrderedDict\nq\x00}("
            + b"".join(b"X\x05\x00\x00\x00%05dN" % i for i in range(50_000))
            + b"uq\x01",
            b"h\x00)Rh\x01b0",
        ),
    ],
    ids=["bytes", "set", "size", "attributes"],
)
def test_a_pickle_cannot_have_its_content_copied_without_end(begin, again):
    def file(times):
        return archive_of(pickle=b"\x80\x02" + begin + again * times + b"K\x07.")

    assert pullback.load(file(2)) == 7
    with pytest.raises(pickle.UnpicklingError, match="copies its content too often"):
        pullback.load(file(10_000))


def test_records_of_an_npz_file_that_overlap_are_refused(tmp_path):
    inner = io.BytesIO()
    np.save(inner, np.zeros(MB, np.uint8))
    block = inner.getvalue()
    records = header(b"0.npy", len(block)) + block
    entries = [entry(f"{i}.npy".encode(), len(block), 0, zipfile.crc32(block)) for i in range(100)]
    (tmp_path / "a.npz").write_bytes(with_directory(records, entries[:1]).getvalue())
    assert npz.load_npz(tmp_path / "a.npz")["0"].shape == (MB,)
    (tmp_path / "a.npz").write_bytes(with_directory(records, entries).getvalue())
    peak, out = peak_of(lambda: npz.load_npz(tmp_path / "a.npz"))
    assert isinstance(out, ValueError) and peak < 10 * MB


# ------------------------------------------------------------------ files with wrong numbers in them


def whole_file(kind):
    tensors = {"a": pullback.arange(300.0), "b": pullback.ones(7, 5).t(), "c": pullback.zeros(4, dtype=pullback.int64)}
    if kind == "safetensors":
        return safetensors.save({name: tensor.contiguous() for name, tensor in tensors.items()})
    file = io.BytesIO()
    pullback.save(tensors, file, _use_new_zipfile_serialization=kind != "old")
    return file.getvalue()


def with_numbers(content, first, rng):
    """The same bytes with a few places, none before the first, that say a number nobody expects."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        width = rng.choice([1, 2, 4, 8])
        at = rng.randrange(first, len(data) - width)
        number = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63, 2**64 - 1, rng.getrandbits(64), len(data)])
        data[at : at + width] = (number % 256**width).to_bytes(width, "little")
    return bytes(data)


@pytest.mark.parametrize("kind", ["directory", "zip", "mapped", "pickle", "old", "safetensors"])
def test_files_with_wrong_numbers_end_in_a_clear_error_or_in_tensors_and_take_little_memory(kind, tmp_path):
    rng = random.Random(kind)
    whole = whole_file(kind)
    path = str(tmp_path / "a.pt")

    def load(content):
        if kind == "safetensors":
            return safetensors.load(content)
        if kind == "pickle":
            return pullback.load(archive_of(pickle=content, n0=bytes(1200), n1=bytes(140), n2=bytes(32)))
        if kind == "mapped":
            with open(path, "wb") as file:
                file.write(content)
            return pullback.load(path, mmap=True)
        return pullback.load(io.BytesIO(content))

    first = 0
    if kind == "directory":
        first = whole.index(b"PK\x01\x02")
    if kind == "pickle":
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            whole = archive.read("archive/data.pkl")
    assert sorted(load(whole)) == ["a", "b", "c"]
    refused = 0

    def all_of_them():
        nonlocal refused
        for _ in range(300):
            try:
                value = load(with_numbers(whole, first, rng))
            except CLEAR as error:
                assert str(error) or isinstance(error, EOFError)
                refused += 1
            else:
                repr(value)

    peak, out = peak_of(all_of_them)
    assert out is None, out
    assert refused > 30 and peak < 10 * MB
    assert os.listdir(tmp_path) == (["a.pt"] if kind == "mapped" else [])
