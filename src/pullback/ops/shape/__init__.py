"""The same elements in other shapes and orders."""
