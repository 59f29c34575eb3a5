"""Every op on the meta device, beside torch: shapes, dtypes and strides of results without elements.

Usage:
    python -m tests.conformance.meta                   # all ops; prints what differs and the counts
    python -m tests.conformance.meta --op add sort     # these
    python -m tests.conformance.meta --write           # write docs/meta.md
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import harness
from .aspects import Call
from .library import TORCH, Library, Unconvertible, dtype_name, tensors_in
from .samples import ops, samples

FILE = Path(__file__).parents[2] / "docs" / "meta.md"
DTYPES = (torch.float64, torch.complex128, torch.int64, torch.bool)
NO_ANSWER = "has no answer"
KNOWN = {
    "linspace.tensor_overload": "its bounds are read, and tensors without elements have none",
    "logspace.tensor_overload": "its bounds are read, and tensors without elements have none",
    **dict.fromkeys(("mvlgamma.mvlgamma_p_1", "mvlgamma.mvlgamma_p_3", "mvlgamma.mvlgamma_p_5"), "the memory order"),
}
"""Ops whose results differ from torch's on its meta device, or which raise something else, and why."""


class OnMeta(Library):
    """A library whose tensors are made on the meta device."""

    def tensor(self, array: np.ndarray, dtype: str, requires_grad: bool = False) -> Any:
        kind = self.require(dtype)
        steps = [step // array.itemsize for step in array.strides]
        if not array.size:
            made = self.module.empty(array.shape, dtype=kind, device="meta")
        else:
            made = self.module.empty_strided(array.shape, steps, dtype=kind, device="meta")
        return made.requires_grad_() if requires_grad else made


class MetaCall(Call):
    """A call whose tensors, and whose `device=`, are on the meta device."""

    def convert(self, **options: Any) -> Any:
        conversion, first, args, kwargs = super().convert(**options)
        return conversion, first, args, kwargs | ({"device": "meta"} if "device" in kwargs else {})


def facts(library: Library, outputs: Any) -> list[tuple[Any, ...]]:
    """Shape, dtype and strides of every tensor in a result."""
    found = []
    for tensor in tensors_in(library, outputs):
        steps = [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1] if tensor.numel() else []
        found.append((tuple(tensor.shape), dtype_name(tensor.dtype), steps, str(tensor.device)))
    return found


def compared(name: str, peer: Library) -> Counter[str]:
    """How often each verdict was given about an op: "agrees", "has no answer", "torch has none", or what differs."""
    info, verdicts = ops()[name], Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for sample in samples(info, dtype):
                verdicts[verdict(info, sample, peer)] += 1
    return verdicts


def verdict(info: Any, sample: Any, peer: Library) -> str:
    """What one sample shows."""
    try:
        wanted = facts(TORCH, MetaCall(OnMeta(torch), info, sample).outputs)
    except Exception:
        return "torch has none"
    if not wanted or any(device != "meta" for *_, device in wanted):
        return "torch has none"
    try:
        got = facts(peer, MetaCall(OnMeta(peer.module), info, sample).outputs)
    except Unconvertible:
        return "torch has none"
    except Exception as error:
        if refuses(Call(TORCH, info, sample), error):
            return "agrees"  # where torch's kernels refuse what its rule for the meta device lets pass
        if isinstance(error, NotImplementedError):
            return f"{NO_ANSWER}: {error}"
        return f"raises {type(error).__name__}: {error} [{sample}]"
    try:
        on_cpu = facts(TORCH, Call(TORCH, info, sample).outputs)
        here = facts(peer, Call(peer, info, sample).outputs)
    except Exception:
        on_cpu = here = []
    if len(wanted) != len(got):
        return f"differs: {len(wanted)} tensors, {len(got)} here [{sample}]"
    for place, (one, other) in enumerate(zip(wanted, got, strict=True)):
        # Torch's own rule for the meta device may say otherwise than its kernels for the CPU: then ours follow those.
        own = on_cpu[place] if place < len(on_cpu) else one
        for what, (a, b, c) in zip(("shape", "dtype", "strides"), zip(one, other, own)):
            if what == "strides" and place < len(here) and b == here[place][2]:
                continue  # as on the CPU: whether those strides are torch's is asked there
            if a != b and b != c and (a == c or what != "strides"):
                return f"differs in {what}: torch {a}, here {b} [{sample}]"
        if other[3] != "meta":
            return f"differs: on {other[3]} [{sample}]"
    return "agrees"


def refuses(call: Call, error: Exception) -> bool:
    """Whether a call on the CPU ends with the same error."""
    try:
        call.outputs
    except Exception as other:
        return str(error).startswith(str(other)[:60])
    return False


def page(found: dict[str, Counter[str]]) -> str:
    """docs/meta.md."""
    lacking = {name: v for name, v in found.items() if any(NO_ANSWER in text for text in v)}
    lines = [
        "# Ops on the meta device",
        "",
        "Written by `python -m tests.conformance.meta --write`; a test compares it with the truth. An op that is not",
        "listed gives results of torch's shape, dtype and strides on all of torch's own samples that torch answers on",
        "its meta device. The others raise `NotImplementedError`, on some of them or on all.",
        "",
        f"Of {len(found)} ops {len(found) - len(lacking)} answer every sample and {len(lacking)} some or none.",
        "",
        "| op | samples answered | why not the others |",
        "|---|---|---|",
    ]
    for name, v in sorted(lacking.items()):
        lack = {text: n for text, n in v.items() if NO_ANSWER in text}
        reason = max(lack, key=lambda text: lack[text]).removeprefix(f"{NO_ANSWER}: ").partition("\n")[0]
        reason = reason.replace("|", "\\|")
        lines.append(f"| {name} | {v['agrees']} of {v['agrees'] + sum(lack.values())} | {reason[:160]} |")
    return "\n".join(lines) + "\n"


def listed(text: str) -> dict[str, int]:
    """The ops of docs/meta.md, and how many samples they answer."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ") and " of " in line]
    return {row[1].strip(): int(row[2].split()[0]) for row in rows}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare ops on the meta device with torch's.")
    parser.add_argument("--op", nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", type=int, default=None)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    peer = harness.load_peer("pullback")
    names = harness.select(chosen.op) if chosen.op else harness.collected(peer)[chosen.first : chosen.to]
    found = {}
    for name in names:
        found[name] = compared(name, peer)
        bad = {text: n for text, n in found[name].items() if text not in ("agrees", "torch has none")}
        if bad:
            print(name, dict(found[name] & Counter({"agrees": 10**9})), flush=True)
            for text, n in list(bad.items())[:6]:
                print(f"    {n} x {text[:400]}", flush=True)
    if chosen.write:
        FILE.write_text(page(found))
    total = sum(found.values(), Counter())
    wrong = sum(n for text, n in total.items() if text.startswith(("differs", "raises")))
    lacking = sum(n for text, n in total.items() if text.startswith(NO_ANSWER))
    clean = sum(not any(t.startswith((NO_ANSWER, "differs", "raises")) for t in v) for v in found.values())
    print(
        f"{len(found)} ops, {clean} without fault; {total['agrees']} samples agree, {lacking} have no answer, "
        f"{wrong} differ"
    )
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
