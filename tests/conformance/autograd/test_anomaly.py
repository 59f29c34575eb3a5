"""Anomaly mode: which error, which forward call, nested through double backward, switched on and off."""

import re
import warnings

from tests.conformance.both import attempt, on_both


def failing(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("bad backward")

    return Bad


def record(action):
    """The texts of the warnings, with the traceback reduced to the lines of source in this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = attempt(action)
    texts = []
    for warning in caught:
        head = re.split(r"\n  File ", str(warning.message))[0]
        source = [line.strip() for line in str(warning.message).split("\n") if "# marked" in line]
        texts.append((warning.category.__name__, head, source))
    return result, texts


@on_both
def test_failing_node_names_its_forward_call(torch):
    x = torch.tensor([1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            y = failing(torch).apply(x)  # marked
            y.backward()

    return record(run)


@on_both
def test_nan_is_an_error(torch):
    x = torch.tensor([0.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            y = (x * 0) / 0  # marked
            y.backward()

    return record(run)


@on_both
def test_nan_in_a_function_with_several_inputs(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g * float("nan")

    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            F.apply(x, y).backward()  # marked

    return record(run)


@on_both
def test_nan_check_can_be_off(torch):
    x = torch.tensor([0.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly(check_nan=False):
            ((x * 0) / 0).backward()
        return x.grad

    return record(run)


@on_both
def test_node_made_before_anomaly_mode(torch):
    x = torch.tensor([1.0], requires_grad=True)
    y = failing(torch).apply(x)

    def run():
        with torch.autograd.detect_anomaly():
            y.backward()

    return record(run)


@on_both
def test_forward_watched_but_not_backward(torch):
    x = torch.tensor([1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            y = failing(torch).apply(x)
        y.backward()

    return record(run)


@on_both
def test_stale_saved_tensor_under_anomaly(torch):
    x = torch.tensor([1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            a = x * 2
            y = a * a  # marked
            a.add_(1)
            y.backward()

    return record(run)


@on_both
def test_error_in_double_backward_names_both_calls(torch):
    class Second(torch.autograd.Function):
        @staticmethod
        def forward(ctx, g):
            return g * 1

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("bad second backward")

    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return Second.apply(g)  # marked inner

    x = torch.tensor([1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            v = torch.ones(1, requires_grad=True)
            y = First.apply(x)  # marked outer
            (g,) = torch.autograd.grad(y, x, v, create_graph=True)
            g.backward()

    return record(run)


@on_both
def test_switching(torch):
    seen = [torch.is_anomaly_enabled()]
    with torch.autograd.set_detect_anomaly(True):
        seen.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
        with torch.autograd.set_detect_anomaly(False):
            seen.append(torch.is_anomaly_enabled())
        seen.append(torch.is_anomaly_enabled())
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            seen.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
        seen.append((torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))
    seen.append(torch.is_anomaly_enabled())
    torch.autograd.set_detect_anomaly(True)
    seen.append(torch.is_anomaly_enabled())
    torch.autograd.set_detect_anomaly(False)
    seen.append(torch.is_anomaly_enabled())
    return seen


@on_both
def test_mode_ends_after_an_error(torch):
    def fail():
        with torch.autograd.set_detect_anomaly(True):
            raise ValueError("inside")

    return attempt(fail), torch.is_anomaly_enabled()


@on_both
def test_metadata_holds_the_traceback(torch):
    x = torch.tensor([1.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 2  # marked
    stack = y.grad_fn.metadata["traceback_"]
    return type(stack).__name__, [line.strip() for line in "".join(stack).split("\n") if "# marked" in line]


@on_both
def test_results_are_the_same_under_anomaly(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = (x * x).sum()
        y.backward()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    return x.grad, g, h
