"""Classes derived from Parameter, and what their constructors take."""

from tests.conformance.both import attempt, on_both


@on_both
def test_a_class_of_parameters_takes_what_its_own_new_takes(torch):
    class Scaled(torch.nn.Parameter):
        def __new__(cls, data, factor, *, name="none"):
            out = torch.Tensor._make_subclass(cls, data * factor, True)
            out.name_of_it = name
            return out

    p = Scaled(torch.ones(2), 3, name="w")
    (p * p).sum().backward()
    return type(p).__name__, p.name_of_it, p.detach().tolist(), p.grad, isinstance(p, torch.nn.Parameter)


@on_both
def test_a_class_of_uninitialized_parameters_takes_what_its_own_new_takes(torch):
    class Late(torch.nn.UninitializedParameter):
        def __new__(cls, width, *, name="none"):
            out = super().__new__(cls)
            out.width, out.name_of_it = width, name
            return out

    p = Late(4, name="w")
    p.materialize((p.width,))
    return type(p).__name__, p.shape, p.width, p.name_of_it


@on_both
def test_parameters_are_made_by_new_alone(torch):
    class Told(torch.nn.Parameter):
        def __init__(self, data):
            super().__init__()

    class Passed(torch.nn.Parameter):
        def __init__(self, data):
            super().__init__(data)

    return (
        Told(torch.ones(2)).detach().tolist(),
        attempt(lambda: Passed(torch.ones(2))),
        torch.nn.Parameter.__init__ is object.__init__,
        attempt(lambda: torch.nn.Parameter(torch.ones(2), name=3)),
        attempt(lambda: torch.nn.Parameter(torch.ones(2), True, 3)),
    )
