"""Builtins for small arrays."""
