"""Loops over every element."""
