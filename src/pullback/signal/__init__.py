"""torch.signal: windows."""

from pullback.signal import windows as windows
