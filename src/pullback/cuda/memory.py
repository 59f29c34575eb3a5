"""The memory of CUDA devices: statistics, limits, and giving cached memory back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pullback._runtime.building import loaded
from pullback.cuda.devices import index_of, is_available, is_initialized, refuse, rooms


def pool(device: Any) -> Any:
    """The allocator of a device."""
    return loaded("pullback.kernels.cuda.memory").pool_of(index_of(device))


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Statistics of the allocator under torch's names; none where there is no device."""
    return pool(device).report() if is_initialized() else OrderedDict()  # type: ignore[no-any-return]


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The same statistics, each part of a name a dict of its own."""
    return nested(pool(device).report() if is_initialized() else {})


def nested(stats: dict[str, Any]) -> dict[str, Any]:
    """ "a.b.c" as dicts inside of each other."""
    found: dict[str, Any] = {}
    for name, value in stats.items():
        *outer, last = name.split(".")
        into = found
        for part in outer:
            into = into.setdefault(part, {})
        into[last] = value
    return found


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Every segment of memory and its blocks, on all devices; where they were asked for is not known.

    Args:
        mempool_id: the name of a pool, whose segments alone are told of.
        include_traces: accepted.
    """
    found = []
    for one in list(loaded("pullback.kernels.cuda.memory").pools.values()) if is_available() else refuse():
        found += one.snapshot()
    return [s for s in found if mempool_id is None or s["segment_pool_id"] == tuple(mempool_id)]


# ------------------------------------------------------------------ pools

names = count(1)


def new_pool(shared: bool = False) -> tuple[int, int]:
    """The name of a pool of memory that nobody else uses: of one graph, or to be shared."""
    number = next(names)
    return (0, number) if shared else (number, 0)


class MemPool:
    """Memory of its own for what is made inside of `use_mem_pool`: other tensors do not get it while the pool lives.

    Args:
        allocator: must be None: memory is the driver's.
        use_on_oom: must be False.
        no_split: must be False.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class MemPool")
        for name, value in (("allocator", allocator), ("use_on_oom", use_on_oom), ("no_split", no_split)):
            if value:
                raise NotImplementedError(f"MemPool({name}=...) is not supported; leave {name} out")
        self.device, self.id = index_of(), new_pool(shared=True)
        self.memory = pool(self.device)
        self.memory.share(self.id)

    def use_count(self) -> int:
        """How many use the pool: this object, and everybody inside of `use_mem_pool`."""
        return self.memory.private[self.id]  # type: ignore[no-any-return]

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Its segments and their blocks."""
        return memory_snapshot(self.id, include_traces)

    def __del__(self) -> None:
        if hasattr(self, "memory"):
            self.memory.unshare(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Within the block, this thread takes memory of a device from a pool."""
    index = index_of(device)
    memory = loaded("pullback.kernels.cuda.memory").pool_of(index)
    memory.share(pool.id)
    before = rooms().streams.take_from(index, pool.id)
    try:
        yield
    finally:
        rooms().streams.take_from(index, before)
        memory.unshare(pool.id)


def get_allocator_backend() -> str:
    """The name of the allocator."""
    return "native"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Bytes of a device for another library, which gives them back by `caching_allocator_delete`; their address."""
    handle = getattr(stream, "cuda_stream", stream)
    if handle is not None and not isinstance(handle, int):
        raise TypeError("Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing a pointer "
                        "to a existing stream")  # fmt: skip
    index = index_of(device)
    before = None if handle is None else rooms().streams.use(index, handle)
    try:
        memory = loaded("pullback.kernels.cuda.memory").Memory(index, size)
    finally:
        if before is not None:
            rooms().streams.use(index, before)
    given_away[memory.address] = memory
    return memory.address  # type: ignore[no-any-return]


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give such bytes back."""
    if given_away.pop(mem_ptr, None) is None:
        raise RuntimeError(f"invalid device pointer: {mem_ptr:#x}")


given_away: dict[int, Any] = {}
"""Memory that other libraries use, by its address."""


def statistic(name: str, doc: str) -> Any:
    """A function that asks for one number."""

    def ask(device: Any = None) -> int:
        return memory_stats(device).get(name, 0)  # type: ignore[no-any-return]

    ask.__doc__ = doc
    return ask


memory_allocated = statistic("allocated_bytes.all.current", "Bytes that tensors on a device take.")
max_memory_allocated = statistic("allocated_bytes.all.peak", "The most bytes that tensors on a device took.")
memory_reserved = statistic("reserved_bytes.all.current", "Bytes of a device that are in use or kept for later.")
max_memory_reserved = statistic("reserved_bytes.all.peak", "The most bytes that were in use or kept for later.")
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def empty_cache() -> None:
    """Give memory that no tensor uses back to the driver."""
    if is_initialized():
        for one in list(loaded("pullback.kernels.cuda.memory").pools.values()):
            one.empty()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the peaks anew."""
    if not is_available():
        refuse()
    pool(device).reset("peak")


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Count what came and went anew."""
    if not is_available():
        refuse()
    pool(device).reset("allocated", "freed")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device, as the driver knows them."""
    index = index_of(device)
    return loaded("pullback.kernels.cuda.device").required().memory_info(index)  # type: ignore[no-any-return]


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let tensors take at most this part of the memory of a device."""
    index_of(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    pool(device).limit = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the memory that tensors may take."""
    limit = pool(device).limit
    return 1.0 if limit is None else limit


ROWS = [
    ("Allocated memory", "allocated_bytes"),
    ("Active memory", "active_bytes"),
    ("Requested memory", "requested_bytes"),
    ("GPU reserved memory", "reserved_bytes"),
    ("Non-releasable memory", "inactive_split_bytes"),
    ("Allocations", "allocation"),
    ("Active allocs", "active"),
    ("GPU reserved segments", "segment"),
    ("Non-releasable allocs", "inactive_split"),
]
PARTS = [("Cur Usage", "current"), ("Peak Usage", "peak"), ("Tot Alloc", "allocated"), ("Tot Freed", "freed")]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    stats, index = memory_stats(device), index_of(device)
    if not is_available():
        refuse()
    line = "|" + "=" * 75 + "|"
    head = f"|{'PyTorch CUDA memory summary, device ID ' + str(index):^75}|"
    rows = [line, head, "|" + "-" * 75 + "|"]
    failures, retries = f" CUDA OOMs: {stats['num_ooms']}", f" cudaMalloc retries: {stats['num_alloc_retries']}"
    rows.append(f"|{failures:<37}|{retries:<37}|")
    rows += [line, "|" + f"{'Metric':^23}" + "|" + "|".join([f"{name:^12}" for name, _ in PARTS]) + "|", line]
    for title, name in ROWS:
        sized = name.endswith("bytes")
        for part, shown in (
            ("all", title),
            ("large_pool", "      from large pool"),
            ("small_pool", "      from small pool"),
        ):
            if part != "all" and abbreviated:
                continue
            cells = [amount(stats[f"{name}.{part}.{key}"], sized) for _, key in PARTS]
            rows.append(f"| {shown:<22}|" + "|".join([f"{cell:>11} " for cell in cells]) + "|")
    return "\n".join([*rows, line]) + "\n"


def amount(value: int, sized: bool) -> str:
    """A number for the table."""
    if not sized:
        return str(value)
    for unit, power in (("GiB", 33), ("MiB", 23), ("KiB", 13)):
        if value >= 1 << power:
            return f"{value >> (power - 3)} {unit}"
    return f"{value} B"
