"""What the library needs of the process it runs in: first uses, interrupts, error state, files, warnings, errors."""
