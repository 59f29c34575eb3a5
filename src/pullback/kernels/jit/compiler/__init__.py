"""From code to machine code, and the objects kept on disk."""
