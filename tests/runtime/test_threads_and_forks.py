"""Threads that make first calls together, and forks while other threads import, compile and compute."""

import textwrap


def test_workers_of_a_loader_start_while_another_thread_compiles(run_python):
    program = """
    import threading
    import pullback as torch
    from pullback.utils.data import DataLoader, TensorDataset

    stop = threading.Event()
    def computes():
        n = 5000
        while not stop.is_set():
            n += 1
            torch.ones(n).exp().sum(), torch.rand(n)
    thread = threading.Thread(target=computes)
    thread.start()
    data = TensorDataset(torch.arange(64.0))
    for _ in range(3):
        loader = DataLoader(data, 8, num_workers=2, multiprocessing_context="fork", collate_fn=lambda rows: sum(
            (row[0].expand(5000).exp().log().mean() for row in rows), torch.zeros(())))
        assert abs(sum(batch.item() for batch in loader) - 2016) < 1e-1
    stop.set()
    thread.join()
    print("done")
    """
    assert run_python(textwrap.dedent(program)).strip() == "done"


def test_no_module_waits_for_the_lock_of_first_uses_while_it_is_imported(run_python):
    """Else two threads could wait for each other: one for the module, one for the lock."""
    program = """
    import importlib, pkgutil
    from pullback._runtime import building as _building
    taken = []

    class Lock:
        def __enter__(self):
            taken.append(name)
        def __exit__(self, *error):
            pass
        def _is_owned(self):
            return False

    import pullback
    jit = {"cache", "engine", "target", "threads"}
    names = [m.name for m in pkgutil.walk_packages(pullback.__path__, "pullback.", lambda name: None)]
    for name in names:
        if name.startswith("pullback.kernels.jit.") or name.endswith("__main__"):
            continue  # those are imported with the lock
        _building.building, kept = Lock(), _building.building
        try:
            importlib.import_module(name)
        except NotImplementedError:
            assert name.startswith("pullback._meta"), name  # it needs a newer NumPy than the oldest
        except ModuleNotFoundError as missing:
            assert name.startswith("pullback.utils.tensorboard") and missing.name == "tensorboard", missing
        finally:
            _building.building = kept
    print(taken)
    """
    assert run_python(textwrap.dedent(program)).strip() == "[]"


SEEDS = "import pullback as torch; print(torch.initial_seed(), torch.rand(1).item(), torch.Generator().initial_seed())"


def test_every_process_draws_other_numbers_unless_it_is_seeded(run_python):
    first, second = (run_python(SEEDS).split() for _ in range(2))
    assert first[0] != second[0] and first[1] != second[1]
    assert first[2] == second[2] == "67280421310721"


def test_a_forked_child_begins_with_the_numbers_its_parent_would_draw(run_python):
    program = """
    import os
    import pullback as torch
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, str(torch.rand(1).item()).encode())
        os._exit(0)
    os.wait()
    print(os.read(out, 100).decode() == str(torch.rand(1).item()))
    """
    assert run_python(textwrap.dedent(program)).strip() == "True"
