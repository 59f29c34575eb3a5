"""Calls, threads and memory of compiled kernels."""
