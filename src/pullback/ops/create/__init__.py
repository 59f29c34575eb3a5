"""New tensors and copies."""
