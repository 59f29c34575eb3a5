"""Programs about the autograd core, run on torch and on pullback."""
