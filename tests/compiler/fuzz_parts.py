"""Random functions that do what cannot be recorded, beside compiled ones, which run in parts:
`python -m tests.compiler.fuzz_parts [seconds] [seed]`"""

from __future__ import annotations

import linecache
import random
import sys
import warnings

import pullback as torch
from pullback import nn, optim
from tests.compiler.support import same, search, seen, state_of

STATEMENTS = [
    "y = (y * {c}).tanh() + x", "y = y + torch.rand(3) * {c}", "y = w * y - {c}", "z = (y * y).exp().mean() + y.sum()",
    "y = y * float(y.detach().abs().mean())", "log.append(round(float(y.detach().sum()), 3))", "state.count += 1",
    "said.append(f'{{y.detach().mean().item():.3f}}')", "y = helper(y)", "y = speaking(y)", "y = y + layer(y)",
    "y = y * noisy(y)", "n = n + 1", "t = t * 0.5 + {c}", "y = y * t", "y = y * n", "buf.add_(y.detach() * {c})",
    "y = y + torch.from_numpy(y.detach().numpy().copy()) * {c}", "a, b = y.sin(), y.cos()", "y = a * b - y",
    "parts = [k * y for k in (1, 2)]", "y = sum(p * {c} for p in parts)", "kept['y'] = y.detach()", "y += {c}",
    "y = y + kept.get('y', buf)", "optimizer.zero_grad()", "(y * w).sum().backward(retain_graph=True)",
    "optimizer.step()", "table = {{'y': y * 2, 'n': n}}", "y = table['y'].tanh() - y", "y.detach().clamp_(-9, 9)",
    "y = y.clamp(-3, 3) * (y.detach() + 1).log1p().nan_to_num()", "local = log", "local.append(n)",
]  # fmt: skip
CONDITIONS = ["y.sum() > 0", "n % 2 == 0", "float(y.detach().mean()) > {c}", "state.count % 3 == 1", "t < 0.4",
              "len(log) % 2", "(y > 0).any()", "kept", "n > 4"]  # fmt: skip
HEADS = [
    "if {condition}:",
    "for i in range({k}):",
    "while n % 3 and n < 12:",
    "with torch.no_grad():",
    "try:",
    "with quiet():",
]
SETTING = """
class State:
    count = 0

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = nn.Linear(3, 3), 0

    def forward(self, x):
        y = self.inner(x).tanh() * x - 0.5
        self.calls += 1
        said.append(self.calls)
        y = y.exp().sigmoid() + x * 0.3
        if self.calls % 4 == 0:
            return y * 2
        return y.tanh() - x

class quiet:
    def __enter__(self):
        said.append("in")

    def __exit__(self, kind, *rest):
        said.append("out")
        return kind is not None and issubclass(kind, ValueError)

def helper(y):
    return (y.tanh() * 2 - y.exp().clamp(max=4)).sigmoid() + y * 0.1

def speaking(y):
    y = (y * 2).tanh() - y * 0.3 + 1
    said.append(round(float(y.detach().sum()), 3))
    return y.exp().clamp(max=3) * y.cos() + 0.1

state, noisy, layer = State(), Noisy(), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
w, buf, said, log, kept = torch.randn(3, requires_grad=True), torch.zeros(3), [], [], {}
optimizer = optim.SGD([w, *noisy.parameters(), *layer.parameters()], lr=0.05, momentum=0.5)
"""


def written(seed):
    """The source of a function of a tensor, a whole number and a float."""
    draw = random.Random(seed)
    lines = ["def f(x, n, t):", "    y, a, b, parts, table, local = x * 1.0, x, x, [x], {'y': x}, []"]

    def block(depth, indent, loop):
        for _ in range(draw.randint(2, 4)):
            if depth and draw.random() < 0.3:
                head = draw.choice(HEADS).format(condition=draw.choice(CONDITIONS).format(c=0.2), k=draw.randint(1, 3))
                lines.append(indent + head)
                looping = loop or head.startswith(("for", "while"))
                block(depth - 1, indent + "    ", looping)
                if head.startswith("while"):
                    lines.append(f"{indent}    n += 1")
                elif head == "try:":
                    lines.append(f"{indent}    if n % 2: raise ValueError(n)")
                    lines.append(f"{indent}except ValueError as error:")
                    lines.append(f"{indent}    said.append(str(error))")
                elif head.startswith("if") and draw.random() < 0.5:
                    lines.append(f"{indent}else:")
                    block(depth - 1, indent + "    ", loop)
                elif head.startswith("if") and draw.random() < 0.4:
                    end = draw.choice(["return y, n", *(["break", "continue"] if loop else [])])
                    lines.append(f"{indent}    {'n += 1; ' if end == 'continue' else ''}{end}")
            else:
                lines.append(indent + draw.choice(STATEMENTS).format(c=round(draw.uniform(-2, 2), 2)))

    block(2, "    ", False)
    block(2, "    ", False)
    return "\n".join([*lines, "    return y, n, t, table, (y * y + buf).mean(), [a, b]", ""])


def observed(seed, compiled):
    """What can be seen of several calls, and the function."""
    source, name = SETTING + written(seed), f"<parts {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    torch.manual_seed(seed)
    space = {"torch": torch, "nn": nn, "optim": optim, "__name__": "parts"}
    exec(compile(source, name, "exec"), space)
    f = compiled(space["f"])
    tensors = [space["w"], space["buf"], *space["noisy"].parameters(), *space["layer"].parameters()]
    out = []
    for i in range(9):
        x = torch.randn(3) * (0.5 + i % 3)
        try:
            result = f(x, [0, 1, 4][i % 3], [0.1, 0.2, 0.7][i % 3])
            out.append(seen(result))
            if result[0].grad_fn is not None and i % 2:
                result[0].sum().backward()
        except Exception as error:
            out.append([type(error).__name__, str(error)[:60]])
        out += [state_of(tensors), seen([space["log"], space["said"], space["kept"], space["state"].count])]
        out.append(torch.get_rng_state().numpy().copy())
    return out, f


def programs_in(compiled):
    """How often programs ran: of a function, of its parts, and of what is called between these."""
    division = compiled.division
    parts = [] if division is None else [part.compiled for part in division.parts]
    parts += [] if division is None else [made for _, made in division.callees.values()]
    return sum([entry.calls for entry in compiled.entries]) + sum([programs_in(part) for part in parts])


def compare(seed):
    """Raise if a function in parts differs; how often programs ran."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = observed(seed, lambda f: f)
        found, f = observed(seed, lambda f: torch.compile(f, options={"exact": True}))
        # Gradients of parts are added up part by part, and rounded so.
        same(found, expected, f"{written(seed)}\nresult", rounding=True)
    return programs_in(f._compiled)


if __name__ == "__main__":
    search(compare, *sys.argv[1:])
