"""The header of a safetensors file: what it says, checked before anything is believed.

8 bytes ............ the length N of the header, little-endian
N bytes ............ JSON: {"__metadata__": {text: text, ...},
                            name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
the rest ........... the elements of every tensor, one after the other, without holes
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000
METADATA = "__metadata__"
MOST_DIMS = 64
LARGEST = 2**64 - 1

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""Bits per element of every dtype of the format; files hold the last of these first, so that all lie aligned."""
RANK = {name: rank for rank, name in enumerate(BITS)}


class SafetensorError(Exception):
    """A file that is not what the format allows, or a request it has no answer to."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the header says of one tensor; `start` and `stop` count from the first byte after the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Header:
    """A checked header: the tensors in the order of their bytes, the texts beside them, and where the bytes begin."""

    entries: dict[str, Entry]
    metadata: dict[str, str] | None
    data_start: int


# ------------------------------------------------------------------ reading


def refuse(reason: str) -> NoReturn:
    """Raise the error for a header that cannot be believed."""
    raise SafetensorError(f"Error while deserializing header: {reason}")


def header_length(prefix: bytes, file_size: int) -> int:
    """The length of the header; it is checked before a byte of the header is read."""
    if len(prefix) < LENGTH_BYTES:
        refuse("header too small")
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    if length > LONGEST_HEADER:
        refuse(f"header too large: {length} bytes, and at most {LONGEST_HEADER} are allowed")
    if length > file_size - LENGTH_BYTES:
        refuse(f"invalid header length: {length} bytes, and only {file_size - LENGTH_BYTES} follow")
    return length


def parse_header(content: bytes, file_size: int) -> Header:
    """Everything a header says, if all of it is true of a file of this size."""
    document = parse_json(content)
    if not isinstance(document, dict):
        refuse("invalid JSON in header: it is not an object of names and tensors")
    metadata = checked_metadata(document.pop(METADATA, None))
    entries = {name: checked_entry(name, value) for name, value in document.items()}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)))
    data_start = LENGTH_BYTES + len(content)
    check_cover(ordered, file_size - data_start)
    return Header(ordered, metadata, data_start)


def parse_json(content: bytes) -> Any:
    """The JSON of a header; a name that occurs twice, or a number JSON does not have, is an error."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        refuse(f"invalid UTF-8 in header: {error}")
    try:
        return json.loads(text, object_pairs_hook=without_duplicates, parse_constant=no_constant)
    except RecursionError:
        refuse("invalid JSON in header: it is nested too deeply")
    except ValueError as error:
        refuse(f"invalid JSON in header: {error}")


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose names are all different."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"duplicate key {twice!r}")
    return found


def no_constant(name: str) -> NoReturn:
    """Python's parser knows NaN and Infinity; JSON does not."""
    raise ValueError(f"{name} is not JSON")


def checked_metadata(value: Any) -> dict[str, str] | None:
    """The texts of a header."""
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        refuse(f"invalid JSON in header: {METADATA} must map texts to texts")
    for name, text in value.items():
        check_text(name)
        check_text(text)
    return value


def check_text(text: str) -> None:
    """JSON can spell halves of characters, which are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(f"invalid JSON in header: {text!r} is not text")


def checked_entry(name: str, value: Any) -> Entry:
    """What a header says of one tensor, if it makes sense by itself."""
    check_text(name)
    if not isinstance(value, dict):
        refuse(f"invalid JSON in header: tensor `{name}` is not an object")
    for field in ("dtype", "shape", "data_offsets"):
        if field not in value:
            refuse(f"invalid JSON in header: missing field `{field}` of tensor `{name}`")
    kind, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(kind, str) or kind not in BITS:
        refuse(f"invalid JSON in header: unknown dtype {kind!r} of tensor `{name}`, expected one of {', '.join(BITS)}")
    if not are_sizes(shape) or len(shape) > MOST_DIMS:
        refuse(f"invalid JSON in header: the shape of tensor `{name}` must be at most {MOST_DIMS} sizes")
    if not are_sizes(offsets) or len(offsets) != 2:
        refuse(f"invalid JSON in header: the data_offsets of tensor `{name}` must be two positions")
    start, stop = offsets
    if start > stop:
        refuse(f"invalid offset for tensor `{name}`: it ends at {stop}, before it starts at {start}")
    size = byte_size(name, kind, shape)
    if size != stop - start:
        refuse(
            f"invalid shape, data type, or offset for tensor `{name}`: {kind} of shape {shape} takes {size} bytes, "
            f"and its offsets leave {stop - start}"
        )
    return Entry(kind, tuple(shape), start, stop)


def are_sizes(value: Any) -> bool:
    """Whether a value is a list of numbers that can count bytes."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n <= LARGEST for n in value)


def byte_size(name: str, kind: str, shape: Iterable[int]) -> int:
    """The bytes of a tensor; the product of the sizes may not pass 64 bits, even where a zero makes it small."""
    bits, empty = BITS[kind], False
    for n in shape:
        bits, empty = bits * (n or 1), empty or n == 0
        if bits > LARGEST:
            refuse(f"overflow computing buffer size from shape and/or element type of tensor `{name}`")
    if empty:
        return 0
    if bits % 8:
        refuse(f"tensor `{name}` of {kind} does not end at a byte boundary")
    return bits // 8


def check_cover(entries: Mapping[str, Entry], size: int) -> None:
    """The tensors, in order, fill the data: nothing overlaps, nothing is left out, nothing lies beyond the end."""
    position = 0
    for name, entry in entries.items():
        if entry.start != position:
            how = "overlaps the one before it" if entry.start < position else "leaves a hole before it"
            refuse(f"invalid offset for tensor `{name}`: it {how}")
        position = entry.stop
    if position != size:
        refuse(f"incomplete metadata, file not fully covered: the tensors take {position} bytes, the file has {size}")


# ------------------------------------------------------------------ writing


def build_header(tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None) -> Header:
    """Where tensors of the given dtypes and shapes go: the widest elements first, then by name."""
    entries: dict[str, Entry] = {}
    position = 0
    for name in sorted(tensors, key=lambda name: (-RANK[tensors[name][0]], name)):
        kind, shape = tensors[name]
        stop = position + byte_size(name, kind, shape)
        entries[name] = Entry(kind, shape, position, stop)
        position = stop
    return Header(entries, None if metadata is None else dict(metadata), 0)


def header_bytes(header: Header) -> bytes:
    """The beginning of a file, filled with spaces so that the elements start on a boundary of 8 bytes."""
    document: dict[str, Any] = {} if header.metadata is None else {METADATA: header.metadata}
    for name, entry in header.entries.items():
        document[name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": (entry.start, entry.stop)}
    try:
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise SafetensorError(
            f"Error while serializing: a name or a text of the metadata is not text: {error}"
        ) from None
    content += b" " * (-len(content) % LENGTH_BYTES)
    if len(content) > LONGEST_HEADER:
        raise SafetensorError(f"Error while serializing: the header has {len(content)} bytes, more than can be read")
    return len(content).to_bytes(LENGTH_BYTES, "little") + content
