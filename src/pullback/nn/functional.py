"""The functions behind the layers: every op published as nn.functional."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback._op.declare import spaces as _spaces
from pullback.ops import load_all as _load_all

if _TYPE_CHECKING:
    from pullback._stubs.nn_functional import *

_load_all()
globals().update(_spaces["nn.functional"])
_threshold = _spaces["nn.functional"]["threshold"]  # its name in torch, by which traced programs call it
