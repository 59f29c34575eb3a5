"""Transformations of graphs: `torch.fx.experimental`. Only those of `optimization` exist here."""
