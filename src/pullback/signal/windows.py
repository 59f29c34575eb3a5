"""torch.signal.windows: every function published there."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback._op.declare import spaces as _spaces

if _TYPE_CHECKING:
    from pullback._stubs.signal_windows import *  # noqa: F403

globals().update(_spaces["signal.windows"])
