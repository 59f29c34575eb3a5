"""torch.linalg: every op published there."""

from pullback._op.declare import spaces

globals().update(spaces.get("linalg", {}))
