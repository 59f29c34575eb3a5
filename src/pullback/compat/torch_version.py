"""`torch.torch_version`: a version that is a string and can be compared with numbers."""

from __future__ import annotations

import re
from typing import Any


def numbers(version: Any) -> tuple[int, ...]:
    """The numbers of a version given as a string or a tuple, without zeros at the end."""
    parts = re.match(r"[\d.]*", version)[0].split(".") if isinstance(version, str) else version  # type: ignore[index]
    out = [int(part) for part in parts if str(part).isdigit()]
    while out and out[-1] == 0:
        out.pop()
    return tuple(out)


class TorchVersion(str):
    """`torch.__version__`: `torch.__version__ >= (2, 1)` and `>= "2.1"` ask what they seem to ask."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else numbers(self) == numbers(other)

    def __lt__(self, other: Any) -> bool:
        return numbers(self) < numbers(other)

    def __le__(self, other: Any) -> bool:
        return numbers(self) <= numbers(other)

    def __gt__(self, other: Any) -> bool:
        return numbers(self) > numbers(other)

    def __ge__(self, other: Any) -> bool:
        return numbers(self) >= numbers(other)
