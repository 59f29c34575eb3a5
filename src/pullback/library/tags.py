"""`torch.Tag`: what an op says about itself."""

from __future__ import annotations

from enum import Enum
from typing import Any

NAMES = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy"
)

Tag: Any = Enum("Tag", {name: number for number, name in enumerate(NAMES.split())})
Tag.__module__ = "torch"


def tags_of(tags: Any) -> tuple[Any, ...]:
    """The tags given: none, one or several."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, Tag) else tuple(dict.fromkeys(tags))
