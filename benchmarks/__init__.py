"""Measurements beside torch: `python -m benchmarks`. Every figure is a ratio or a difference taken in the same run."""
