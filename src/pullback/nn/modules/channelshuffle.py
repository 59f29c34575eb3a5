"""ChannelShuffle: groups of channels, interleaved."""

from __future__ import annotations

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Layer

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Layer):
    """Interleave groups of channels."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """F.channel_shuffle."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"
