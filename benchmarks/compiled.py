"""Programs of `torch.compile` beside the same ones run as they are, by torch and here, and beside other compilers.

Each program has a row beside torch's eager one, with the budget, and rows that say what eager code takes here, what
torch.compile makes of it (in a process of its own: it needs a C++ compiler and up to half a minute) and, where JAX is
installed, what jax.jit makes of those that are written for it.
"""

import compileall
import importlib.util
import os
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from benchmarks import peers, steps
from benchmarks.compare import fastest
from benchmarks.probe import ROOT, probe
from benchmarks.table import Row

BELOW = 1.0
"""Budget of what was compiled, beside eager code here and torch.compile."""
COLD_S, CACHED = {"MLP": 0.5, "GPT": 2.0}, 0.1
"""Budgets of a first call, and the part of it that one with the kernels on disk may take."""
SECTION = "compiled"


def small_step(torch: ModuleType, make: Callable[[Any], Any]) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = make(model.parameters())
    x, y = torch.randn(16, 10), torch.randn(16, 1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def neural_ode(torch: ModuleType) -> Callable[[], Any]:
    f = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    start, h = torch.randn(16, 2), 0.05

    def step() -> Any:
        x = start
        for _ in range(20):
            k1 = f(x)
            k2 = f(x + h / 2 * k1)
            k3 = f(x + h / 2 * k2)
            k4 = f(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        f.zero_grad()
        loss = (x * x).mean()
        loss.backward()
        return loss

    return step


def five_pointwise(torch: ModuleType) -> Callable[[], Any]:
    x, y = torch.randn(1_000_000), torch.randn(1_000_000)
    return lambda: (torch.tanh(x * y + 1) - x).exp().sum()


def encoder_layer(torch: ModuleType) -> Callable[[], Any]:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    x = torch.randn(1, 16, 64)

    def infer() -> Any:
        with torch.no_grad():
            return layer(x)

    return infer


def network(torch: ModuleType) -> tuple[Callable[[Any], Any], Any]:
    w, v = torch.randn(32, 16) / 4, torch.randn(16, 32) / 6
    return lambda x: torch.tanh(v @ torch.tanh(w @ x)), torch.randn(16)


def jacobian(torch: ModuleType) -> Callable[[], Any]:
    f, x = network(torch)
    return lambda: torch.func.jacrev(f)(x)


def hessian(torch: ModuleType) -> Callable[[], Any]:
    f, x = network(torch)
    return lambda: torch.func.hessian(lambda x: f(x).sum())(x)


def per_sample(torch: ModuleType) -> Callable[[], Any]:
    w, v, x, y = torch.randn(32, 8) / 3, torch.randn(1, 32) / 6, torch.randn(64, 8), torch.randn(64)

    def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
        return ((v @ torch.tanh(w @ x)).squeeze(0) - y) ** 2

    return lambda: torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), (None, None, 0, 0))(w, v, x, y)


PROGRAMS: dict[str, tuple[Callable[[ModuleType], Callable[[], Any]], float]] = {
    "MLP 10-32-32-1, batch 16, SGD": (lambda torch: small_step(torch, lambda p: torch.optim.SGD(p, lr=0.01)), 0.2),
    "MLP 10-32-32-1, batch 16, Adam": (lambda torch: small_step(torch, lambda p: torch.optim.Adam(p)), 0.074),
    "neural ODE, 20 steps of RK4": (neural_ode, 0.17),
    "five pointwise functions and a sum of 1M": (five_pointwise, 0.19),
    "TransformerEncoderLayer inference, [1, 16, 64]": (encoder_layer, 0.42),
    "MLP 784-512-512-10, batch 64, Adam": (steps.mlp, 0.51),
    "GPT 4 layers of 128, batch 12x64, AdamW": (steps.gpt, 0.65),
    "LSTM cell, 50 steps, forward and backward": (steps.lstm_loop, BELOW),
    "jacobian of 16 by 16": (jacobian, BELOW),
    "hessian of 16 by 16": (hessian, BELOW),
    "vmap of grad, 64 samples": (per_sample, BELOW),
}
"""Each program, and the part of torch's eager time it may take."""


def program_rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time of one call of each program, in turns."""
    peer.set_num_threads(2)
    for number, (name, (build, budget)) in enumerate(PROGRAMS.items()):
        row = Row(SECTION, name, "us", budget=budget)
        eager = Row(SECTION, "    compiled beside eager code here", "times", budget=BELOW)
        try:
            sides = []
            for side in (torch, peer, peer):
                side.manual_seed(0)
                sides.append(build(side))
            sides[2] = peer.compile(sides[2])
            for _ in range(4):
                sides[2]()
            row.torch, plain, row.peer = (best * 1e6 for best in fastest(sides, 1.5 if quick else 8.0))
            eager.value = row.peer / plain
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}"
        yield row
        if eager.value is not None:
            yield eager
        if not quick and not row.error:
            other = Row(SECTION, "    compiled beside torch.compile", "us", peer=row.peer, budget=BELOW)
            try:
                other.torch = probe("torch_compiled", "torch", number)["seconds"] * 1e6
            except RuntimeError as error:
                other.name, other.budget = f"    torch.compile: {str(error)[:80]}", None
            yield other
            if name in peers.JAX_PROGRAMS and importlib.util.find_spec("jax") is not None:
                yield jax_row(name, row.peer)


def jax_row(name: str, here: float | None) -> Row:
    """The same program compiled by JAX, in a process of its own."""
    row = Row(SECTION, "    compiled beside jax.jit", "us", peer=here, budget=BELOW)
    try:
        row.torch = probe("jax_compiled", "jax", list(peers.JAX_PROGRAMS).index(name))["seconds"] * 1e6
    except RuntimeError as error:
        row.name, row.budget = f"    jax.jit: {str(error)[:80]}", None
    return row


def first_rows(quick: bool) -> Iterator[Row]:
    """Seconds of recording and compiling, with nothing on disk and with everything.

    Bytecode is there from the start, as it is after an installation. The least of some processes counts.
    """
    compileall.compile_dir(ROOT / "src", quiet=2)
    names = {"MLP": "MLP 10-32-32-1, batch 16, Adam", "GPT": "GPT 4 layers of 128, batch 12x64, AdamW"}
    before = os.environ.get("PULLBACK_CACHE")
    for short, name in names.items():
        if quick and short == "GPT":
            continue
        rows = {
            what: Row(SECTION, f"{short}: recorded and compiled, {what}", "s", value_unit="s", budget=budget)
            for what, budget in (("nothing on disk", COLD_S[short]), ("kernels on disk", COLD_S[short] * CACHED))
        }
        try:
            for _ in range(1 if quick else 3):
                with TemporaryDirectory() as folder:
                    os.environ["PULLBACK_CACHE"] = folder
                    for row in rows.values():
                        found = probe("compile_time", "pullback", list(PROGRAMS).index(name))["seconds"]
                        row.value = found if row.value is None else min(found, row.value)
        except RuntimeError as error:
            for row in rows.values():
                row.error = str(error)
        finally:
            os.environ.pop("PULLBACK_CACHE", None)
            if before is not None:
                os.environ["PULLBACK_CACHE"] = before
        yield from rows.values()


def memory_rows(quick: bool) -> Iterator[Row]:
    """The peak memory of compiled programs beside eager ones: both here."""
    for number, name in enumerate(PROGRAMS):
        if quick or PROGRAMS[name][0] in (jacobian, hessian, per_sample):
            continue
        row = Row(SECTION, f"memory beside eager: {name}"[:51], "MB", budget=1.05)
        try:
            eager, made = (probe("compiled_memory", "pullback", number, way)["bytes"] for way in (0, 1))
            row.peer, row.value = made * 2**-20, made / eager
        except RuntimeError as error:
            row.error = str(error)
        yield row


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """All of them."""
    yield from program_rows(torch, peer, quick)
    yield from first_rows(quick)
    yield from memory_rows(quick)
