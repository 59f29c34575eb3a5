"""What `save` does to what is already at a path: old files stay until new ones are complete, links stay links."""

import io
import os
import stat
import subprocess
import sys
import threading

import pytest

import pullback
from pullback._runtime import files as _files
from pullback.serialization import npz, safetensors

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and devices are POSIX")


def save_pt(value, path):
    pullback.save({"x": pullback.tensor(value)}, path)


def save_old(value, path):
    pullback.save({"x": pullback.tensor(value)}, path, _use_new_zipfile_serialization=False)


def save_safe(value, path):
    safetensors.save_file({"x": pullback.tensor(value)}, path)


def save_npz(value, path):
    npz.save_npz(path, {"x": pullback.tensor(value)})


def load_npz(path):
    return npz.load_npz(path)


FORMATS = {
    "zip": (save_pt, pullback.load),
    "old": (save_old, pullback.load),
    "safetensors": (save_safe, safetensors.load_file),
    "npz": (save_npz, load_npz),
}
EACH = pytest.mark.parametrize(("save", "load"), FORMATS.values(), ids=FORMATS)


def temporaries(folder):
    return [name for name in os.listdir(folder) if name.startswith(_files.PREFIX)]


@posix
@EACH
def test_a_link_stays_a_link_and_the_file_behind_it_is_replaced(save, load, tmp_path):
    (tmp_path / "far").mkdir()
    real, link, second = tmp_path / "far" / "real.pt", tmp_path / "link.pt", tmp_path / "second.pt"
    save([1.0], real)
    link.symlink_to("far/real.pt")
    second.symlink_to(link)
    save([2.0], second)
    assert link.is_symlink() and second.is_symlink() and load(real)["x"].tolist() == [2.0]
    assert not temporaries(tmp_path) and not temporaries(tmp_path / "far")


@posix
@EACH
def test_a_link_to_a_file_that_is_not_there_yet_makes_it(save, load, tmp_path):
    (tmp_path / "link.pt").symlink_to("new.pt")
    save([1.0], tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink() and load(tmp_path / "new.pt")["x"].tolist() == [1.0]


@posix
@EACH
@pytest.mark.parametrize("length", [1, 1000])
def test_a_file_with_two_names_stays_one_file(save, load, tmp_path, length):
    first, other = tmp_path / "first.pt", tmp_path / "other.pt"
    save([1.0] * 50, first)
    os.link(first, other)
    inode = first.stat().st_ino
    save([2.0] * length, first)
    assert first.stat().st_ino == other.stat().st_ino == inode
    assert load(other)["x"].tolist() == [2.0] * length
    assert not temporaries(tmp_path)


@posix
@EACH
def test_mode_owner_and_attributes_are_kept(save, load, tmp_path):
    path = tmp_path / "a.pt"
    save([1.0], path)
    path.chmod(0o640)
    if os.getuid() == 0:
        os.chown(path, 12345, 54321)
    attributes = hasattr(os, "setxattr")
    if attributes:
        try:
            os.setxattr(path, "user.note", b"kept")
        except OSError:
            attributes = False
    before = path.stat()
    save([2.0], path)
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert not attributes or os.getxattr(path, "user.note") == b"kept"
    assert load(path)["x"].tolist() == [2.0]


@posix
@EACH
def test_a_new_file_gets_the_mode_of_every_new_file(save, load, tmp_path):
    mask = os.umask(0o027)
    try:
        save([1.0], tmp_path / "a.pt")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.pt").stat().st_mode) == 0o640


def device(name, minor, folder):
    """A path to one of the system's devices; a copy of it where a mistake could replace the system's own."""
    if not os.path.exists(f"/dev/{name}"):
        pytest.skip(f"there is no /dev/{name}")
    if not os.access("/dev", os.W_OK):
        return f"/dev/{name}"
    path = folder / name
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError:
        pytest.skip("devices cannot be made here")
    return path


@posix
@EACH
def test_a_device_stays_a_device(save, load, tmp_path):
    null = device("null", 3, tmp_path)
    before = os.stat(null)
    save([1.0], null)
    after = os.stat(null)
    assert stat.S_ISCHR(after.st_mode) and after.st_ino == before.st_ino


@posix
@EACH
def test_a_device_that_is_full_is_an_error(save, load, tmp_path):
    with pytest.raises((RuntimeError, OSError, safetensors.SafetensorError), match="No space left"):
        save([1.0], device("full", 7, tmp_path))


@posix
@EACH
def test_a_pipe_is_written_to(save, load, tmp_path):
    path = tmp_path / "pipe.safetensors"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    save([1.0, 2.0], path)
    reader.join()
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(tmp_path) == ["pipe.safetensors"]
    copy = tmp_path / ("copy.safetensors" if load is safetensors.load_file else "copy.pt")
    copy.write_bytes(got[0])
    assert load(copy)["x"].tolist() == [1.0, 2.0]


def run(program, *arguments, **options):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, timeout=600, **options
    )
    return done.returncode, done.stdout, done.stderr.decode()


@posix
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_a_checkpoint_goes_through_standard_output(tmp_path):
    program = "import pullback as torch; torch.save(torch.arange(3.0), '/dev/stdout')"
    status, out, error = run(program)
    assert status == 0, error
    assert pullback.load(io.BytesIO(out)).tolist() == [0, 1, 2]
    with open(tmp_path / "out.pt", "wb") as file:
        assert subprocess.run([sys.executable, "-c", program], stdout=file, timeout=600).returncode == 0
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(tmp_path / "out.pt"))
    assert pullback.load(tmp_path / "out.pt").tolist() == [0, 1, 2]
    assert not temporaries(tmp_path)


LIMITED = """
import resource, sys
import pullback as torch, pullback.serialization.safetensors as safetensors
path, kind = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
value = {"x": torch.ones(100_000)}
try:
    if kind == "safetensors":
        safetensors.save_file(value, path)
    else:
        torch.save(value, path, _use_new_zipfile_serialization=kind == "zip")
except Exception as error:
    print(type(error).__name__, error)
"""


@posix
@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("kind", ["zip", "old", "safetensors"])
def test_where_there_is_no_room_the_old_file_stays_whole(kind, links, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(b"before")
    if links == 2:
        os.link(path, tmp_path / "b.pt")
    status, out, error = run(LIMITED, path, kind)
    expected = {"zip": b"RuntimeError write()", "old": b"RuntimeError write()", "safetensors": b"SafetensorError"}[kind]
    assert status == 0 and not error and out.startswith(expected), (out, error)
    assert path.read_bytes() == b"before" and not temporaries(tmp_path)


@posix
def test_a_file_that_may_not_be_written_to_is_not(tmp_path):
    program = """
import io, os, sys, pullback as torch
torch.save(torch.ones(1), io.BytesIO())
os.chdir(sys.argv[1])
if os.getuid() == 0: os.setgid(65534); os.setuid(65534)
for zipped in (True, False):
    for path in ("locked.pt", "closed/new.pt"):
        try: torch.save(torch.ones(2), path, _use_new_zipfile_serialization=zipped)
        except Exception as error: print(type(error).__name__, error)
torch.save(torch.ones(2), "closed/open.pt")
"""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o755)
    for path, mode in ((tmp_path / "locked.pt", 0o444), (folder / "open.pt", 0o666)):
        path.write_bytes(b"before")
        path.chmod(mode)
    folder.chmod(0o555)
    tmp_path.chmod(0o755)
    try:
        status, out, error = run(program, tmp_path)
    finally:
        folder.chmod(0o755)
    assert status == 0, error
    denied = "[enforce fail at inline_container.cc:747] . open file failed with strerror: Permission denied"
    assert out.decode().splitlines() == [
        f"RuntimeError {denied}",
        f"RuntimeError {denied}",
        "PermissionError [Errno 13] Permission denied: 'locked.pt'",
        "PermissionError [Errno 13] Permission denied: 'closed/new.pt'",
    ]
    assert (tmp_path / "locked.pt").read_bytes() == b"before"
    assert pullback.load(folder / "open.pt").tolist() == [1, 1]
    assert os.listdir(folder) == ["open.pt"]


KILLED = """
import os, sys, pullback as torch
class Dies:
    def __reduce__(self): os._exit(9)
torch.save([torch.ones(3), Dies()], sys.argv[1])
"""


@posix
def test_what_a_killed_save_leaves_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a.pt"
    save_pt([1.0], path)
    assert run(KILLED, path)[0] == 9
    assert len(temporaries(tmp_path)) == 1 and pullback.load(path)["x"].tolist() == [1.0]
    save_pt([2.0], tmp_path / "other.pt")
    assert not temporaries(tmp_path)


@posix
def test_what_another_save_is_writing_is_left_alone(tmp_path):
    name, file = _files.temporary(str(tmp_path), 0o600)
    with file:
        file.write(b"half of it")
        save_pt([1.0], tmp_path / "a.pt")
        assert temporaries(tmp_path) == [os.path.basename(name)]
    save_pt([1.0], tmp_path / "a.pt")
    assert not temporaries(tmp_path)


@posix
def test_a_save_inside_a_save_into_the_same_folder_works(tmp_path):
    class Saves:
        def __reduce__(self):
            save_pt([5.0], tmp_path / "inner.pt")
            return int, (3,)

    pullback.save([Saves()], tmp_path / "outer.pt")
    assert sorted(os.listdir(tmp_path)) == ["inner.pt", "outer.pt"]
    assert pullback.load(tmp_path / "outer.pt", weights_only=False) == [3]


@posix
def test_only_own_files_count_as_left_over(tmp_path):
    target = tmp_path / "precious"
    target.write_text("text")
    link, folder, fifo = (tmp_path / f"{_files.PREFIX}{name}{_files.SUFFIX}" for name in ("link", "folder", "fifo"))
    link.symlink_to(target)
    folder.mkdir()
    os.mkfifo(fifo)
    save_pt([1.0], tmp_path / "a.pt")
    assert target.read_text() == "text" and link.is_symlink() and folder.is_dir() and stat.S_ISFIFO(fifo.stat().st_mode)


@EACH
def test_a_name_as_long_as_names_can_be_is_fine(save, load, tmp_path):
    path = tmp_path / ("x" * 250 + (".pt" if load is not safetensors.load_file else ".st"))
    save([1.0], path)
    assert load(path)["x"].tolist() == [1.0]
