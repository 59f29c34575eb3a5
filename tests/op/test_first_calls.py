"""Ops are compiled on their first call, which may come from several threads at once."""

PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
import pullback as torch

NAMES = "exp log tanh sin cos sqrt sigmoid abs neg square relu erf sum mean prod norm std var sort max amax".split()
errors = []

def work():
    try:
        x = torch.ones(4, requires_grad=True)
        for name in NAMES:
            result = getattr(torch, name)(x)
            result = result[0] if isinstance(result, tuple) else result
            result.sum().backward()
            torch.add(x, x, alpha=2).sum().backward()
    except Exception as error:
        errors.append(repr(error))

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors)
"""


def test_first_calls_from_several_threads_at_once_all_succeed(run_python):
    assert run_python(PROGRAM).strip() == "[]"
