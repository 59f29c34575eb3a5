"""The wheel stays small: it grows on purpose only."""

import zlib

from tests.structure.source import SRC

# With compiled programs, CUDA and its complex numbers, ranks, the schemas of aten, the names packages ask for, and
# event files.
LIMIT = 2_600_000
# What a file costs beside its contents: its name twice and two headers in the archive, its hash in RECORD.
PER_FILE = 30 + 46 + 45


def test_the_wheel_is_under_its_limit():
    size = 0
    for path in SRC.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(SRC).as_posix()
            size += len(zlib.compress(path.read_bytes())) + PER_FILE + 2 * len(name)
    assert size < LIMIT, f"the wheel holds {size} bytes, the limit is {LIMIT}"
