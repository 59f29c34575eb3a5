"""The op machine: one declaration per op; everything else about it is derived."""
