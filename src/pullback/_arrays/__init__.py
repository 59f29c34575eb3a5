"""What is true of arrays of every kind: their memory, layout, sizes and elements. See docs/notes/arrays.md."""
