"""The CUDA device beside torch's: each library in a process of its own, every figure synchronised.

    python -m benchmarks --only cuda            # beside torch, where a Python with torch for CUDA is found
    python -m benchmarks.cuda pullback          # one side alone, as JSON
    python -m benchmarks.cuda pullback first    # only what the first use of the device takes

torch is looked for in this Python and in the one that $PULLBACK_TORCH_PYTHON names. A side stops after LIMIT seconds;
what it has not come to is said to be missing.
"""

import compileall
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.steps import models_on
from benchmarks.table import Row

ROOT = Path(__file__).resolve().parent.parent
LIMIT = float(os.environ.get("PULLBACK_BENCH_SECONDS", "60"))
"""Seconds of measuring for each side."""
WARM, SERIES = 5, 5
"""Calls before a row is measured, in which kernels are made and calls written down, and how often it is measured."""
FIRST = "first use of the device in a process"
Build = Callable[[ModuleType], Callable[[], Any]]
ABOUT: list[str] = []
"""What was found to compare with: torch's version, and the device's name."""
MEASURED = ("MLP", "GPT")
"""Steps whose memory is measured, too."""
ROWS: dict[str, tuple[str, float | None, Build]] = {}
"""The unit, the budget and what is measured, by name."""


def row(name: str, budget: float | None, unit: str = "us") -> Callable[[Build], Build]:
    """Declare a row."""

    def declare(build: Build) -> Build:
        ROWS[name] = (unit, budget, build)
        return build

    return declare


# ------------------------------------------------------------------ small tensors


@row("x * y of 1,000", 0.6)
def product(torch: Any) -> Any:
    x, y = torch.randn(2, 1000, device="cuda")
    return lambda: x * y


@row("x * y of 1,000, recorded", 0.6)
def recorded(torch: Any) -> Any:
    x, y = torch.randn(1000, device="cuda", requires_grad=True), torch.randn(1000, device="cuda")
    return lambda: x * y


@row("torch.relu of 1,000", 0.6)
def relu(torch: Any) -> Any:
    x = torch.randn(1000, device="cuda")
    return lambda: torch.relu(x)


@row("sum of 1,000", 0.6)
def small_sum(torch: Any) -> Any:
    x = torch.randn(1000, device="cuda")
    return lambda: x.sum()


@row("x @ y of 64 x 64", 0.6)
def small_mm(torch: Any) -> Any:
    x, y = torch.randn(2, 64, 64, device="cuda")
    return lambda: x @ y


@row("x.add_(y) of 1,000", 0.6)
def in_place(torch: Any) -> Any:
    x, y = torch.zeros(2, 1000, device="cuda")
    return lambda: x.add_(y)


@row("chain of 100 products, forward and backward", 0.45)
def chain(torch: Any) -> Any:
    x, y = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda", requires_grad=True)

    def run() -> None:
        z = x
        for _ in range(100):
            z = z * y
        z.sum().backward()
        y.grad = None

    return run


def mlp(torch: Any, sizes: tuple[int, ...], batch: int, optimizer: str, **options: Any) -> tuple[Any, ...]:
    """A step of training, and its parts."""
    nn, layers = torch.nn, []
    torch.manual_seed(0)
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b, device="cuda"), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    chosen = getattr(torch.optim, optimizer)(model.parameters(), **options)
    x, y = torch.randn(batch, sizes[0], device="cuda"), torch.randn(batch, sizes[-1], device="cuda")

    def step() -> Any:
        chosen.zero_grad(set_to_none=True)
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        chosen.step()
        return loss

    return step, model, x, y


@row("small MLP step, SGD", 0.5)
def small_mlp(torch: Any) -> Any:
    return mlp(torch, (10, 32, 32, 1), 32, "SGD", lr=0.01)[0]


@row("small MLP step as a CUDA graph, SGD", None)
def graphed(torch: Any) -> Any:
    step = mlp(torch, (10, 32, 32, 1), 32, "SGD", lr=0.01)[0]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


@row("MLP 784-512-512-10, batch 64, Adam", 0.6)
def large_mlp(torch: Any) -> Any:
    return mlp(torch, (784, 512, 512, 10), 64, "Adam", lr=1e-3)[0]


def gpt(torch: Any, layers: int, width: int, heads: int, batch: int, block: int, half: bool = False) -> Any:
    """A step of a GPT."""
    torch.manual_seed(0)
    names = models_on(torch, "gpt")
    vocabulary = 65 if layers == 4 else 4096
    config = names["GPTConfig"](
        vocab_size=vocabulary, block_size=block, n_layer=layers, n_head=heads, n_embd=width, dropout=0.0
    )
    model = names["GPT"](config).cuda()
    x, y = torch.randint(0, vocabulary, (2, batch, block)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            loss = model(x, y)[1]
        loss.backward()
        optimizer.step()

    return step


@row("GPT 4 layers of 128, batch 12x64, AdamW", 0.7, "ms")
def small_gpt(torch: Any) -> Any:
    return gpt(torch, 4, 128, 4, 12, 64)


# ------------------------------------------------------------------ large tensors


def large(name: str, budget: float | None, make: Callable[[Any], tuple[Any, ...]], compute: Callable[..., Any]) -> None:
    """A row of one function of large tensors."""

    def build(torch: Any) -> Any:
        args = make(torch)
        return lambda: compute(torch, *args)

    ROWS[name] = ("ms", budget, build)


def normal(*shapes: tuple[int, ...], dtype: str = "float32", grad: bool = False) -> Callable[[Any], tuple[Any, ...]]:
    """Random tensors on the device."""
    return lambda torch: tuple(
        torch.randn(*shape, device="cuda").to(getattr(torch, dtype)).requires_grad_(grad) for shape in shapes
    )


def differentiated(compute: Callable[..., Any]) -> Callable[..., Any]:
    """With its backward pass."""

    def run(torch: Any, *args: Any) -> None:
        compute(torch, *args).sum().backward()
        for a in args:
            a.grad = None

    return run


MANY = (1 << 26,)
large("add of 64M", 1.0, normal(MANY, MANY), lambda torch, x, y: x + y)
large("gelu of 64M", 1.0, normal(MANY), lambda torch, x: torch.nn.functional.gelu(x))
large("sum of 64M", 1.0, normal(MANY), lambda torch, x: x.sum())
large("softmax of 8192 x 8192", 1.0, normal((8192, 8192)), lambda torch, x: torch.softmax(x, 1))
large("x + x.t() of 8192 x 8192", 1.0, normal((8192, 8192)), lambda torch, x: x + x.t())
large(
    "layer_norm of 32768 x 1024", 1.0, normal((32768, 1024)),
    lambda torch, x: torch.nn.functional.layer_norm(x, (1024,)),
)  # fmt: skip
large("x * y of 32M, complex", 1.0, normal(*[(1 << 25,)] * 2, dtype="complex64"), lambda torch, x, y: x * y)
large("exp of 32M, complex", 1.0, normal((1 << 25,), dtype="complex64"), lambda torch, x: x.exp())
large("sum of 32M, complex", 1.0, normal((1 << 25,), dtype="complex64"), lambda torch, x: x.sum())
large("mm of 2048, complex", 1.1, normal(*[(2048, 2048)] * 2, dtype="complex64"), lambda torch, x, y: x @ y)
for _size in (1024, 2048, 4096, 8192):
    large(f"mm of {_size}, float32", 1.05, normal((_size, _size), (_size, _size)), lambda torch, x, y: x @ y)
for _size in (4096, 8192):
    large(
        f"mm of {_size}, bfloat16", 1.1, normal((_size, _size), (_size, _size), dtype="bfloat16"),
        lambda torch, x, y: x @ y,
    )  # fmt: skip
large("bmm of 96 x 64 x 64", 1.0, normal((96, 64, 64), (96, 64, 64)), lambda torch, x, y: torch.bmm(x, y))
large(
    "conv2d 3x3, 64 channels of 56x56, batch 64", 1.2, normal((64, 64, 56, 56), (64, 64, 3, 3)),
    lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
)  # fmt: skip
large(
    "attention 16x12x512x64, causal", 1.0, normal(*[(16, 12, 512, 64)] * 3),
    lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
)  # fmt: skip
large(
    "attention 16x12x512x64, causal, with backward", 1.0,
    lambda torch: [torch.randn(16, 12, 512, 64, device="cuda", requires_grad=True) for _ in range(3)],
    differentiated(
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)),
)  # fmt: skip
for _size in (64, 128):
    large(
        f"attention 4x16x2048x{_size}, bfloat16", 1.0, normal(*[(4, 16, 2048, _size)] * 3, dtype="bfloat16"),
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
    )  # fmt: skip
large(
    "grid_sample of 16 x 32 x 128 x 128, with backward", 1.5,
    lambda torch: (torch.randn(16, 32, 128, 128, device="cuda", requires_grad=True),
                   torch.rand(16, 128, 128, 2, device="cuda").mul(2).sub(1).requires_grad_()),
    differentiated(lambda torch, x, grid: torch.nn.functional.grid_sample(x, grid, align_corners=False)),
)  # fmt: skip
large(
    "embedding_bag 50000 x 256, 2048 bags of 8", 1.5,
    lambda torch: (torch.randint(50000, (2048, 8)).cuda(), torch.randn(50000, 256, device="cuda")),
    lambda torch, i, w: torch.nn.functional.embedding_bag(i, w, mode="sum"),
)  # fmt: skip
large("x ** y of 16M, float64", 1.5, normal(*[(1 << 24,)] * 2, dtype="float64"), lambda torch, x, y: x**y)
large("fft of 4096 x 1024", 4.0, normal((4096, 1024), dtype="complex64"), lambda torch, x: torch.fft.fft(x))
large(
    "ctc_loss of 128 steps, 32 samples, 64 classes, with backward", None,
    lambda torch: (torch.randn(128, 32, 64, device="cuda", requires_grad=True),),
    differentiated(lambda torch, x: torch.nn.functional.ctc_loss(
        x.log_softmax(2), torch.ones(32, 20, dtype=torch.int64, device="cuda"), (128,) * 32, (20,) * 32)),
)  # fmt: skip
large("cumsum of 4096 x 4096", 1.0, normal((4096, 4096)), lambda torch, x: x.cumsum(1))
large("randn of 16M", 1.0, lambda torch: (), lambda torch: torch.randn(1 << 24, device="cuda"))
large("dropout of 16M", 1.0, normal((1 << 24,)), lambda torch, x: torch.nn.functional.dropout(x, 0.1))
large(
    "embedding 50000 x 256, 16384 rows, with backward", 1.0,
    lambda torch: (torch.randint(50000, (16384,)).cuda(), torch.randn(50000, 256, device="cuda", requires_grad=True)),
    lambda torch, i, w: torch.nn.functional.embedding(i, w).sum().backward(),
)  # fmt: skip
large(
    "index_put_ of 200,000 x 64, accumulated", 1.0,
    lambda torch: (torch.zeros(10000, 64, device="cuda"), torch.randint(10000, (200_000,)).cuda(),
                   torch.randn(200_000, 64, device="cuda")),
    lambda torch, x, i, v: x.index_put_((i,), v, accumulate=True),
)  # fmt: skip


@row("Adam over 10M parameters", 1.0, "ms")
def adam(torch: Any) -> Any:
    parameters = [torch.nn.Parameter(torch.randn(1_000_000, device="cuda")) for _ in range(10)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    return torch.optim.Adam(parameters).step


@row("host to device, 64 MB", 1.0, "ms")
def upload(torch: Any) -> Any:
    x = torch.ones(1 << 24)
    return lambda: x.cuda()


@row("host to device, 64 MB, pinned", 1.0, "ms")
def pinned_upload(torch: Any) -> Any:
    x = torch.ones(1 << 24).pin_memory()
    return lambda: x.to("cuda", non_blocking=True)


@row("GPT 6 layers of 768, batch 8x512, AdamW", 1.0, "ms")
def large_gpt(torch: Any) -> Any:
    return gpt(torch, 6, 768, 12, 8, 512)


@row("GPT 6 layers of 768, batch 8x512, AdamW, bfloat16", 1.1, "ms")
def half_gpt(torch: Any) -> Any:
    return gpt(torch, 6, 768, 12, 8, 512, True)


large("cross_entropy of 8192 x 32000", 1.0, normal((8192, 32000)), lambda torch, x: torch.nn.functional.cross_entropy(
    x, torch.zeros(8192, dtype=torch.int64, device="cuda")))  # fmt: skip
large("sort of 16M", 1.0, normal((1 << 24,)), lambda torch, x: x.sort())
large("sort of 4096 x 1024", 1.0, normal((4096, 1024)), lambda torch, x: x.sort(1))
large("topk(50) of 64 x 32000", 1.0, normal((64, 32000)), lambda torch, x: x.topk(50))
large("max along rows of 4096 x 4096", 1.0, normal((4096, 4096)), lambda torch, x: x.max(1))
large("argmax along columns of 4096 x 4096", 1.0, normal((4096, 4096)), lambda torch, x: x.argmax(0))
large("x[x > 0] of 16M", 1.0, normal((1 << 24,)), lambda torch, x: x[x > 0])
large(
    "unique of 1M integers", 1.0, lambda torch: (torch.randint(1000, (1 << 20,)).cuda(),), lambda torch, x: x.unique()
)
large(
    "bilinear 32 x 64 x 56 x 56 to 112 x 112, with backward", 1.0, normal((32, 64, 56, 56), grad=True),
    differentiated(lambda torch, x: torch.nn.functional.interpolate(x, (112, 112), mode="bilinear")),
)  # fmt: skip
large(
    "adaptive averages 64 x 256 x 13 x 13 to 6 x 6", 1.0, normal((64, 256, 13, 13)),
    lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, 6),
)  # fmt: skip


# ------------------------------------------------------------------ one side


def timed(torch: Any, run: Callable[[], Any]) -> float:
    """Seconds of one call: the least of several series, each waited for."""
    for _ in range(WARM):
        run()
    torch.cuda.synchronize()
    start = perf_counter()
    run()
    torch.cuda.synchronize()
    once = perf_counter() - start
    if once > 1.0:
        return once
    many = max(min(int(0.05 / max(once, 1e-7)), 1000), 1)
    best = once
    for _ in range(SERIES):
        start = perf_counter()
        for _ in range(many):
            run()
        torch.cuda.synchronize()
        best = min(best, (perf_counter() - start) / many)
    return best


def peak(torch: Any, run: Callable[[], Any]) -> int:
    """The most memory of the device that arrays have at once in a call."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated())


def measure(module: str, only_first: bool) -> None:
    """All rows of one library, one line of JSON each."""
    begun = perf_counter()
    torch = importlib.import_module(module)
    imported = perf_counter()
    (torch.ones(4, device="cuda") * 2).tolist()
    about = f"{torch.__version__} on {torch.cuda.get_device_name()}"
    print(json.dumps({"name": FIRST, "seconds": perf_counter() - imported, "about": about}), flush=True)
    if only_first:
        return
    for name, (_, _, build) in ROWS.items():
        said: dict[str, Any] = {"name": name}
        if perf_counter() - begun > LIMIT:
            said["error"] = f"not measured: {LIMIT:.0f} s were over"
        else:
            try:
                run = build(torch)
                said["seconds"] = timed(torch, run)
                if name.startswith(MEASURED):
                    said["bytes"] = peak(torch, run)
                del run
            except Exception as error:
                said["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        print(json.dumps(said), flush=True)
    if module == "pullback":
        print(json.dumps({"name": "by way of the host", "fallbacks": torch.cuda.fallbacks()}), flush=True)


def side(python: str, *words: str) -> dict[str, Any]:
    """What one library measured, by the names of rows; nothing if it cannot be imported or has no device."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if words[0] == "pullback":
        compileall.compile_dir(ROOT / "src", quiet=2)  # bytecode is there, as it is after an installation
    command = [python, "-m", "benchmarks.cuda", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            found[said.pop("name")] = said
    if not found:
        found[""] = {"error": (done.stderr.strip().splitlines() or ["nothing was measured"])[-1]}
    return found


def torch_python() -> str | None:
    """A Python that has torch with a device."""
    ask = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    for python in filter(None, (os.environ.get("PULLBACK_TORCH_PYTHON"), sys.executable)):
        if subprocess.run([python, "-c", ask], capture_output=True, check=False).returncode == 0:
            return python
    return None


def compared(
    name: str, unit: str, scale: float, budget: float | None, ours: Any, theirs: Any, what: str = "seconds"
) -> Row:
    """A row of what both sides measured; the first use of the device has its budget in milliseconds."""
    mine, other = ours.get(name, {}), theirs.get(name, {})
    made = Row("cuda", f"{name}: memory" if what == "bytes" else name, unit, budget=budget)
    if what in other:
        made.torch = other[what] * scale
    if what in mine:
        made.peer = mine[what] * scale
    else:
        made.error = mine.get("error") or ours.get("", {}).get("error", "not measured")
    if name == FIRST:
        made.value, made.value_unit, made.budget = made.peer, unit, 500.0
    return made


def rows(torch: ModuleType | None, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Every row beside torch; without torch the other column alone."""
    if not importlib.import_module("pullback").cuda.is_available():
        yield Row("cuda", "no device", "", error="there is no CUDA device on this machine")
        return
    python = torch_python()
    theirs = {} if python is None else side(python, "torch")
    if python is None:
        print("no Python with torch for CUDA was found: that column is empty ($PULLBACK_TORCH_PYTHON names one)")
    ours = side(sys.executable, "pullback")
    ours |= side(sys.executable, "pullback", "first")  # with the kernels that the rows before have left
    ABOUT.append(theirs.get(FIRST, {}).get("about", ""))
    yield compared(FIRST, "ms", 1e3, None, ours, theirs)
    for name, (unit, budget, _) in ROWS.items():
        yield compared(name, unit, {"us": 1e6, "ms": 1e3}[unit], budget, ours, theirs)
    for name in ROWS:
        if name.startswith(MEASURED):
            yield compared(name, "MB", 1e-6, 1.0, ours, theirs, "bytes")
    carried = ours.get("by way of the host", {}).get("fallbacks", {})
    if carried:
        print("by way of the host:", ", ".join(f"{name} {count}" for name, count in carried.items()))


if __name__ == "__main__":
    measure(sys.argv[1], "first" in sys.argv[2:])
