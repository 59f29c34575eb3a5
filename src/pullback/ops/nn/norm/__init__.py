"""Normalizations."""
