"""Losses by row."""
