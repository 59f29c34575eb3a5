"""Reductions, scans and programs over rows."""
