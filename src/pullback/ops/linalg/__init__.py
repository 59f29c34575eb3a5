"""Linear algebra: torch.linalg and the older names in torch itself, by topic."""
