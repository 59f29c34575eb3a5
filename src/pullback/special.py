"""torch.special: every op published there."""

from typing import TYPE_CHECKING

from pullback._op.declare import spaces

if TYPE_CHECKING:
    from pullback._stubs.special import *

globals().update(spaces.get("special", {}))
