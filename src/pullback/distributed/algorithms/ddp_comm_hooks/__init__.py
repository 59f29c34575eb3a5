"""Communication hooks for DistributedDataParallel."""
