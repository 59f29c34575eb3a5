"""Moments, norms and softmax."""
