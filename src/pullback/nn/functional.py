"""The functions behind the layers: every op published as nn.functional."""

from typing import TYPE_CHECKING

from pullback._op.declare import spaces
from pullback.ops import load_all

if TYPE_CHECKING:
    from pullback._stubs.nn_functional import *

load_all()
globals().update(spaces["nn.functional"])
_threshold = spaces["nn.functional"]["threshold"]  # its name in torch, by which traced programs call it
