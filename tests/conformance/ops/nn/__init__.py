"""Layers as functions, run on torch and on pullback."""
