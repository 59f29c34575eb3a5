"""Tensors as Python objects, run on torch and on pullback."""
