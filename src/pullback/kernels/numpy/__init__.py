"""The algorithms on NumPy arrays: what every kernel is compared with, and what runs without a compiler."""
