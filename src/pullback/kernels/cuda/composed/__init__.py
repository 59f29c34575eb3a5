"""Ops made of other kernels: forwards as they are written, and the words of NumPy these are written in."""
