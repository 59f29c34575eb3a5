"""A profile as a table, in torch's layout."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

GAP = "  "
WIDTH = 12


def format_time(us: float) -> str:
    """1.500ms."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def format_share(part: float, whole: float) -> str:
    """12.50%."""
    if whole == 0:
        if part != 0:
            raise AssertionError(f"Expected time_us == 0 but got {part}")
        return "NaN"
    return f"{part * 100.0 / whole:.2f}%"


def format_memory(size: int) -> str:
    """1.50 KB."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
UNITS = {"s": (1e6, "s"), "ms": (1e3, "ms"), "us": (1.0, "us")}


def in_unit(us: float, unit: str | None) -> str:
    """A time in the unit asked for, or in the one that suits it."""
    if unit not in UNITS:
        return format_time(us)
    size, name = UNITS[unit]
    return f"{us / size:.3f}{name}"


def shortened(name: str, width: int | None) -> str:
    """A name that fits its column."""
    return name[: width - 3] + "..." if width is not None and len(name) >= width - 3 else name


def last_part(path: str, width: int) -> str:
    """The end of a path that fits its column."""
    if len(path) <= width:
        return path
    path = path[-width:]
    return "..." + path[3:] if len(path) > 3 else path


def capped(width: int, limit: int | None) -> int:
    """The width of a column that grows with its content."""
    return width + 4 if limit is None else min(width + 4, limit)


def build_table(
    events: Sequence[Any],
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    profile_memory: bool = False,
    with_flops: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
    use_device: str | None = None,
) -> str:
    """The table of events or averages; see EventList.table."""
    if not events:
        return ""
    if sort_by is not None:
        attribute = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events = sorted(events, key=lambda event: getattr(event, attribute), reverse=True)
    with_shapes = any(event.input_shapes for event in events)
    stacks = [event.stack for event in events if event.stack]
    headers = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    device = (use_device or "").upper()
    timed = any(event.self_device_time_total > 0 for event in events)
    kept = profile_memory and bool(device) and any(event.self_device_memory_usage > 0 for event in events)
    headers += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"] if timed else []
    headers += ["CPU Mem", "Self CPU Mem"] if profile_memory else []
    headers += [f"{device} Mem", f"Self {device} Mem"] if kept else []
    headers.append("# of Calls")
    widths = [capped(max(len(event.key) for event in events), max_name_column_width)]
    widths += [WIDTH] * (len(headers) - 1)
    if with_shapes:
        headers.append("Input Shapes")
        widths.append(capped(max(len(str(event.input_shapes)) for event in events), max_shapes_column_width))
    counts = [event.flops for event in events if event.flops > 0]
    thousands = min(int(log10(min(counts)) / 3), len(FLOPS) - 1) if with_flops and counts else None
    if thousands is not None:
        headers.append(f"Total {FLOPS[thousands]}")
        widths.append(WIDTH)
    source_width = 0
    if stacks:
        headers.append("Source Location")
        source_width = capped(max(len(entry) for stack in stacks for entry in stack), max_src_column_width)
        widths.append(source_width)
    row = "".join(
        f"{{: {'<' if h == 'Source Location' else '>'}{w}}}{GAP}" for h, w in zip(headers, widths, strict=True)
    )
    rule = "".join("-" * width + GAP for width in widths)
    length = sum(widths) + len(GAP) * (len(widths) - 1)
    whole = sum(event.self_cpu_time_total for event in events)
    whole_device = sum(event.self_device_time_total for event in events)

    lines = [] if header is None else ["=" * length, header]
    if top_level_events_only:
        lines += ["=" * length, "This report only display top-level ops statistics"]
    lines += [rule, row.format(*headers), rule]
    shown = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    for event in shown[:row_limit] if row_limit >= 0 else shown:
        values: list[Any] = [
            shortened(event.key, max_name_column_width),
            format_share(event.self_cpu_time_total, whole),
            in_unit(event.self_cpu_time_total, time_unit),
            format_share(event.cpu_time_total, whole),
            in_unit(event.cpu_time_total, time_unit),
            in_unit(event.cpu_time, time_unit),
        ]
        if timed:
            values += [
                in_unit(event.self_device_time_total, time_unit),
                format_share(event.self_device_time_total, whole_device),
                in_unit(event.device_time_total, time_unit),
                in_unit(event.device_time, time_unit),
            ]
        if profile_memory:
            values += [format_memory(event.cpu_memory_usage), format_memory(event.self_cpu_memory_usage)]
        if kept:
            values += [format_memory(event.device_memory_usage), format_memory(event.self_device_memory_usage)]
        values.append(event.count)
        if with_shapes:
            values.append(str(event.input_shapes)[: widths[len(values)]])
        if thousands is not None:
            count = f"{event.flops * 1000.0**-thousands:8.3f}" if event.flops > 0 else "--"
            values.append(count)
        if stacks:
            entries = [last_part(entry, source_width) for entry in event.stack] or [""]
            lines.append(row.format(*values, entries[0]))
            blank = [""] * (len(headers) - 1)
            lines += [row.format(*blank, entry) for entry in entries[1:]]
            lines.append(row.format(*blank, ""))
        else:
            lines.append(row.format(*values))
    lines += [rule, f"Self CPU time total: {in_unit(whole, time_unit)}"]
    if timed:
        lines.append(f"Self {device} time total: {in_unit(whole_device, time_unit)}")
    return "\n".join(lines) + "\n"


def html_table(events: Sequence[Any], row_limit: int = 100) -> str:
    """The events as notebooks show them: slowest first, a bar for the share of the time."""
    whole = sum(event.self_cpu_time_total for event in events) or 1.0
    shown = sorted(events, key=lambda event: event.self_cpu_time_total, reverse=True)[:row_limit]
    heads = ("Name", "Self CPU %", "Self CPU", "CPU total", "# of Calls")
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(event.key)}</td><td style='background:linear-gradient(to right,"
        f"#6f93d655 {100 * event.self_cpu_time_total / whole:.1f}%,transparent 0)'>"
        f"{100 * event.self_cpu_time_total / whole:.1f}%</td><td>{format_time(event.self_cpu_time_total)}</td>"
        f"<td>{format_time(event.cpu_time_total)}</td><td>{event.count}</td></tr>"
        for event in shown
    )
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"
