"""Reading, writing and ordering elements by index."""
