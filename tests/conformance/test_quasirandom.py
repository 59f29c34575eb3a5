"""Sobol points: torch's, plain and scrambled, in parts and at once."""

import pytest

from tests.conformance.both import attempt, on_both, same


@pytest.mark.parametrize("dimension", [1, 2, 3, 40, 1111])
@pytest.mark.parametrize("settings", [{}, {"scramble": True, "seed": 5}, {"scramble": True}])
def test_the_points_are_torchs(dimension, settings):
    def program(torch):
        torch.manual_seed(3)
        engine = torch.quasirandom.SobolEngine(dimension, **settings)
        parts = [engine.draw(5), engine.draw(), engine.draw(3, dtype=torch.float64), engine.fast_forward(100).draw(4)]
        again = [engine.reset().draw(), engine.draw(2), engine.draw(1), engine.draw_base2(2)]
        return parts, again, engine.shift, engine.quasi, engine.num_generated, repr(engine), torch.rand(2)

    same(program)


@on_both
def test_engines_from_the_start_in_other_ways(torch):
    Engine = torch.quasirandom.SobolEngine
    out = torch.empty(0)
    drawn = Engine(2).draw(3, out=out)
    return (
        drawn is out,
        out,
        Engine(2).draw_base2(4),
        Engine(2).fast_forward(0).draw(),
        Engine(2).fast_forward(1).draw(3),
    )


@on_both
def test_wrong_calls(torch):
    Engine = torch.quasirandom.SobolEngine

    def unbalanced():
        engine = Engine(2)
        engine.draw(3)
        engine.draw_base2(2)

    return [
        attempt(lambda: Engine(0)),
        attempt(lambda: Engine(21202)),
        attempt(unbalanced),
        attempt(lambda: Engine(2).draw(0)),
        attempt(lambda: Engine(2).draw(3, dtype=torch.int64)),
    ]
