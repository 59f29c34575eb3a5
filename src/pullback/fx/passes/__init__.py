"""Passes over graphs: `torch.fx.passes`."""

from pullback.fx.passes import shape_prop as shape_prop
