"""What depends on the order of elements along a dimension: extrema, sorting, running sums, and what a mask selects."""
