"""Files that want something to happen: nothing does."""

import io
import os
import pickle
import random
import zipfile
from collections import OrderedDict

import pytest

import pullback
from pullback.serialization.archive import ArchiveWriter

CLEAR = (pickle.UnpicklingError, RuntimeError, EOFError, NotImplementedError)


def file_with(content):
    """A checkpoint whose pickle is given."""
    file = io.BytesIO()
    writer = ArchiveWriter(file, "archive")
    writer.record("data.pkl", content)
    writer.record("data/0", b"\x00" * 16)
    writer.record("version", b"3\n")
    writer.close()
    file.seek(0)
    return file


class Runs:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "attack",
    [
        Runs(os.system, "echo hacked > hacked"),
        Runs(exec, "open('hacked', 'w')"),
        Runs(eval, "open('hacked', 'w')"),
        Runs(open, "hacked", "w"),
        Runs(getattr, "", "join"),
        Runs(OrderedDict, [(Runs(os.mkdir, "hacked"), 1)]),
    ],
    ids=["system", "exec", "eval", "open", "getattr", "nested"],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_code_in_a_file_is_refused_and_not_run(attack, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        pullback.load(file_with(pickle.dumps(attack, protocol)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_runs_code_only_where_weights_only_is_false(zipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = io.BytesIO()
    pullback.save({"x": pullback.ones(1), "code": Runs(os.mkdir, "made")}, file, _use_new_zipfile_serialization=zipped)
    for options in ({}, {"weights_only": True}, {"weights_only": None}):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            pullback.load(file, **options)
        assert os.listdir(tmp_path) == []
    for options in ({"weights_only": False}, {"pickle_module": pickle}):
        file.seek(0)
        assert pullback.load(file, **options)["x"].tolist() == [1.0]
        os.rmdir("made")


def test_what_a_trusted_file_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        pullback.load(file_with(pickle.dumps(Runs(divmod, 1, 0), 2)), weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match=r"^pickle data was truncated"):
        pullback.load(file_with(b"\x80\x02X\x09\x00\x00\x00a"), weights_only=False)


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"


def rebuilt(offset, size, stride, storage=STORAGE):
    """A pickle of one tensor on a storage of four floats."""

    def number(n):
        return b"\x8a\x0a" + n.to_bytes(10, "little", signed=True)

    def numbers(values):
        return b"(" + b"".join(number(v) for v in values) + b"t"

    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(size) + numbers(stride)
    return b"\x80\x02" + call + b"\x89ccollections\nOrderedDict\n)RtR."


def test_the_pickle_of_a_tensor_written_by_hand_is_read():
    assert pullback.load(file_with(rebuilt(0, [2, 2], [2, 1]))).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, [5], [1]),
        (1, [4], [1]),
        (-1, [1], [1]),
        (0, [2], [-1]),
        (0, [-2], [1]),
        (2**61, [1], [1]),
        (0, [2**61, 2**61], [1, 1]),
        (0, [2], [2**61]),
        (0, [2, 2], [1]),
        (0, [1] * 100, [1] * 100),
    ],
)
def test_a_tensor_cannot_look_outside_its_storage(offset, size, stride):
    with pytest.raises(CLEAR):
        pullback.load(file_with(rebuilt(offset, size, stride)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"\x80\x02.",
        b"\x80\x09N.",
        b"\x80\x02(.",
        b"\x80\x02K\x01h\x05.",
        b"\x80\x02]K\x01K\x02s.",
        b"\x80\x02t.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"\x80\x02}](K\x01u.",
        b"\x80\x02}(]K\x01u.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}(X\x08\x00\x00\x00__code__K\x01ub.",
        b"\x80\x02ccollections\nOrderedDict\n}(X\x04\x00\x00\x00itemsK\x01ub.",
        b"\x80\x02cbuiltins\nlist\n(K\x01tR.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02" + STORAGE.replace(b"FloatStorage", b"Size") + b".",
        b"\x80\x02" + STORAGE.replace(b"K\x04t", b"K\xfft") + b".",
        b"\x80\x02" + STORAGE.replace(b"\x000X", b"\x009X") + b".",
        b"\x80\x02ccollections\ndefaultdict\ncposix\nsystem\n\x85R.",
        b"\x80\x02cbuiltins\nbytearray\n\x8a\x06\xff\xff\xff\xff\xff\x7f\x85R.",
    ],
)
def test_nonsense_is_refused(content):
    with pytest.raises(CLEAR):
        pullback.load(file_with(content))


def test_a_compressed_record_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps([0] * 10**6, 2))
    file.seek(0)
    with pytest.raises(RuntimeError, match="compressed"):
        pullback.load(file)


def checkpoint(zipped=True):
    file = io.BytesIO()
    weight = pullback.arange(12.0).reshape(3, 4)
    state = {"weight": weight, "view": weight.t(), "p": pullback.nn.Parameter(pullback.ones(2)), "step": 3, "lr": 0.1}
    pullback.save(
        {"state": state, "names": ["a", "b"], "extra": OrderedDict(x=(1, None))},
        file,
        _use_new_zipfile_serialization=zipped,
    )
    return file.getvalue()


def mutated(content, rng):
    """The same bytes with a few changed, removed, doubled or exchanged."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(data) or 1)
        kind = rng.randrange(5)
        if not data:
            break
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at : at + rng.randrange(1, 30)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randrange(1, 30)]
        else:
            data = data[: max(at, 1)]
    return bytes(data)


@pytest.mark.parametrize("what", ["file", "pickle", "old file", "mapped file"])
def test_a_thousand_damaged_files_end_in_a_clear_error_or_in_tensors(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = checkpoint(zipped=what != "old file")

    def load(content):
        if what == "mapped file":
            with open("damaged.pt", "wb") as file:
                file.write(content)
            try:
                return pullback.load("damaged.pt", mmap=True)
            finally:
                os.unlink("damaged.pt")
        return pullback.load(file_with(content) if what == "pickle" else io.BytesIO(content))

    if what == "pickle":
        with zipfile.ZipFile(io.BytesIO(original)) as archive:
            original = archive.read("archive/data.pkl")
    rng = random.Random(what)
    refused = 0
    for _ in range(1000):
        content = mutated(original, rng)
        try:
            value = load(content)
        except CLEAR as error:
            assert str(error) or isinstance(error, EOFError)
            refused += 1
        else:
            repr(value)
    assert refused > 100
    assert os.listdir(tmp_path) == []


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.pt"
    pullback.save([1, 2], path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        pullback.save([pullback.ones(3), lambda: None], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.pt"]


def test_classes_can_be_declared_safe():
    file = io.BytesIO()
    pullback.save({"point": Point(3)}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        pullback.load(file)
    file.seek(0)
    with pullback.serialization.safe_globals([Point]):
        assert pullback.serialization.get_safe_globals() == [Point]
        assert pullback.load(file)["point"].x == 3
    assert pullback.serialization.get_safe_globals() == []


class Point:
    def __init__(self, x):
        self.x = x


def test_a_trusted_file_may_name_anything_importable():
    file = io.BytesIO()
    pullback.save({"module": pullback.nn.Linear(2, 1), "call": os.path.join}, file)
    file.seek(0)
    got = pullback.load(file, weights_only=False)
    assert got["call"] is os.path.join
    assert got["module"](pullback.ones(2)).shape == (1,)


def test_records_start_on_boundaries_of_64_bytes():
    content = checkpoint()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            name_length, extra_length = (
                content[info.header_offset + 26],
                int.from_bytes(content[info.header_offset + 28 : info.header_offset + 30], "little"),
            )
            assert (info.header_offset + 30 + name_length + extra_length) % 64 == 0


DEEP = b")" + b"\x85" * 300_000
"""A tuple in a tuple in a tuple: taking its hash would end the interpreter."""
WIDE = b"K\x01" + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(60))
"""A pair of a pair of a pair, each twice the one before: taking its hash, or writing it down, would never end."""


@pytest.mark.parametrize("value", [DEEP, WIDE], ids=["deep", "wide"])
@pytest.mark.parametrize(
    "frame",
    [
        b"}(%bNu.",
        b"}%bNs.",
        b"\x8f(%b\x90.",
        b"(%b\x91.",
        b"ccollections\nOrderedDict\n](](%bK\x01ea\x85R.",
        b"cbuiltins\nset\n](%be\x85R.",
        b"%b)R.",
        b"%b)\x81.",
        b"%bQ.",
        b"ctorch\nSize\n%b\x85Q.",
        b"ctorch\ndevice\n%b\x85R.",
        b"ccollections\ndefaultdict\n%b\x85R.",
    ],
)
def test_a_value_nested_without_end_is_refused_where_it_would_be_walked(frame, value):
    with pytest.raises(CLEAR):
        pullback.load(file_with(b"\x80\x02" + frame.replace(b"%b", value)))
