"""Transforms of functions, run on torch and on pullback."""
