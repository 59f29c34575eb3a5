"""Random programs, run on torch and on pullback and compared: `python -m tests.fuzz --help`."""
