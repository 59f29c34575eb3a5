"""Where torch keeps the parts of `torch.utils.benchmark`."""
