"""torch.autograd's names, old and new."""

from tests.conformance.both import on_both


@on_both
def test_variable_is_the_old_name_of_tensor(torch):
    Variable = torch.autograd.Variable
    x = Variable(torch.ones(2), requires_grad=True)
    (x * 3).sum().backward()
    return (
        isinstance(x, Variable),
        type(x).__name__,
        x.grad,
        isinstance(3, Variable),
        isinstance(torch.ones(1), Variable),
    )


@on_both
def test_names_of_the_package(torch):
    names = (
        "Variable Function backward grad grad_mode no_grad enable_grad set_grad_enabled inference_mode anomaly_mode "
        "detect_anomaly set_detect_anomaly forward_ad function graph functional gradcheck gradgradcheck profiler "
        "set_multithreading_enabled variable NestedIOFunction"
    )
    return {name: hasattr(torch.autograd, name) for name in names.split()}


@on_both
def test_public_names(torch):
    return sorted(set(torch.autograd.__all__)), sorted(torch.autograd.forward_ad.__all__)


@on_both
def test_multithreading_switch(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    torch.autograd.set_multithreading_enabled(True)
    return x.grad
