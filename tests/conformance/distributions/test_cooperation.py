"""Transforms in cooperative inheritance, and what register_kl takes."""

from tests.conformance.both import same


def test_a_transform_initialises_the_classes_after_it():
    def program(torch):
        class Counted:
            def __init__(self):
                self.count = 7

        class Both(torch.distributions.ExpTransform, Counted):
            pass

        return Both().count, Both(cache_size=1).count

    same(program)


def test_register_kl_takes_any_class_and_nothing_else():
    def program(torch):
        class Foreign:
            pass

        torch.distributions.register_kl(Foreign, Foreign)
        try:
            torch.distributions.register_kl(3, Foreign)
        except TypeError as error:
            return str(error)

    same(program)
