"""The differences from torch that are intended or accepted, each with its reason.

Keys are (op, aspect) as the harness prints them. The list is strict: an entry whose aspect agrees again is an error.
"""

KNOWN_DIFFERENCES: dict[tuple[str, str], str] = {}
