"""Programs: what a function did to arrays, recorded once and run again without Python. See docs/notes/compile.md."""
