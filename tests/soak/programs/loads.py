"""Load what saves.py has saved, and see that it is one save as a whole: loads.py FILE."""

import sys

import pullback as torch

found = torch.load(sys.argv[1])
values, number = found["values"], float(found["number"])
assert values.shape == (200_000,) and bool((values == number).all()), "the values of several saves"
assert len(found["more"]) == 20 and all(bool((part == number).all()) for part in found["more"])
print(1)
