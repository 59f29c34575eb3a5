"""Functions and transforms."""
