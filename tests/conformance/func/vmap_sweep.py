"""vmap against a loop, for every op of torch's database: `python -m tests.conformance.func.vmap_sweep [names]`.

For each sample the first tensor (and then every tensor) is replaced by a batch of two; `vmap` of the op must give what
two calls give, and so must `vmap` of its backward pass.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch

import pullback
from pullback.func import vjp, vmap
from tests.conformance.aspects import op_function
from tests.conformance.library import Conversion, Library, Unconvertible, tensors_in
from tests.conformance.samples import ops, samples

PEER = Library(pullback)
DYNAMIC = (
    "use slices, or gather and scatter",
    "resize_ inside vmap",
    "Batch norm got a batched tensor as input",
    "dynamic shape",
    "differently shaped",
    "randomness error mode",
    ".item()",
    "data-dependent control flow",
    "doesn't have storage",
    "not possible because there exists a Tensor",
    "doesn't match the broadcast shape",
)
"""What vmap may refuse."""


def floats(value: Any) -> list[Any]:
    """The floating point tensors of a call's arguments."""
    return [t for t in tensors_in(PEER, value) if t.dtype.is_floating_point or t.dtype.is_complex]


def substituted(value: Any, old: list[Any], new: list[Any]) -> Any:
    """The same arguments with other tensors."""
    for a, b in zip(old, new, strict=True):
        if value is a:
            return b
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([substituted(v, old, new) for v in value])
    if isinstance(value, dict):
        return {k: substituted(v, old, new) for k, v in value.items()}
    return value


def only_floats(result: Any) -> list[Any]:
    """What is compared: every tensor of a result."""
    return [t for t in tensors_in(PEER, result)]


def compared(info: Any, sample: Any, every: bool) -> str | None:
    """What differs for one sample; None if nothing does."""
    conversion = Conversion(PEER, requires_grad=False)
    function = op_function(PEER, info)
    call = (conversion(sample.input), *conversion(sample.args), conversion(sample.kwargs))
    moving = [t for i, t in enumerate(floats(call)) if all(t is not u for u in floats(call)[:i])]
    moving = moving if every else moving[:1]
    if not moving:
        return None
    second = [t.clone() if t.numel() == 0 else (t * 0.75 + 0.01 * t.flip(-1) if t.ndim else t * 0.75) for t in moving]
    batches = [pullback.stack([a.clone(), b]) for a, b in zip(moving, second, strict=True)]

    def run(*tensors: Any) -> Any:
        args = substituted(call, moving, list(tensors))
        out = only_floats(function(*args[:-1], **args[-1]))
        return tuple(out)

    try:
        rows = [run(*[b[i].clone() for b in batches]) for i in range(2)]
    except Exception:  # the op itself does not take the second entry
        return None
    if not rows[0] or [r.shape for r in rows[0]] != [r.shape for r in rows[1]]:
        return None
    got = vmap(run)(*batches)
    for ours, one, other in zip(got, *rows, strict=True):
        wanted = pullback.stack([one, other])
        if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
            return f"{tuple(ours.shape)} {ours.dtype}, wanted {tuple(wanted.shape)} {wanted.dtype}"
        if not np.allclose(PEER.array(ours), PEER.array(wanted), rtol=1e-6, atol=1e-9, equal_nan=True):
            return "values"
    return backward_compared(run, batches, rows) if info.supports_autograd else None


def backward_compared(run: Any, batches: list[Any], rows: list[Any]) -> str | None:
    """The same for the backward pass, inside vmap and through it."""
    keep = [i for i, out in enumerate(rows[0]) if out.dtype.is_floating_point]
    if not keep or any(b.dtype.is_complex for b in batches):
        return None

    def some(*tensors: Any) -> Any:
        outs = run(*tensors)
        return tuple([outs[i] for i in keep])

    def pulled(*tensors: Any) -> Any:
        outs, pull = vjp(some, *tensors)
        return pull(tuple([pullback.ones_like(out) for out in outs]))

    try:
        expected = [pulled(*[b[i].clone() for b in batches]) for i in range(2)]
    except (RuntimeError, NotImplementedError):
        return None
    got = vmap(pulled)(*batches)
    leaves = [b.clone().requires_grad_() for b in batches]
    outs = vmap(some)(*leaves)
    through = pullback.autograd.grad(
        [o for o in outs if o.requires_grad], leaves, [pullback.ones_like(o) for o in outs if o.requires_grad],
        allow_unused=True, materialize_grads=True,
    )  # fmt: skip
    for i, (inside, across) in enumerate(zip(got, through, strict=True)):
        wanted = PEER.array(pullback.stack([expected[0][i], expected[1][i]]))
        for name, ours in (("gradient inside", inside), ("gradient through", across)):
            if not np.allclose(PEER.array(ours), wanted, rtol=1e-5, atol=1e-8, equal_nan=True):
                return name
    return None


def sweep(names: list[str]) -> dict[str, str]:
    """What differs, by op."""
    found: dict[str, str] = {}
    for name in names:
        info = ops()[name]
        for sample in samples(info, torch.float64)[:8]:
            for every in (False, True):
                try:
                    wrong = compared(info, sample, every)
                except Unconvertible:  # a sample only torch can hold
                    break
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                    wrong = None if any(d in text for d in DYNAMIC) else text.replace("\n", " ")[:200]
                if wrong:
                    found.setdefault(name, f"{wrong} [{'all' if every else 'first'}] {str(sample)[:120]}")
    return found


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(ops())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sweep(chosen)
    for name, what in result.items():
        print(f"{name}: {what}")
    looped = Counter(
        str(w.message).split("aten::")[1].split(".")[0] for w in caught if "performance drop" in str(w.message)
    )
    print(f"{len(result)} of {len(chosen)} differ; run by a loop: {len(looped)}: {', '.join(sorted(looped))}")
