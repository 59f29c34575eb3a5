"""Windows that slide over images."""
