"""torch.signal.windows: every function published there."""

from pullback._op.declare import spaces

globals().update(spaces["signal.windows"])
