"""Random functions that look at values, beside compiled ones: `python -m tests.compiler.fuzz_reads [seconds] [seed]`"""

from __future__ import annotations

import random
import sys

import pullback as torch
from tests.compiler.support import same, search, seen, state_of

STATEMENTS = [
    "y = y * {c}", "y = y + torch.rand(3) * {c}", "y = y * x.sum().item()", "y = y - n", "y = y * k", "y = y * t",
    "y = (w * y).tanh()", "y = y / (abs(n) + 1)", "y = torch.where(y > n, y, y * 2)", "y = y.clamp(max=max(n, 1.0))",
    "n = n + y.detach().mean().item()", "n = n * {c} + t", "n = -n", "n = n / 2", "log['n'] = round(n, 3)",
    "k = int(y.abs().sum().detach()) % 3", "buf.add_(y.detach() * {c})", "buf.mul_(0.5)", "w.grad = None",
    "(w * y).sum().backward(retain_graph=True)",
]  # fmt: skip
CONDITIONS = [
    "y.sum() > 0",
    "n > 0.3",
    "t < 0.4",
    "(y > 0).any()",
    "k == 1",
    "buf.norm() > 2",
    "x[0] > 0 and n < 1",
    "n",
]


def written(seed):
    """The source of a function of a tensor and a number."""
    draw = random.Random(seed)
    lines = ["def f(x, t):", "    y, n, k, log = x * 1.0, 0.5, 0, {}"]

    def block(depth, indent):
        for _ in range(draw.randint(1, 4)):
            if depth and draw.random() < 0.35:
                lines.append(f"{indent}if {draw.choice(CONDITIONS)}:")
                block(depth - 1, indent + "    ")
                if draw.random() < 0.5:
                    lines.append(f"{indent}else:")
                    block(depth - 1, indent + "    ")
            else:
                lines.append(indent + draw.choice(STATEMENTS).format(c=round(draw.uniform(-2, 2), 2)))

    block(2, "    ")
    block(2, "    ")
    return "\n".join([*lines, "    return y, n, log, k, y.sum().item()"])


def observed(source, seed, compiled):
    """What can be seen of several calls, and the function."""
    torch.manual_seed(seed)
    w, buf = torch.randn(3, requires_grad=True), torch.zeros(3)
    space = {"torch": torch, "w": w, "buf": buf}
    exec(compile(source, f"<program {seed}>", "exec"), space)
    f = compiled(space["f"])
    out = []
    for i in range(7):
        x = torch.randn(3) * (i % 3)
        try:
            out.append(seen(f(x, [0.1, 0.2, 0.7][i % 3])))
        except Exception as error:
            out.append([type(error).__name__, str(error)[:80]])
        out += [state_of([w, buf]), torch.get_rng_state().numpy().copy()]
    return out, f


def compare(seed):
    """Raise if a program differs; how often its programs ran."""
    source = written(seed)
    expected, _ = observed(source, seed, lambda f: f)
    found, f = observed(source, seed, lambda f: torch.compile(f, options={"exact": True}))
    same(found, expected, f"{source}\nresult")
    assert [entry.why for entry in f._compiled.entries if entry.why] == [], source
    return sum([entry.calls for entry in f._compiled.entries])


if __name__ == "__main__":
    search(compare, *sys.argv[1:])
