"""Paths that cannot be saved to: torch's error, and nothing changed."""

import os
import zipfile

import pytest
import torch as peer

import pullback

PLACES = {
    "missing folder": "nowhere/a.pt",
    "missing folder behind dots": "nowhere/../a.pt",
    "file as a folder": "file/a.pt",
    "folder": "folder",
    "folder with a slash": "folder/",
    "new folder with a slash": "new/",
    "nothing": "",
    "dots": "..",
    "too long": "a" * 300,
    "link to a missing folder": "dangling",
    "link to itself": "loop",
    "other letters": "größe/a.pt",
}


def outcome(torch, place, zipped):
    try:
        torch.save(torch.ones(2), place, _use_new_zipfile_serialization=zipped)
    except Exception as error:
        return type(error), str(error)
    return "saved"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    os.symlink("nowhere/a.pt", "dangling")
    os.symlink("loop", "loop")
    with open("file", "w") as file:
        file.write("text")
    return tmp_path


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_path_that_cannot_be_saved_to_gives_torchs_error_and_changes_nothing(place, zipped, folder):
    before = sorted(os.listdir(folder))
    expected = outcome(peer, place, zipped)
    assert expected != "saved"
    assert outcome(pullback, place, zipped) == expected
    assert sorted(os.listdir(folder)) == before


def test_a_name_that_is_only_an_ending_names_no_archive(folder):
    assert outcome(pullback, ".pt", True) == outcome(peer, ".pt", True) != "saved"


@pytest.mark.parametrize("name", ["a.pt", "a", "a.b.pt", "größe.pt", "a.", "..a", "x y.pt", ".a.b"])
def test_the_folder_inside_a_file_is_named_as_torch_names_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for torch in (peer, pullback):
        torch.save(1, name)
        with zipfile.ZipFile(name) as archive:
            names.append(archive.namelist()[0])
        os.unlink(name)
    assert names[0] == names[1]


def test_torch_reads_what_went_through_a_pipe(tmp_path):
    reading, writing = os.pipe()
    value = {"x": pullback.arange(100.0), "y": pullback.arange(7)}
    pullback.save(value, f"/dev/fd/{writing}")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        (tmp_path / "a.pt").write_bytes(pipe.read())
    for mapped in (False, True):
        got = peer.load(tmp_path / "a.pt", mmap=mapped)
        assert got["x"].tolist() == list(range(100)) and got["y"].tolist() == list(range(7))
    assert pullback.load(tmp_path / "a.pt", mmap=True)["x"].tolist() == list(range(100))
