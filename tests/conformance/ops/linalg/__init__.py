"""Matrices, on torch and on pullback."""
