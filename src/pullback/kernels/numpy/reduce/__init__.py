"""Reductions and running reductions."""
