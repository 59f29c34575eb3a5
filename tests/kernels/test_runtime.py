"""The object cache, the buffer pool and the switches around the compiler."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import pullback
from pullback._runtime import files as _files
from pullback.kernels import workers
from pullback.kernels.compiled import room

needs_compiler = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")

posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and links are POSIX")

SOFTMAX = (
    "import json, pullback as torch\n"
    "value = torch.softmax(torch.arange(6.0), 0).tolist()\n"
    "print(json.dumps([torch.config(), value]))\n"
)


def fresh(program, **environment):
    """What a fresh Python prints, and what it warns about."""
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_compiler_can_be_switched_off():
    out, warned = fresh(SOFTMAX, PULLBACK_KERNELS="numpy")
    config, value = json.loads(out)
    assert config["kernels"] == "numpy" and config["reason"] == "PULLBACK_KERNELS=numpy" and not warned
    np.testing.assert_allclose(value, np.exp(np.arange(6)) / np.exp(np.arange(6)).sum(), rtol=1e-6)


def test_without_llvmlite_numpy_computes_silently():
    hide = "import sys; sys.modules['llvmlite'] = None\n"
    out, warned = fresh(hide + SOFTMAX, PULLBACK_KERNELS="")
    config, value = json.loads(out)
    assert config["kernels"] == "numpy" and "pip install 'pullback[fast]'" in config["reason"] and not warned
    np.testing.assert_allclose(sum(value), 1, rtol=1e-6)


@needs_compiler
def test_a_compiler_that_refuses_is_warned_about_once():
    breaking = (
        "from pullback.kernels.jit.compiler import engine\n"
        "def refuse(text, names): raise RuntimeError('no code generator')\n"
        "engine.load = refuse\n"
        "import pullback as torch\n"
        "torch.softmax(torch.ones(3), 0); torch.softmax(torch.ones(3), 0)\n"
    )
    _, warned = fresh(breaking, PULLBACK_KERNELS="llvm")
    assert warned.count("UserWarning") == 1 and "no code generator" in warned


def test_an_unknown_choice_of_kernels_is_warned_about():
    _, warned = fresh(SOFTMAX, PULLBACK_KERNELS="fortran")
    assert "PULLBACK_KERNELS='fortran' is not one of" in warned


@needs_compiler
def test_the_second_process_compiles_nothing(tmp_path):
    first = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])[0]["cache"]
    second = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])[0]["cache"]
    assert first["compiled"] > 0 and first["loaded"] == 0
    assert second["compiled"] == 0 and second["loaded"] == first["compiled"]


@needs_compiler
def test_the_second_process_writes_no_text_that_the_first_wrote(tmp_path):
    counting = (
        "from pullback.kernels.jit.language.code import Code\n"
        "written, text = [], Code.text\n"
        "Code.text = lambda self, *args, **kwargs: written.append(self.name) or text(self, *args, **kwargs)\n"
    )
    program = (
        counting + SOFTMAX + "\nprint(json.dumps(written)); torch.show(torch.softmax, torch.ones(3), 0, kernel=True)"
    )
    first, second = (fresh(program, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0] for _ in range(2))
    (_, value), (_, again) = (json.loads(out.splitlines()[0]) for out in (first, second))
    assert value == again
    assert "softmax_float32" in json.loads(first.splitlines()[1])
    assert "softmax_float32" not in json.loads(second.splitlines()[1])
    shown = [out.partition("define void @softmax_float32(")[2] for out in (first, second)]
    assert shown[0] and shown[0] == shown[1]


@needs_compiler
def test_a_note_made_by_other_sources_counts_for_nothing(tmp_path):
    other = "from pullback.kernels.jit.compiler import cache\ncache.sources = lambda: 'others'\n"

    def run(before):
        return json.loads(fresh(before + SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])

    (_, value), notes = run(""), len(list(tmp_path.glob("*.note")))
    second, again = run(other)
    assert value == again and second["cache"]["compiled"] == 0  # the text is written, and found to be the same
    assert 0 < notes < len(list(tmp_path.glob("*.note")))


@needs_compiler
def test_two_texts_by_one_recipe_are_noticed(tmp_path):
    program = (
        "from pullback.kernels.jit.compiler import engine\n"
        "engine.writes_all = True\n"
        "module = lambda n: f'define i64 @f{n}() {{\\n  ret i64 {n}\\n}}\\n'\n"
        "engine.load(module(1), ['f1'], 'number')\n"
        "engine.load(module(2), ['f2'], 'another')\n"
        "try: engine.load(module(3), ['f3'], 'number')\n"
        "except AssertionError as error: print(error)\n"
    )
    assert fresh(program, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0] == "two texts by one recipe: number\n"


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
@pytest.mark.parametrize("objects", [True, False])
def test_a_damaged_object_is_compiled_again(tmp_path, damage, objects):
    expected = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])[1]
    for file in tmp_path.glob("*.object" if objects else "*.note"):
        data = bytearray(file.read_bytes())
        data[100] ^= 255
        file.write_bytes({"cut": bytes(data[: len(data) // 2]), "flipped": bytes(data), "empty": b""}[damage])
    config, value = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])
    assert value == expected and bool(config["cache"]["loaded"]) is not objects
    for file in tmp_path.glob("*.*"):
        data = file.read_bytes()
        assert hashlib.sha256(data[32:]).digest() == data[:32]


@needs_compiler
def test_processes_that_write_the_same_object_do_not_disturb_each_other(tmp_path):
    environment = os.environ | {"PULLBACK_CACHE": str(tmp_path), "PULLBACK_KERNELS": ""}
    running = [
        subprocess.Popen([sys.executable, "-c", SOFTMAX], env=environment, stdout=subprocess.PIPE) for _ in range(4)
    ]
    values = {json.dumps(json.loads(process.communicate(timeout=600)[0])[1]) for process in running}
    assert len(values) == 1 and not list(tmp_path.glob("*.part"))


@needs_compiler
@posix
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    config = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])[0]
    assert config["cache"]["folder"] is None and not list(tmp_path.iterdir())


def cached(tmp_path):
    """A cache with the objects of a run in it, and what the run computed."""
    value = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")[0])[1]
    return sorted(tmp_path.glob("*.object")), value


@needs_compiler
@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "writable by others", "folder", "another user's"])
def test_an_object_that_somebody_else_may_have_put_there_is_not_run(tmp_path, kind):
    place, aside = tmp_path / "cache", tmp_path / "aside"
    files, expected = cached(place)
    aside.mkdir()
    for file in files:
        if kind == "writable by others":
            file.chmod(0o622)
        elif kind == "another user's":
            if os.getuid() != 0:
                pytest.skip("only root can give files away")
            os.chown(file, 12345, -1)
        else:
            file.rename(aside / file.name)
            if kind == "link":
                file.symlink_to(aside / file.name)
            elif kind == "pipe":
                os.mkfifo(file)
            else:
                file.mkdir()
    config, value = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(place), PULLBACK_KERNELS="")[0])
    assert value == expected and config["cache"]["loaded"] == 0 and config["cache"]["compiled"] == len(files)
    if kind != "folder":
        assert all(file.is_file() and not file.is_symlink() for file in files)
        config, value = json.loads(fresh(SOFTMAX, PULLBACK_CACHE=str(place), PULLBACK_KERNELS="")[0])
        assert value == expected and config["cache"]["compiled"] == 0
    assert not list(place.glob("*.part"))


@needs_compiler
@posix
def test_a_folder_that_was_exchanged_under_way_is_not_used(tmp_path):
    program = (
        "import os, sys, pullback as torch\n"
        "torch.softmax(torch.ones(3), 0)\n"
        "place = os.environ['PULLBACK_CACHE']\n"
        "os.chmod(place, 0o777)\n"
        "from pullback.kernels.jit.compiler import cache\n"
        "key = next(name for name in os.listdir(place) if name.endswith('.object')).partition('.')[0]\n"
        "print(cache.read(key))\n"
        "cache.write('new', b'new'); print(os.path.exists(place + '/new.object'))\n"
        "os.chmod(place, 0o700); print(cache.read(key) is not None)\n"
    )
    out, _ = fresh(program, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")
    assert out.split() == ["None", "False", "True"]


@needs_compiler
@posix
@pytest.mark.parametrize("home", ["/nonexistent/home", "relative", None, "closed"])
def test_a_user_without_a_home_has_kernels_and_no_cache(tmp_path, home):
    before = sorted(os.listdir("."))
    program = (
        "import os, pwd\n"
        "def nobody(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = nobody\n"
        "for name in ('XDG_CACHE_HOME', 'PULLBACK_CACHE'): os.environ.pop(name, None)\n"
    )
    if home is None:
        program += "os.environ.pop('HOME', None)\n"
    elif home == "closed":
        (tmp_path / ".cache").write_text("no folder")  # nothing can be made in it, by root neither
        program += f"os.environ['HOME'] = {str(tmp_path)!r}\n"
    else:
        program += f"os.environ['HOME'] = {home!r}\n"
    out, warned = fresh(program + SOFTMAX, PULLBACK_KERNELS="")
    config, value = json.loads(out)
    assert (
        config["kernels"].startswith("llvm") and config["cache"]["folder"] is None and config["cache"]["compiled"] > 0
    )
    assert not warned and sum(value) == pytest.approx(1)
    assert not os.path.exists("/nonexistent") and sorted(os.listdir(".")) == before


@needs_compiler
@posix
def test_an_object_there_is_no_room_for_leaves_nothing_behind(tmp_path):
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    out, warned = fresh(limited + SOFTMAX, PULLBACK_CACHE=str(tmp_path), PULLBACK_KERNELS="")
    assert json.loads(out)[0]["cache"]["compiled"] > 0 and not warned and os.listdir(tmp_path) == []


@needs_compiler
@posix
def test_what_was_never_finished_is_removed_by_who_adds_to_the_cache(tmp_path):
    files, _ = cached(tmp_path)
    files[0].unlink()
    name, live = _files.temporary(str(tmp_path), 0o600)
    dead, other, young = tmp_path / f"{_files.PREFIX}dead.part", tmp_path / "tmpabc.part", tmp_path / "tmpdef.part"
    for file in (dead, other, young):
        file.write_bytes(b"half")
    os.utime(other, (0, 0))
    with live:
        assert cached(tmp_path)[0] == files
        assert sorted(tmp_path.glob("*.part")) == sorted([young, tmp_path / os.path.basename(name)])


@needs_compiler
def test_memory_of_large_arrays_is_used_again_and_given_back():
    pullback.empty_cache()
    before = pullback.memory_stats()
    x = pullback.ones(1_000_000)
    assert pullback.memory_stats()["live"] - before["live"] >= 4_000_000
    del x
    kept = pullback.memory_stats()
    assert kept["live"] == before["live"] and kept["kept"] >= 4_000_000
    x = pullback.empty(1_000_000)
    assert pullback.memory_stats()["hits"] == kept["hits"] + 1
    del x
    pullback.empty_cache()
    assert pullback.memory_stats()["kept"] == 0


@needs_compiler
def test_kept_memory_is_bounded():
    program = (
        "import pullback as torch\n"
        "torch.softmax(torch.ones(3), 0)\n"
        "held = [torch.ones(1_000_000) for _ in range(10)]; del held\n"
        "stats = torch.memory_stats(); print(stats['kept'], stats['returned'])\n"
    )
    kept, returned = map(int, fresh(program, PULLBACK_MEMORY_KEPT=str(10**7), PULLBACK_KERNELS="")[0].split())
    assert kept <= 10**7 and returned > 0


@needs_compiler
@pytest.mark.parametrize("count", [1, 15, 16, 17, 1007, 1008, 1009, 1024, 65535, 65536, 65537, 81920, 81921, 10**6])
def test_memory_is_whole_and_zeros_are_zero(count):
    held = []
    for turn in range(4):
        a, z = np.empty(count, np.uint8), np.zeros(count, np.uint8)
        assert not z.any()
        a[:], z[:] = turn + 1, 200 + turn
        held.append((a, z, turn))
        if turn % 2:
            held.pop(0)
    for a, z, turn in held:
        assert (a == turn + 1).all() and (z == 200 + turn).all()


@needs_compiler
def test_resized_arrays_keep_their_elements():
    for small, large in ((10, 100), (100, 40_000), (40_000, 400_000)):
        a = np.arange(small)
        a.resize(large, refcheck=False)
        np.testing.assert_array_equal(a[:small], np.arange(small))
        a.resize(small // 2, refcheck=False)
        np.testing.assert_array_equal(a, np.arange(small // 2))


@needs_compiler
def test_show_prints_the_kernel_a_call_used(capsys):
    pullback.show(pullback.softmax, pullback.ones(4, 8), 1, kernel=True)
    printed = capsys.readouterr().out
    assert "; kernel softmax_float32" in printed and "define void @softmax_float32(" in printed
    pullback.show(pullback.zeros, 3, kernel=True)
    assert "no compiled kernel ran" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["bessel_j0", "modified_bessel_k1", "airy_ai", "zeta", "gammaincc"])
def test_what_scipy_computes_on_several_threads_is_what_it_computes_on_one(name):
    function, before = getattr(pullback.special, name), pullback.get_num_threads()
    x = pullback.rand(3, 25_000, dtype=pullback.float64) * 5 + 1.5
    args = (x, x.flip(1)) if name in ("zeta", "gammaincc") else (x,)
    found = []
    try:
        for count in (1, 2, 3):
            pullback.set_num_threads(count)
            found.append(function(*args).numpy())
    finally:
        pullback.set_num_threads(before)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    assert found[0].shape == (3, 25_000)


def test_an_error_in_another_thread_is_raised_by_the_caller(monkeypatch):
    monkeypatch.setitem(workers.state, "threads", 2)

    def refuse(part):
        if part[0] > 0:
            raise ValueError("not this part")
        return part

    with pytest.raises(ValueError, match="not this part"):
        workers.shared(refuse, np.arange(100_000.0))


COUNTED = """
declare void @pullback_parallel_for(ptr, ptr, i64, i64)
define void @touch(ptr %out, i64 %begin, i64 %end, i64 %worker) {
entry:
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %at = getelementptr i64, ptr %out, i64 %i
  %old = atomicrmw add ptr %at, i64 1 seq_cst
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @all(ptr %out, i64 %count, i64 %grain) {
  call void @pullback_parallel_for(ptr @touch, ptr %out, i64 %count, i64 %grain)
  ret void
}
"""
ONCE_EACH = f"""
import ctypes, numpy as np
from pullback.kernels import workers
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.runtime import threads
threads.start()
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(engine.load({COUNTED!r}, ["all"])[0])
wrong = []
for count in (1, 2, 3, 5, 70):
    workers.set_threads(count)
    for items in (1, 2, 3, 7, 64, 65, 1000, 4097):
        for grain in (1, 2, 48, 64, 5000):
            counted = np.zeros(items, np.int64)
            for _ in range(5):
                run(counted.ctypes.data, items, grain)
            if counted.min() != 5 or counted.max() != 5:
                wrong.append((count, items, grain))
print(wrong)
"""


@needs_compiler
def test_every_item_is_worked_on_once_by_any_number_of_threads():
    """Also where there are more threads than spans of chunks."""
    assert fresh(ONCE_EACH)[0].strip() == "[]"
