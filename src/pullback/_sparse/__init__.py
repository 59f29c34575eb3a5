"""Sparse tensors: arrays that hold indices and values. See docs/sparse.md and docs/notes/arrays.md."""
