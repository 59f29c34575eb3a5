"""How ops are called, on torch and on pullback."""
