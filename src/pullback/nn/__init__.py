"""Modules and functions for neural networks."""

from pullback.nn import functional

__all__ = ["functional"]
