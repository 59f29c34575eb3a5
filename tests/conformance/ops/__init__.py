"""Programs about single families of ops, run on torch and on pullback."""
