"""`Module`, one matter in each file: its hooks, its state, the names inside of it, and how it is converted."""
