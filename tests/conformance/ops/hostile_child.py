"""Runs calls on one library, with little memory, and prints what came of each: see test_hostile_calls."""

import json
import linecache
import resource
import signal
import sys
import warnings
from typing import Any

LIMIT = 6 << 30
SECONDS = 60

FRESH = """
x = torch.arange(12.0).reshape(3, 4)
v = torch.arange(4.0)
i = torch.tensor([0, 2])
n = torch.arange(6)
s = torch.tensor(2.0)
e, e2 = torch.zeros(0), torch.zeros(0, 3)
b = torch.tensor([True, False, True])
u = torch.tensor([1, 2, 255], dtype=torch.uint8)
c = torch.tensor([1 + 2j, 3.0])
g = torch.ones(3, requires_grad=True)
M = 2**63 - 1
inf, nan = float("inf"), float("nan")
"""


def described(torch: Any, value: Any) -> Any:
    """A result as plain data."""
    if isinstance(value, torch.Tensor):
        values = [float(f"{n:.5g}") if type(n) is float else n for n in value.detach().reshape(-1)[:300].tolist()]
        return [str(value.dtype).rpartition(".")[2], list(value.shape), repr(values), value.requires_grad]
    if isinstance(value, (list, tuple)):
        return [described(torch, part) for part in value]
    return str(value)


def too_long(*_: Any) -> None:
    """What the alarm does."""
    raise TimeoutError


def main() -> None:
    """Read the calls, numbered, from the standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, too_long)
    torch = __import__(sys.argv[1])
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for number, line in json.load(sys.stdin):
        print(json.dumps([number, "began"]), flush=True)
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
        exec("import numpy as np", names)
        exec(FRESH, names)
        torch.manual_seed(0)
        signal.alarm(SECONDS)
        before = [described(torch, names[key]) for key in "xvinsbuc"]
        try:
            *statements, expression = line.split(";;")
            for statement in statements:
                exec(statement.strip(), names)
            call = expression.strip()
            linecache.cache[call] = (len(call), None, [call], call)  # errors tell how a call is written
            found = described(torch, eval(compile(call, call, "eval"), names))
        except Exception as error:
            changed = before != [described(torch, names[key]) for key in "xvinsbuc"]
            found = ["raised", type(error).__name__, str(error), changed]
        signal.alarm(0)
        print(json.dumps([number, found]), flush=True)


if __name__ == "__main__":
    main()
