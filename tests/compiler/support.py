"""The same program twice, as it is and compiled, and everything that can be seen of it afterwards."""

import time

import numpy as np

import pullback as torch


def state_of(tensors):
    """Elements, versions and gradients of tensors."""
    out = []
    for tensor in tensors:
        out.append(tensor.detach().numpy().copy())
        out.append(tensor._version)
        out.append(None if tensor.grad is None else tensor.grad.detach().numpy().copy())
        out.append(None if tensor.grad is None else tensor.grad._version)
    return out


def seen(result):
    """A result as plain values."""
    if isinstance(result, torch.Tensor):
        return (result.detach().numpy().copy(), result.requires_grad, result.stride(), result.dtype)
    if isinstance(result, (list, tuple)):
        return [seen(item) for item in result]
    if isinstance(result, dict):
        return {key: seen(item) for key, item in result.items()}
    return result


def same(a, b, where="result", rounding=False):
    """Raise unless two values as `seen` are equal to the bit; with `rounding`, as near as sums in another order are."""
    assert type(a) is type(b), (where, a, b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, where
        if rounding and a.dtype.kind in "fc":
            single = a.dtype.itemsize <= (4 if a.dtype.kind == "f" else 8)
            near = dict(rtol=2e-4, atol=2e-5) if single else dict(rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(a, b, **near, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), (where, a, b)
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            same(one, other, f"{where}[{i}]", rounding)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key], f"{where}[{key!r}]", rounding)
    elif rounding and type(a) is float:
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=where)
    else:
        assert a == b or (a != a and b != b), (where, a, b)


def exactly(function):
    """Compiled, with every rounding of eager kept."""
    return torch.compile(function, options={"exact": True})


def compared(make, calls, compiled=exactly, native=torch.compile, program=True):
    """Run `step, tensors = make()` as it is, compiled to the bit, and compiled; `calls` are what calls the step.

    Returns the compiled function. With `program` every later call that the first one resembles ran a program.
    """
    found = []
    functions = []
    for way in (None, compiled, native):
        torch.manual_seed(3)
        step, tensors = make()
        if way is not None:
            step = way(step)
            functions.append(step)
        results = []
        for call in calls:
            results.append(seen(call(step)))
            results.append(state_of(tensors))
            results.append(torch.get_rng_state().numpy().copy())
        found.append(results)
    same(found[1], found[0])
    same(found[2], found[0], rounding=True)
    for function in functions if program else ():
        made = function._compiled
        assert [entry.why for entry in made.entries if entry.why] == [], [entry.why for entry in made.entries]
        assert sum(entry.calls for entry in made.entries) > 0
    return functions[-1]


def search(compare, seconds=60, seed=0):
    """Compare functions, a seed each, for so many seconds; what differs raises."""
    end, count, runs = time.time() + float(seconds), 0, 0
    while time.time() < end:
        runs += compare(int(seed) + count)
        count += 1
    print(f"{count} functions, of which programs ran {runs} times, gave what they give as they are")
