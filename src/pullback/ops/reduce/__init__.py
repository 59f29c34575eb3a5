"""Functions of all elements along dimensions."""
