"""Calls on the device that are more than one op after the other: in place, and backwards over several streams."""
