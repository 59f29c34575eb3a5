"""Programs about torch.nn, run on torch and on pullback."""
