"""Derivatives of functions, gradcheck, checkpointing, profiling and transforms, beside torch."""
