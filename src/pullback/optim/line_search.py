"""Line search for the strong Wolfe conditions: bracket an interval, then shrink it by cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import Tensor

Evaluation = Callable[[Any, float, Tensor], tuple[float, Tensor]]


class Point:
    """A trial step t: the value there, the gradient, and its slope along the direction."""

    __slots__ = ("grad", "slope", "t", "value")

    def __init__(self, t: float, value: float, grad: Tensor, slope: Any) -> None:
        self.t, self.value, self.grad, self.slope = t, value, grad, slope


def _cubic_interpolate(
    x1: float, f1: float, g1: Any, x2: float, f2: float, g2: Any, bounds: tuple[float, float] | None = None
) -> float:
    """Where the cubic through two points with their slopes is smallest, inside the bounds.

    Args:
        x1: the first point.
        f1: the value there.
        g1: the slope there, a tensor.
        x2: the second point.
        f2: the value there.
        g2: the slope there.
        bounds: the interval that is looked at; the one between the points if None.
    """
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    d2_square = d1**2 - g1 * g2
    if not d2_square >= 0:
        return (low + high) / 2.0
    d2 = d2_square.sqrt()
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)  # type: ignore[no-any-return]


def _strong_wolfe(
    obj_func: Evaluation,
    x: Any,
    t: float,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: Tensor,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """A step along d that decreases the value enough and flattens the slope enough.

    Args:
        obj_func: gives the value and the gradient at `x + t d`, from x, t and d.
        x: where the search starts; only handed on.
        t: the step that is tried first.
        d: the direction.
        f: the value at the start.
        g: the gradient at the start.
        gtd: the slope along the direction at the start.
        c1: how much of the decrease that the slope promises is enough.
        c2: what part of the slope may remain.
        tolerance_change: how small the bracket becomes.
        max_ls: how many steps are tried.

    Returns:
        The value and the gradient there, the step, and how often the function was evaluated.
    """
    d_norm = d.abs().max()
    start = Point(0, f, g.clone(memory_format=None), gtd)

    def at(t: float) -> Point:
        new_value, new_grad = obj_func(x, t, d)
        return Point(t, new_value, new_grad, new_grad.dot(d))

    def decreases(point: Point) -> bool:
        return bool(point.value <= f + c1 * point.t * gtd)

    def is_flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -c2 * gtd)

    point, evaluations = at(t), 1
    previous, iteration, done = start, 0, False
    bracket: list[Point] = []
    while iteration < max_ls:
        if not decreases(point) or (iteration > 1 and point.value >= previous.value):
            bracket = [previous, copied(point)]
            break
        if is_flat(point):
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, copied(point)]
            break
        lower, upper = point.t + 0.01 * (point.t - previous.t), point.t * 10
        t = cubic_minimum(previous, point, bounds=(lower, upper))
        previous, point = copied(point), at(t)
        evaluations += 1
        iteration += 1
    if iteration == max_ls:
        bracket = [start, point]

    stuck = False
    low, high = (0, 1) if bracket[0].value <= bracket[-1].value else (1, 0)
    while not done and iteration < max_ls:
        width = abs(bracket[1].t - bracket[0].t)
        if width * d_norm < tolerance_change:
            break
        t = cubic_minimum(bracket[0], bracket[1])
        # A trial close to an end of the bracket teaches little: after two of them, step away from that end.
        left, right = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        evaluations += 1
        iteration += 1
        if not decreases(point) or point.value >= bracket[low].value:
            bracket[high] = copied(point)
            low, high = (0, 1) if bracket[0].value <= bracket[1].value else (1, 0)
        else:
            if is_flat(point):
                done = True
            elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = copied(point)
    best = bracket[low if len(bracket) > 1 else 0]
    return best.value, best.grad, best.t, evaluations


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two trial steps is smallest."""
    return _cubic_interpolate(a.t, a.value, a.slope, b.t, b.value, b.slope, bounds)


def copied(point: Point) -> Point:
    """The same point with a gradient of its own."""
    return Point(point.t, point.value, point.grad.clone(), point.slope)
