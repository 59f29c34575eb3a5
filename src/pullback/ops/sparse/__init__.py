"""Sparse tensors: the rules ops run by on them, and the functions that make them and take them apart."""
