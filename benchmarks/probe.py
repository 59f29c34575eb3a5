"""One measurement in a process of its own: `python -m benchmarks.probe NAME MODULE ARGUMENTS` prints a JSON object.

Memory can only be measured in a process that has done nothing else, and an import only once.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def probe(name: str, module: str, *arguments: int) -> dict[str, float]:
    """Run a probe in a fresh process and return its figures."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.probe", name, module, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(last[0])
    return json.loads(done.stdout)


def resident() -> int:
    """Bytes of memory this process holds now; where the system does not say, the most it has held so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def load(module: str) -> ModuleType:
    torch = importlib.import_module(module)
    if module == "torch":
        torch.set_num_threads(2)
    return torch


def import_time(module: str) -> dict[str, float]:
    """Seconds to import a module and name its Tensor, once numpy is there.

    Naming Tensor counts, or an empty package would be the quickest.
    """
    importlib.import_module("numpy")
    start = perf_counter()
    _ = importlib.import_module(module).Tensor
    return {"seconds": perf_counter() - start}


def warm_up(torch: ModuleType) -> None:
    """Make torch start its threads and allocate what it allocates once."""
    x = torch.ones(4, requires_grad=True)
    for _ in range(100):
        (x * x).sum().backward()


def chain_time(module: str, nodes: int) -> dict[str, float]:
    """Seconds per node to build a chain, run backward through it and let it go."""
    torch = load(module)
    warm_up(torch)
    x = torch.ones(4, requires_grad=True)
    y, ones = torch.ones(4), torch.ones(4)
    best = float("inf")
    for _ in range(max(2, min(50, 200_000 // nodes))):
        gc.collect()
        start = perf_counter()
        z = x
        for _ in range(nodes):
            z = z * y
        z.backward(ones)
        del z
        best = min(best, perf_counter() - start)
        if x.grad.tolist() != [1.0] * 4:
            raise ArithmeticError(f"the gradient of the chain is {x.grad}")
        x.grad = None
    return {"seconds": best / nodes}


def chain_memory(module: str, nodes: int, saving: int) -> dict[str, float]:
    """Bytes per node that a chain holds; with `saving`, each node saves the tensor before it as well."""
    torch = load(module)
    warm_up(torch)
    x = torch.ones(4, requires_grad=True)
    y = torch.ones(4, requires_grad=bool(saving))
    gc.collect()
    before = resident()
    z = x
    for _ in range(nodes):
        z = z * y
    gc.collect()
    held = resident() - before
    z.backward(torch.ones(4))
    return {"bytes": held / nodes}


def tree(module: str, leaves: int) -> dict[str, float]:
    """Seconds per leaf to add up a balanced tree of leaves and run backward into every one of them."""
    torch = load(module)
    warm_up(torch)
    level = tensors = [torch.ones(1, requires_grad=True) for _ in range(leaves)]
    gc.collect()
    start = perf_counter()
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [a + b for a, b in zip(level[0::2], level[1::2], strict=False)] + odd
    level[0].backward()
    seconds = perf_counter() - start
    if any(leaf.grad.item() != 1.0 for leaf in tensors):
        raise ArithmeticError("a leaf of the tree has a gradient other than 1")
    return {"seconds": seconds / leaves}


def step_memory(module: str, number: int) -> dict[str, float]:
    """The most memory that building a program and running three of its steps took."""
    from benchmarks.steps import STEPS

    torch = load(module)
    torch.set_num_threads(2)
    warm_up(torch)
    torch.nn.functional.softmax(torch.ones(4), 0)
    build = list(STEPS.values())[number]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident()
    step = build(torch)
    for _ in range(3):
        step()
    peak = next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return {"bytes": peak * 1024 - before}


def first_step(module: str, number: int) -> dict[str, float]:
    """Seconds of the first step of a program, compiling included."""
    from benchmarks.steps import STEPS

    torch = load(module)
    torch.set_num_threads(2)
    step = list(STEPS.values())[number](torch)
    start = perf_counter()
    step()
    return {"seconds": perf_counter() - start}


def compiled_program(number: int) -> Any:
    """One of the programs that are compiled."""
    from benchmarks.compiled import PROGRAMS

    return list(PROGRAMS.values())[number][0]


def torch_compiled(module: str, number: int) -> dict[str, float]:
    """Seconds of one call of what torch.compile makes of a program."""
    from benchmarks.compare import fastest

    torch = load(module)
    torch.manual_seed(0)
    run = torch.compile(compiled_program(number)(torch))
    for _ in range(4):
        run()
    (best,) = fastest([run], 3.0)
    return {"seconds": best}


def jax_compiled(module: str, number: int) -> dict[str, float]:
    """Seconds of one call of what jax.jit makes of a program."""
    from benchmarks.compare import fastest
    from benchmarks.peers import JAX_PROGRAMS

    run = list(JAX_PROGRAMS.values())[number]()
    for _ in range(4):
        run()
    (best,) = fastest([run], 3.0)
    return {"seconds": best}


def compile_time(module: str, number: int) -> dict[str, float]:
    """Seconds by which the first calls of a compiled program take longer than later ones, kernels of eager code and
    all: recorded, compiled, recorded again where there are gradients now, and compiled again."""
    torch = load(module)
    torch.set_num_threads(2)
    run = torch.compile(compiled_program(number)(torch))
    times = []
    for _ in range(12):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return {"seconds": sum(times) - len(times) * min(times), "first": times[0]}


def compiled_memory(module: str, number: int, way: int) -> dict[str, float]:
    """The most memory that calls of a program take once it has been compiled, or run as it is."""
    torch = load(module)
    torch.set_num_threads(2)
    run = compiled_program(number)(torch)
    if way:
        run = torch.compile(run)
    for _ in range(5):
        run()
    gc.collect()
    torch.empty_cache()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident()
    run()
    run()
    peak = next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return {"bytes": max(peak * 1024 - before, 2**20)}


def training_memory(module: str, steps: int) -> dict[str, float]:
    """Bytes gained over training steps with the cyclic garbage collector off: a graph must die by itself."""
    torch = load(module)
    parameters = [torch.full(shape, 0.1, requires_grad=True) for shape in ((8, 16), (16,), (16, 1), (1,))]
    w1, b1, w2, b2 = parameters
    x, target = torch.full((4, 8), 0.5), torch.ones(4, 1)

    def train(count: int) -> None:
        for _ in range(count):
            error = (x @ w1 + b1).tanh() @ w2 + b2 - target
            (error * error).sum().backward()
            with torch.no_grad():
                for parameter in parameters:
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None

    gc.collect()
    gc.disable()
    train(max(500, steps // 10))
    before = resident()
    train(steps)
    return {"bytes": resident() - before}


PROBES: dict[str, Callable[..., dict[str, float]]] = {
    function.__name__: function
    for function in (
        import_time,
        chain_time,
        chain_memory,
        tree,
        training_memory,
        step_memory,
        first_step,
        torch_compiled,
        jax_compiled,
        compile_time,
        compiled_memory,
    )
}


def main(arguments: list[str]) -> None:
    name, module, *rest = arguments
    result: dict[str, Any] = PROBES[name](module, *map(int, rest))
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
