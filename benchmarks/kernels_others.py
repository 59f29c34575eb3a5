"""Random numbers, running sums, sorting and selection of a million elements, two threads each."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.compare import Build, compared
from benchmarks.table import Row

EACH, MEAN, SECTION = 1.1, 0.7, "random, scans, selection"
"""Budgets: no op much slower than torch's, and their geometric mean."""
MILLION = 1_000_000

Call = Callable[[ModuleType, Any], Any]
CASES: list[tuple[str, Call]] = [
    ("rand 1M", lambda torch, x: torch.rand(MILLION)),
    ("rand 1M, float64", lambda torch, x: torch.rand(MILLION, dtype=torch.float64)),
    ("randn 1M", lambda torch, x: torch.randn(MILLION)),
    ("randint 1M, below 100", lambda torch, x: torch.randint(0, 100, (MILLION,))),
    ("randint 1M, below 2**40", lambda torch, x: torch.randint(0, 1 << 40, (MILLION,))),
    ("bernoulli_ 1M", lambda torch, x: torch.empty(MILLION).bernoulli_(0.3)),
    ("dropout 1M", lambda torch, x: torch.nn.functional.dropout(x, 0.1)),
    ("exponential_ 1M", lambda torch, x: torch.empty(MILLION).exponential_()),
    ("randperm 100k", lambda torch, x: torch.randperm(100_000)),
    ("cumsum 1M", lambda torch, x: x.cumsum(0)),
    ("cumsum [1000, 1000], last", lambda torch, x: x.view(1000, 1000).cumsum(1)),
    ("cumsum [1000, 1000], first", lambda torch, x: x.view(1000, 1000).cumsum(0)),
    ("cumprod [1000, 1000]", lambda torch, x: x.view(1000, 1000).cumprod(1)),
    ("cummax [1000, 1000]", lambda torch, x: x.view(1000, 1000).cummax(1)),
    ("logcumsumexp [1000, 1000]", lambda torch, x: x.view(1000, 1000).logcumsumexp(1)),
    ("topk 10 of 1M", lambda torch, x: x.topk(10)),
    ("topk 10 of [1000, 1000]", lambda torch, x: x.view(1000, 1000).topk(10)),
    ("kthvalue of 1M", lambda torch, x: x.kthvalue(5000)),
    ("median of 1M", lambda torch, x: x.median()),
    ("median of [1000, 1000]", lambda torch, x: x.view(1000, 1000).median(1)),
    ("sort 1M", lambda torch, x: x.sort()),
    ("sort [1000, 1000], descending", lambda torch, x: x.view(1000, 1000).sort(descending=True)),
]


def cases() -> Iterator[tuple[str, Build]]:
    """Every call on a million normal numbers."""
    for name, call in CASES:
        yield name, lambda torch, call=call: partial(call, torch, torch.randn(MILLION))


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Every case, and the geometric mean."""
    return compared(SECTION, cases(), (torch, peer), 0.6 if quick else 3.0, (EACH, MEAN))
