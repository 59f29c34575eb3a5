"""Compare every op of a peer library with torch, aspect by aspect.

Usage:
    python -m tests.conformance.harness --table              # the whole table
    python -m tests.conformance.harness --op add --verbose   # one op, all its differences
    python -m tests.conformance.harness --missing            # torch's ops the peer does not have
    python -m tests.conformance.harness --write-coverage     # write docs/coverage.md; --check-coverage compares with it
    python -m tests.conformance.harness --peer torch         # torch against itself: everything must agree
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo

from tests.conformance import aspects as looking
from tests.conformance import batching, coverage
from tests.conformance.aspects import NOT_RESIZABLE, Call, NotApplicable, op_path
from tests.conformance.compare import LOOSER, difference
from tests.conformance.known_differences import KNOWN_DIFFERENCES
from tests.conformance.library import TORCH, Library, Unconvertible
from tests.conformance.samples import DTYPES, Sample, error_samples, ops, samples
from tests.conformance.ties import leaves_open, named_elements

VARIANT_SAMPLES = 4  # the other ways to call an op are tried on so many of torch's samples of each dtype
KEPT_DIFFERENCES = 20


@dataclass
class Tally:
    """How often an aspect agreed, and the differences found."""

    passed: int = 0
    total: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.passed < self.total

    def count(self, found: str | None, sample: Sample) -> None:
        self.total += 1
        if found is None:
            self.passed += 1
        elif len(self.differences) < KEPT_DIFFERENCES:
            self.differences.append(f"{sample}: {found}")


@dataclass
class OpResult:
    """All aspects of one op."""

    name: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, aspect: str, found: str | None, sample: Sample) -> None:
        self.tallies.setdefault(aspect, Tally()).count(found, sample)

    def failed(self) -> list[str]:
        return [aspect for aspect, tally in self.tallies.items() if tally.failed]

    def problems(self, known: dict[tuple[str, str], str]) -> list[str]:
        """Differences nobody has listed, and listed differences that are gone."""
        found = [
            f"{self.name} {aspect}: {tally.passed}/{tally.total} agree; first difference: {tally.differences[0]}"
            for aspect, tally in self.tallies.items()
            if tally.failed and (self.name, aspect) not in known
        ]
        for (name, aspect), reason in known.items():
            if name == self.name and not self.tallies.get(aspect, Tally()).failed:
                found.append(f"{name} {aspect}: listed as a known difference ({reason}), but everything checked agrees")
        return found


class Results(dict[str, OpResult]):
    """The result of every op, by name."""

    def totals(self) -> dict[str, tuple[int, int]]:
        """(passed, total) by aspect, over all ops."""
        tallied: dict[str, tuple[int, int]] = {}
        for aspect in looking.ALL:
            found = [result.tallies[aspect] for result in self.values() if aspect in result.tallies]
            if found:
                tallied[aspect] = (sum(tally.passed for tally in found), sum(tally.total for tally in found))
        return tallied

    def problems(self, known: dict[tuple[str, str], str] = KNOWN_DIFFERENCES) -> list[str]:
        """Everything that keeps the comparison from being clean."""
        return [problem for result in self.values() for problem in result.problems(known)]

    def table(self, only_failed: bool = False) -> str:
        """A row per op with passed/total for each aspect, failures marked, and a row of totals."""
        totals = self.totals()
        rows = [["op", *totals]]
        for name, result in self.items():
            if not only_failed or result.failed():
                rows.append([name, *(_cell(result.tallies.get(aspect)) for aspect in totals)])
        rows.append(["all", *(f"{passed}/{total}" for passed, total in totals.values())])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


def run(
    op_names: Iterable[str] | None = None,
    aspects: Iterable[str] | None = None,
    peer: Library | None = None,
    report: Callable[[OpResult], None] | None = None,
    jobs: int = 1,
) -> Results:
    """Compare the ops named (all the peer has, by default) in the aspects named (all, by default)."""
    peer = peer or load_peer("pullback")
    wanted = set(aspects or looking.ALL)
    unknown = wanted - set(looking.ALL)
    if unknown:
        raise ValueError(f"no such aspect: {', '.join(sorted(unknown))}; there are: {', '.join(looking.ALL)}")
    names = select(op_names) if op_names else collected(peer)
    found: dict[str, OpResult] = {}
    for result in _compare_all(names, peer, wanted, jobs):
        found[result.name] = result
        if report:
            report(result)
    return Results((name, found[name]) for name in names)


def _compare_all(names: list[str], peer: Library, wanted: set[str], jobs: int) -> Iterator[OpResult]:
    """The result of each op as it is ready, from one process or several."""
    if jobs == 1 or len(names) < 2 * jobs:
        yield from (compare_op(name, ops()[name], peer, wanted) for name in names)
        return
    setup = (peer.module.__name__, wanted)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start_worker, setup) as pool:
        for done in as_completed([pool.submit(_compare_in_worker, name) for name in names]):
            yield done.result()


def _start_worker(peer: str, wanted: set[str]) -> None:
    torch.set_num_threads(1)
    _worker.update(peer=load_peer(peer), wanted=wanted)


def _compare_in_worker(name: str) -> OpResult:
    return compare_op(name, ops()[name], _worker["peer"], _worker["wanted"])


_worker: dict[str, Any] = {}


def select(op_names: Iterable[str]) -> list[str]:
    """The full names meant by `max` (all its variants), `max.binary` or `nn.functional.relu`."""
    chosen: list[str] = []
    for wanted in op_names:
        found = [name for name, info in ops().items() if wanted in (name, info.name)]
        if not found:
            raise ValueError(f"torch's op database has no op {wanted!r}")
        chosen += found
    return list(dict.fromkeys(chosen))


def collected(peer: Library) -> list[str]:
    """The ops the peer has."""
    return [name for name, info in ops().items() if peer.resolve(op_path(info)) is not None]


def missing(peer: Library) -> list[str]:
    """The dotted paths the peer does not have yet, aliases included."""
    paths = [
        path
        for info in ops().values()
        for path in (op_path(info), *(other.name.removeprefix("torch.") for other in info.aliases))
    ]
    return sorted({path for path in paths if peer.resolve(path) is None})


def load_peer(name: str) -> Library:
    """The library to compare with torch, by module name."""
    return Library(importlib.import_module(name))


def compare_op(name: str, info: OpInfo, peer: Library, wanted: set[str]) -> OpResult:
    """Try one op on all its samples."""
    result, started = OpResult(name), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            tried = 0
            for sample in samples(info, dtype):
                variants = tried < VARIANT_SAMPLES or sample.own
                tried += _compare_sample(result, info, sample, peer, wanted, variants)
        for sample in error_samples(info):
            _compare_error(result, info, sample, peer, wanted)
    result.seconds = time.perf_counter() - started
    return result


def _compare_sample(
    result: OpResult, info: OpInfo, sample: Sample, peer: Library, wanted: set[str], variants: bool
) -> bool:
    """Compare one valid call; False where torch itself refuses it."""
    expected, actual = Call(TORCH, info, sample), Call(peer, info, sample)
    try:
        expected.outputs
    except Unconvertible as reason:
        result.skipped.append(f"{sample}: {reason}")
        return False
    except Exception:
        _compare_error(result, info, sample, peer, wanted)
        return False
    try:
        actual.outputs
    except Exception as error:
        result.count("value", _raised(error), sample)
        return True
    for aspect, observe in _observations(sample, variants):
        if aspect in wanted:
            _compare_aspect(result, aspect, observe, expected, actual)
    return True


def _observations(sample: Sample, variants: bool) -> Iterator[tuple[str, Callable]]:
    yield from looking.RESULT.items()
    if sample.dtype is torch.float64:
        yield from looking.RECORDED.items()
        yield from looking.DERIVATIVES.items()
    if sample.dtype is torch.complex128:
        yield from looking.COMPLEX_DERIVATIVES.items()
    if variants:
        yield from looking.VARIANTS.items()


def _compare_aspect(result: OpResult, aspect: str, observe: Callable, expected: Call, actual: Call) -> None:
    try:
        wanted = observe(expected)
    except NotApplicable:
        return
    except Exception as error:
        result.skipped.append(f"{expected.sample}: torch has no {aspect} here: {str(error)[:100]}")
        return
    try:
        got = observe(actual)
        found = difference(wanted, got, LOOSER.get(aspect, 1.0))
        if found and aspect in SECOND_LOOKS:
            found = _second_look(SECOND_LOOKS[aspect], expected, actual, found)
        if found and aspect in ("value", "method", "out") and leaves_open(actual.info.name, actual.sample):
            one, other = (named_elements(actual.info.name, actual.sample, side) for side in (wanted, got))
            found = difference(one, other)
    except NotApplicable:
        found = "torch answers, the peer has nothing to answer with (no output wants a gradient?)"
    except Exception as error:
        found = _raised(error)
    result.count(aspect, found, actual.sample)


SECOND_LOOKS: dict[str, Callable[[Call], Any]] = {
    "value": looking.processed_value,
    "out": lambda call: looking.out(call, processed=True),
    "method": lambda call: looking.method(call, processed=True),
}
"""How results are compared that differ at first, up to the freedom the op leaves: the sign of an eigenvector."""


def _second_look(look: Callable[[Call], Any], expected: Call, actual: Call, found: str) -> str | None:
    if expected.sample.process is None:
        return found
    try:
        agree = difference(look(expected), look(actual)) is None
    except Exception:
        return found
    return None if agree else found


def _compare_error(result: OpResult, info: OpInfo, sample: Sample, peer: Library, wanted: set[str]) -> None:
    try:
        Call(TORCH, info, sample).outputs
        return
    except Unconvertible as reason:
        result.skipped.append(f"{sample}: {reason}")
        return
    except Exception as error:
        expected = error
    if NOT_RESIZABLE in str(expected):
        result.skipped.append(f"{sample}: {NOT_RESIZABLE}, because the sample lies in an array of NumPy's")
        return
    try:
        Call(peer, info, sample).outputs
    except Exception as error:
        type_found = difference(_type_name(expected), _type_name(error))
        # The peer may say more than torch, after torch's own words.
        agrees = str(error).startswith(str(expected).rstrip())
        text_found = None if agrees else f"expected {str(expected)!r}, got {str(error)!r}"
    else:
        type_found = text_found = f"expected {type(expected).__name__}: {expected}; nothing was raised"
    for aspect, found in (("error_type", type_found), ("error_text", text_found)):
        if aspect in wanted:
            result.count(aspect, found, sample)


def _type_name(error: Exception) -> str:
    return type(error).__name__.lstrip("_")


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {str(error)[:300]}"


def _cell(tally: Tally | None) -> str:
    if tally is None:
        return "-"
    return f"{tally.passed}/{tally.total}" + ("!" if tally.failed else "")


def print_result(result: OpResult, verbose: bool) -> None:
    """An op's counts on one line, then the first difference of each aspect (all of them when verbose)."""
    cells = [f"{aspect} {_cell(tally)}" for aspect, tally in result.tallies.items()]
    print(f"{result.name} ({result.seconds:.1f}s): {', '.join(cells)}")
    for aspect, tally in result.tallies.items():
        for found in tally.differences[: None if verbose else 1]:
            print(f"    {aspect}: {found}")
    if verbose:
        for skipped in result.skipped:
            print(f"    skipped: {skipped}")
    sys.stdout.flush()


class Progress:
    """How far a long run is, on the terminal it was started from."""

    def __init__(self, total: int) -> None:
        self.done, self.total, self.started = 0, total, time.perf_counter()

    def __call__(self, result: OpResult) -> None:
        self.done += 1
        step = 1 if sys.stderr.isatty() else 50
        if self.done % step == 0 or self.done == self.total:
            seconds = time.perf_counter() - self.started
            text = f"{self.done} of {self.total} ops compared, {seconds:.0f} s, last: {result.name}"
            print(f"\r\033[K{text}" if step == 1 else text, end="" if step == 1 else "\n", file=sys.stderr, flush=True)
            if step == 1 and self.done == self.total:
                print(file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare a library's ops with torch's.")
    parser.add_argument("--op", nargs="+", metavar="NAME", help="only these ops")
    parser.add_argument("--aspect", nargs="+", choices=looking.ALL, help="only these aspects")
    parser.add_argument("--table", action="store_true", help="print one table instead of a paragraph for each op")
    parser.add_argument("--verbose", action="store_true", help="print every difference and every op")
    parser.add_argument("--missing", action="store_true", help="list torch's ops the peer does not have")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="compare in N processes")
    parser.add_argument("--write-coverage", action="store_true", help="compare everything and write docs/coverage.md")
    parser.add_argument(
        "--check-coverage", action="store_true", help="fail when a number of docs/coverage.md has fallen"
    )
    parser.add_argument("--peer", default="pullback", help="the module to compare with torch")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    peer = load_peer(chosen.peer)
    if chosen.missing:
        print(*missing(peer), sep="\n")
        return 0

    def report(result: OpResult) -> None:
        if chosen.verbose or chosen.op or result.failed():
            print_result(result, chosen.verbose)

    if chosen.write_coverage or chosen.check_coverage:
        results = run(peer=peer, report=Progress(len(collected(peer))), jobs=chosen.jobs)
        return write_coverage(results, chosen.jobs) if chosen.write_coverage else check_coverage(results)
    quiet = Progress(len(collected(peer))) if not chosen.op else None
    results = run(chosen.op, chosen.aspect, peer, quiet if chosen.table else report, chosen.jobs)
    if chosen.table:
        print(results.table())
        print(*(problem for problem in results.problems()), sep="\n")
    passed, total = (sum(column) for column in zip(*(results.totals().values() or [(0, 0)])))
    failed = sum(1 for result in results.values() if result.failed())
    print(f"{len(results)} ops, {failed} with differences; {passed} of {total} checks agree")
    return 1 if failed else 0


def write_coverage(results: Results, jobs: int = 1) -> int:
    """Write docs/coverage.md."""
    coverage.FILE.write_text(coverage.page(results, batching.ways(sorted(results), jobs)))
    print(*coverage.summary(results), sep="\n")
    print(*results.problems(), sep="\n")
    print(f"{coverage.FILE} is written")
    return 0


def check_coverage(results: Results) -> int:
    """Say which numbers of docs/coverage.md have fallen."""
    complaints = coverage.fallen(results, coverage.FILE.read_text())
    print(*complaints, sep="\n")
    print(f"{len(complaints)} numbers of {coverage.FILE.name} have fallen" if complaints else "no number has fallen")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
