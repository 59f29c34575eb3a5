"""torch.signal.windows: every function published there."""

from typing import TYPE_CHECKING

from pullback._op.declare import spaces

if TYPE_CHECKING:
    from pullback._stubs.signal_windows import *  # noqa: F403

globals().update(spaces["signal.windows"])
