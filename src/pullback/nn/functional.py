"""The functions behind the layers: every op published as nn.functional."""

from pullback._op.declare import spaces

globals().update(spaces["nn.functional"])
