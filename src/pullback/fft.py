"""torch.fft: every op published there."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback._op.declare import spaces as _spaces

if _TYPE_CHECKING:
    from pullback._stubs.fft import *

globals().update(_spaces.get("fft", {}))
