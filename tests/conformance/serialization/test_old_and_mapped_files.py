"""The format of old, files that are mapped instead of read, and the settings of torch.serialization."""

import io
import mmap
import pickle
import tarfile
import warnings

import numpy as np
import pytest
import torch as peer

import pullback

DIRECTIONS = pytest.mark.parametrize(
    ("writer", "reader"), [(peer, pullback), (pullback, peer), (pullback, pullback)], ids=["to-us", "to-torch", "own"]
)
BOTH = pytest.mark.parametrize("torch", [peer, pullback], ids=["torch", "pullback"])


def old(writer, reader, value):
    file = io.BytesIO()
    writer.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return reader.load(file)


@DIRECTIONS
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
def test_every_dtype_survives_in_the_old_format(writer, reader, dtype):
    value = writer.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(writer, dtype))
    got = old(writer, reader, [value, value.t()])
    assert got[0].dtype == getattr(reader, dtype) and got[1].stride() == (1, 3)
    assert np.array_equal(got[0].numpy(), value.numpy()) and np.array_equal(got[1].numpy(), value.t().numpy())


@DIRECTIONS
def test_an_optimizer_and_its_model_survive_in_the_old_format(writer, reader):
    def made(torch):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        return model, optimizer

    (model, optimizer), (copy, again) = made(writer), made(reader)
    got = old(writer, reader, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    copy.load_state_dict(got["model"])
    again.load_state_dict(got["optimizer"])
    assert got["epoch"] == 3
    assert np.array_equal(copy[0].weight.detach().numpy(), model[0].weight.detach().numpy())


def test_an_old_file_replaces_another_only_when_it_is_complete(tmp_path):
    path = tmp_path / "old.pt"
    pullback.save(1, path, _use_new_zipfile_serialization=False)
    with pytest.raises(pickle.PicklingError):
        pullback.save([pullback.ones(2), lambda: 0], path, _use_new_zipfile_serialization=False)
    assert pullback.load(path) == 1


# ------------------------------------------------------------------ mapping


@DIRECTIONS
def test_a_mapped_file_gives_the_same_tensors(writer, reader, tmp_path):
    base = writer.arange(24.0).reshape(4, 6)
    writer.save({"base": base, "turned": base.t(), "none": writer.empty(0)}, tmp_path / "a.pt")
    got = reader.load(tmp_path / "a.pt", mmap=True)
    assert np.array_equal(got["base"].numpy(), base.numpy()) and got["turned"].stride() == (1, 6)
    assert got["base"].untyped_storage().data_ptr() == got["turned"].untyped_storage().data_ptr()


@BOTH
def test_writing_to_a_mapped_tensor_leaves_the_file_as_it_is(torch, tmp_path):
    path = str(tmp_path / "a.pt")
    torch.save(torch.arange(4.0), path)
    x = torch.load(path, mmap=True)
    x[0] = 9
    assert x.tolist() == [9, 1, 2, 3] and torch.load(path).tolist() == [0, 1, 2, 3]


@BOTH
def test_writing_to_a_shared_mapping_changes_the_file(torch, tmp_path):
    path = str(tmp_path / "a.pt")
    torch.save(torch.arange(4.0), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        x = torch.load(path, mmap=True)
    x[0] = 9
    assert torch.load(path, mmap=True).tolist() == [9, 1, 2, 3]
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE


def test_mapping_reads_nothing_before_it_is_used(tmp_path):
    path = tmp_path / "large.pt"
    pullback.save(pullback.zeros(2**20), path)
    memory = pullback.load(path, mmap=True).untyped_storage()._memory
    assert type(memory.base) is memoryview and type(memory.base.obj) is mmap.mmap


def test_a_directory_that_points_outside_the_mapped_file_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    pullback.save(pullback.ones(4), path)
    content = path.read_bytes()
    place = content.rindex(b"PK\x01\x02", 0, content.index(b"data/0", content.index(b"PK\x01\x02")))
    path.write_bytes(content[: place + 42] + (2**31 - 1).to_bytes(4, "little") + content[place + 46 :])
    with pytest.raises((RuntimeError, ValueError)):
        pullback.load(path, mmap=True)


# ------------------------------------------------------------------ settings


def outcome(program, torch, path):
    try:
        return str(program(torch, path)).replace("pullback", "torch")
    except Exception as error:
        return type(error).__name__, str(error).replace("pullback", "torch")


PROGRAMS = {
    "mmap of an old file": lambda torch, path: torch.load(path, mmap=True),
    "mmap of an open file": lambda torch, path: torch.load(io.BytesIO(), mmap=True),
    "unknown flags": lambda torch, path: torch.serialization.set_default_mmap_options(77),
    "unknown order": lambda torch, path: torch.serialization.set_default_load_endianness(3),
    "orders": lambda torch, path: list(torch.serialization.LoadEndianness),
    "default order": lambda torch, path: torch.serialization.get_default_load_endianness(),
    "checksums": lambda torch, path: torch.serialization.get_crc32_options(),
    "names in an old file": lambda torch, path: torch.serialization.get_unsafe_globals_in_checkpoint(path),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_and_errors_are_torchs(name, tmp_path):
    path = str(tmp_path / "old.pt")
    peer.save(peer.ones(2), path, _use_new_zipfile_serialization=False)
    assert outcome(PROGRAMS[name], pullback, path) == outcome(PROGRAMS[name], peer, path)


class Unknown:
    pass


@pytest.mark.parametrize(("torch", "protocol"), [(peer, 2), (pullback, 2), (pullback, 4)])
def test_names_a_careful_load_would_refuse_are_listed(torch, protocol):
    file = io.BytesIO()
    torch.save({"x": torch.ones(2), "y": Unknown(), "z": Unknown}, file, pickle_protocol=protocol)
    file.seek(0)
    expected = f"{Unknown.__module__}.Unknown"
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == [expected]
    file.seek(0)
    with torch.serialization.safe_globals([Unknown]):
        assert Unknown in torch.serialization.get_safe_globals()
        assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == []


@BOTH
def test_the_order_of_bytes_of_a_silent_file_can_be_set(torch):
    file = io.BytesIO()
    pullback.save(pullback.tensor([1, 2], dtype=pullback.int32), file, _disable_byteorder_record=True)
    orders = torch.serialization.LoadEndianness
    seen = []
    try:
        for order in (None, orders.NATIVE, orders.LITTLE, orders.BIG):
            torch.serialization.set_default_load_endianness(order)
            file.seek(0)
            seen.append(torch.load(file).tolist())
    finally:
        torch.serialization.set_default_load_endianness(None)
    assert seen == [[1, 2], [1, 2], [1, 2], [1 << 24, 2 << 24]]


@BOTH
def test_data_can_be_left_out(torch):
    file = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save({"x": torch.ones(3)}, file)
        file.seek(0)
        assert torch.load(file)["x"].shape == (3,)
    file.seek(0)
    assert torch.load(file)["x"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("writer", [peer, pullback])
def test_files_are_loaded_to_the_meta_device_without_their_elements(writer):
    file = io.BytesIO()
    writer.save({"w": writer.ones(2, 3).t(), "m": writer.empty(4, device="meta")}, file)
    texts = []
    for reader in (peer, pullback):
        file.seek(0)
        texts.append(repr(reader.load(file, map_location="meta")))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "complex32"])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_packed_elements_are_loaded_from_torchs_files(dtype):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls complex32 experimental
        saved = peer.ones(2, dtype=getattr(peer, dtype))
        peer.save(saved, file)
        file.seek(0)
        assert repr(pullback.load(file)) == repr(saved)


def test_a_safetensors_file_is_loaded_by_its_name(tmp_path):
    path = tmp_path / "a.safetensors"
    pullback.serialization.safetensors.save_file({"x": pullback.arange(3)}, path)
    assert pullback.load(path)["x"].tolist() == [0, 1, 2]


def test_a_tar_file_of_the_first_versions_is_refused_with_torchs_text(tmp_path):
    path = str(tmp_path / "a.tar")
    with tarfile.open(path, "w") as tar:
        tar.add(__file__, "storages")
    outcomes = [outcome(lambda torch, path: torch.load(path), torch, path) for torch in (peer, pullback)]
    assert outcomes[0] == outcomes[1] and "legacy .tar format" in outcomes[0][1]
