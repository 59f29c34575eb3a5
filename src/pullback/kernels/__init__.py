"""Array-only algorithms: NumPy arrays in, NumPy arrays out, no tensors."""
