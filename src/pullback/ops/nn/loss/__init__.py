"""Losses and distances."""
