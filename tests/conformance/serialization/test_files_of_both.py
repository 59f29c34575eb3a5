"""Files written by torch and read by pullback, and the other way round."""

import io
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest
import torch as peer

import pullback

DIRECTIONS = pytest.mark.parametrize(
    ("writer", "reader"), [(peer, pullback), (pullback, peer), (pullback, pullback)], ids=["to-us", "to-torch", "own"]
)


def travel(writer, reader, value, **options):
    file = io.BytesIO()
    writer.save(value, file, **options)
    file.seek(0)
    return reader.load(file)


def numbers(tensor):
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return tensor.detach().resolve_conj().resolve_neg().numpy()


DTYPES = ["float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16"]
DTYPES += ["uint32", "uint64", "bool", "complex64", "complex128"]


@DIRECTIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives(writer, reader, dtype):
    got = travel(writer, reader, writer.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(writer, dtype)))
    assert got.dtype == getattr(reader, dtype)
    assert np.array_equal(numbers(got), numbers(writer.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(writer, dtype))))


@DIRECTIONS
def test_strides_offsets_and_shared_memory_survive(writer, reader):
    base = writer.arange(24.0).reshape(4, 6)
    got = travel(writer, reader, [base, base.t(), base[1:, ::2], base[2], base.expand(2, 4, 6)])
    assert [t.stride() for t in got] == [(6, 1), (1, 6), (6, 2), (1,), (0, 6, 1)]
    assert [t.storage_offset() for t in got] == [0, 0, 6, 12, 0]
    assert len({t.untyped_storage().data_ptr() for t in got}) == 1
    got[0][2, 0] = 100.0
    assert got[3][0].item() == 100.0 and got[1][0, 2].item() == 100.0


@DIRECTIONS
def test_empty_and_scalar_tensors_survive(writer, reader):
    got = travel(writer, reader, [writer.empty(0, 3), writer.tensor(2.5), writer.zeros(2, 0, 4)])
    assert [tuple(t.shape) for t in got] == [(0, 3), (), (2, 0, 4)]
    assert got[1].item() == 2.5


@DIRECTIONS
def test_requires_grad_and_parameters_survive(writer, reader):
    leaf, weight = writer.ones(2, requires_grad=True), writer.nn.Parameter(writer.ones(2, 2))
    frozen = writer.nn.Parameter(writer.zeros(3), requires_grad=False)
    got = travel(writer, reader, {"leaf": leaf, "weight": weight, "frozen": frozen})
    assert got["leaf"].requires_grad and got["leaf"].is_leaf
    assert type(got["weight"]) is reader.nn.Parameter and got["weight"].requires_grad
    assert type(got["frozen"]) is reader.nn.Parameter and not got["frozen"].requires_grad


@DIRECTIONS
def test_conjugated_tensors_survive(writer, reader):
    z = writer.tensor([1 + 2j, 3 - 4j])
    assert numbers(travel(writer, reader, z.conj())).tolist() == [1 - 2j, 3 + 4j]
    assert numbers(travel(writer, reader, z.conj().imag)).tolist() == [-2.0, 4.0]


@pytest.mark.parametrize("torch", [peer, pullback])
def test_the_same_memory_as_two_dtypes_is_refused(torch):
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([x, x.view(torch.int32)], io.BytesIO())


@DIRECTIONS
def test_plain_values_and_containers_survive(writer, reader):
    value = {
        "numbers": [1, -5, 2**40, -(2**70), 2.5, float("inf"), 1 + 2j, True, None],
        "text": ["", "Grüße", "x" * 300],
        "bytes": b"\x00\xff",
        "tuple": (1, (2, (3,)), ()),
        "set": {1, "a"},
        "ordered": OrderedDict(a=1, b=OrderedDict()),
        "counter": Counter("aab"),
        3: {(1, 2): "tuple key"},
    }
    assert travel(writer, reader, value) == value


@DIRECTIONS
def test_sizes_dtypes_and_devices_survive(writer, reader):
    got = travel(writer, reader, [writer.Size([2, 3]), writer.float16, writer.int64, writer.device("cpu")])
    assert got == [reader.Size([2, 3]), reader.float16, reader.int64, reader.device("cpu")]
    assert type(got[0]) is reader.Size


@DIRECTIONS
def test_the_same_list_twice_is_one_list(writer, reader):
    shared = [writer.ones(1)]
    got = travel(writer, reader, [shared, shared])
    assert got[0] is got[1]


@DIRECTIONS
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_state_dict_survives(writer, reader, protocol):
    if reader is peer and protocol != 2:
        pytest.skip("torch's careful reader warns of other protocols than 2")
    model = writer.nn.Sequential(writer.nn.Linear(3, 4), writer.nn.ReLU(), writer.nn.Linear(4, 2))
    got = travel(writer, reader, model.state_dict(), pickle_protocol=protocol)
    other = reader.nn.Sequential(reader.nn.Linear(3, 4), reader.nn.ReLU(), reader.nn.Linear(4, 2))
    other.load_state_dict(got)
    assert got._metadata == model.state_dict()._metadata
    for name, value in model.state_dict().items():
        assert np.array_equal(numbers(other.state_dict()[name]), numbers(value))


@DIRECTIONS
def test_the_state_of_an_optimizer_survives(writer, reader):
    def optimizer_of(torch, steps):
        p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        optimizer = torch.optim.Adam([p], lr=0.1, amsgrad=True)
        for _ in range(steps):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p, optimizer

    p, optimizer = optimizer_of(writer, 3)
    q, resumed = optimizer_of(reader, 0)
    state = travel(writer, reader, {"p": p.detach(), "optimizer": optimizer.state_dict()})
    with reader.no_grad():
        q.copy_(state["p"])
    resumed.load_state_dict(state["optimizer"])
    for parameter, o in ((p, optimizer), (q, resumed)):
        o.zero_grad()
        (parameter * parameter).sum().backward()
        o.step()
    assert np.allclose(numbers(p), numbers(q), rtol=1e-6)


def test_files_of_the_old_format_are_read():
    value = {"a": peer.arange(6.0).reshape(2, 3), "b": [peer.ones(2, dtype=peer.int64), "text"]}
    value["c"] = value["a"].t()
    file = io.BytesIO()
    peer.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    got = pullback.load(file)
    assert np.array_equal(got["a"].numpy(), value["a"].numpy()) and got["b"][0].tolist() == [1, 1]
    assert got["c"].stride() == (1, 3)
    assert got["c"].untyped_storage().data_ptr() == got["a"].untyped_storage().data_ptr()


def test_files_of_a_big_endian_machine_are_read():
    import zipfile

    from pullback.serialization.archive import ArchiveWriter

    original = io.BytesIO()
    peer.save([peer.tensor([1.0, 2.5]), peer.tensor([1 + 2j]), peer.tensor([7], dtype=peer.int16)], original)
    source, target = zipfile.ZipFile(original), io.BytesIO()
    writer = ArchiveWriter(target, "archive")
    for record, item in (("data/0", "f4"), ("data/1", "c8"), ("data/2", "i2")):
        writer.record(record, np.frombuffer(source.read(f"archive/{record}"), item).byteswap().tobytes())
    writer.record("data.pkl", source.read("archive/data.pkl"))
    writer.record("byteorder", b"big")
    writer.close()
    target.seek(0)
    assert [t.tolist() for t in pullback.load(target)] == [[1.0, 2.5], [1 + 2j], [7]]


def outcome(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(
    "program",
    [
        lambda torch, file: torch.load(file, map_location="cuda"),
        lambda torch, file: torch.load(file, weights_only=True, pickle_module=io),
        lambda torch, file: torch.load(5),
        lambda torch, file: torch.save({}, 5),
        lambda torch, file: torch.save({}, "/does/not/exist.pt"),
        lambda torch, file: torch.load("/does/not/exist.pt"),
        lambda torch, file: torch.load(io.BytesIO(file.getvalue()[:-30])),
    ],
    ids=["cuda", "pickle module", "load a number", "save to a number", "no folder", "no file", "cut off"],
)
def test_errors_are_torchs(program):
    results = []
    for torch in (peer, pullback):
        file = io.BytesIO()
        torch.save([torch.ones(2)], file)
        file.seek(0)
        results.append(outcome(lambda torch=torch, file=file: program(torch, file)))
    assert results[0] == results[1]


@pytest.mark.parametrize("location", ["cpu", {"cuda:0": "cpu"}, lambda storage, where: storage])
def test_storages_of_other_devices_can_be_mapped_to_the_cpu(location):
    file = io.BytesIO()
    peer.save(peer.ones(2), file)
    content = file.getvalue()
    file.seek(0)
    assert pullback.load(file, map_location=location).tolist() == [1.0, 1.0]
    assert content.count(b"cpu") == 1


def test_a_defaultdict_of_lists_is_read():
    file = io.BytesIO()
    peer.save(defaultdict(list, a=[1]), file)
    file.seek(0)
    got = pullback.load(file)
    assert type(got) is defaultdict and got["a"] == [1] and got["b"] == []
