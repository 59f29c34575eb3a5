"""Programs about torch.distributions, run on torch and on pullback."""
