"""Save a model to a file, over and over or so often: saves.py FILE HOW OFTEN (0 for ever)."""

import itertools
import sys

import pullback as torch

file, many = sys.argv[1], int(sys.argv[2])
for nr in itertools.islice(itertools.count(), many or None):
    values = torch.full((200_000,), float(nr + 1))
    torch.save({"values": values, "more": [values[:10].clone() for _ in range(20)], "number": nr + 1}, file)
    if nr == 0:
        print("begun", flush=True)
print(f"saved\n{many}", flush=True)
