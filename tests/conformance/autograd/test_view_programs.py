"""Random programs of views and in-place writes: values, gradients and second gradients are torch's."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.both import same

VIEWS = (
    lambda t: t[1:] if t.ndim and t.shape[0] > 1 else t.view_as(t),
    lambda t: t[::2] if t.ndim else t.view_as(t),
    lambda t: t.select(t.ndim - 1, 0) if t.ndim > 1 else t.view_as(t),
    lambda t: t.transpose(0, t.ndim - 1) if t.ndim > 1 else t.unsqueeze(0),
    lambda t: t.unsqueeze(0) if t.ndim < 3 else t.squeeze(0),
    lambda t: t.diagonal() if t.ndim == 2 else t.view_as(t),
    lambda t: t.narrow(0, 0, 1) if t.ndim else t.unsqueeze(0),
    lambda t: t.detach(),
    lambda t: t.view(-1) if t.is_contiguous() else t.permute(*reversed(range(t.ndim))),
)


def apart(t, u):
    """`u` in memory of its own: nobody promises what writing to `t` while reading its other views gives."""
    return u if u is t else u.clone()


def remember(seen, nr, grad):
    """A hook that notes what it saw."""
    seen.append([nr, grad.clone()])


def strides(t):
    """The strides that matter."""
    return [stride for stride, size in zip(t.stride(), t.shape, strict=True) if size > 1]


WRITES = (
    lambda t, u, w: t.mul_(2.0),
    lambda t, u, w: t.add_(w),
    lambda t, u, w: t.mul_(w),
    lambda t, u, w: t.add_(apart(t, u)),
    lambda t, u, w: t.mul_(u.clone()),
    lambda t, u, w: t.zero_(),
    lambda t, u, w: t.copy_(apart(t, u)),
    lambda t, u, w: t.copy_(w * u),
    lambda t, u, w: t.sub_(u * w),
    lambda t, u, w: t.fill_(w),
)

KINDS = (
    "view", "view", "write", "write", "use", "quiet write", "replace", "quiet view", "parts", "change", "watch",
    "inference view", "inference write",
)  # fmt: skip

CHANGES = (
    lambda torch, t: t.detach_() if t.is_inference() or t._version == 0 else t,
    lambda torch, t: t.requires_grad_(),
    lambda torch, t: t.requires_grad_(False),
    lambda torch, t: t.retain_grad(),
    lambda torch, t: t.data.mul_(1),
    lambda torch, t: torch.autograd.graph.increment_version(t),
    lambda torch, t: t.grad_fn,
    # Torch fails an assertion of its own where these meet retain_grad.
    lambda torch, t: t if t.retains_grad else t.unsqueeze_(0) if t.ndim < 3 else t.squeeze_(0),
    lambda torch, t: t.transpose_(0, t.ndim - 1) if t.ndim and not t.retains_grad else t,
)

PARTS = (
    lambda t: t.unbind(0),
    lambda t: t.split(1),
    lambda t: t.chunk(2),
    lambda t: t.unbind(t.ndim - 1),
)

instruction = st.tuples(
    st.sampled_from(KINDS),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)


def run(torch, steps, tracked_base):
    """Interpret the instructions; errors are part of the answer."""
    x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64, requires_grad=True)
    w = torch.tensor(1.25, dtype=torch.float64, requires_grad=True)
    pool = [x * 1 if tracked_base else torch.ones(2, 3, dtype=torch.float64)]
    total = (x * x).sum() * w
    notes, seen = [], []
    for kind, what, i, j in steps:
        target, other = pool[i % len(pool)], pool[j % len(pool)]
        try:
            if kind == "view":
                pool.append(VIEWS[what % len(VIEWS)](target))
            elif kind == "write":
                WRITES[what % len(WRITES)](target, other, w)
            elif kind == "quiet write":
                with torch.no_grad():
                    WRITES[what % len(WRITES)](target, other, w)
            elif kind == "quiet view":
                with torch.no_grad():
                    pool.append(VIEWS[what % len(VIEWS)](target))
            elif kind == "inference view":
                with torch.inference_mode():
                    pool.append(VIEWS[what % len(VIEWS)](target))
            elif kind == "inference write":
                with torch.inference_mode():
                    WRITES[what % len(WRITES)](target, other, w)
            elif kind == "parts":
                if target.ndim:
                    pool.extend(PARTS[what % len(PARTS)](target)[:2])
            elif kind == "change":
                CHANGES[what % len(CHANGES)](torch, target)
            elif kind == "watch" and not target._is_view():  # torch crashes on hooks of some views
                target.register_hook(partial(remember, seen, len(notes)))
            elif kind == "replace":
                pool.append(target * other)
            else:
                total = total + (target * other).sum()
            notes.append([(t.requires_grad, t.is_inference(), None if t.is_inference() else t._version) for t in pool])
        except RuntimeError as error:
            notes.append(str(error))
    for t in pool:
        try:
            notes.append((type(t.grad_fn).__name__, list(t.shape), strides(t), t.is_leaf))
            total = total + (t * t).sum()
        except RuntimeError as error:
            notes.append(str(error))
    try:
        first = torch.autograd.grad(total, [x, w], create_graph=True)
        notes += list(first)
        second = torch.autograd.grad((first[0] * first[0]).sum() + first[1] * first[1], [x, w])
        notes += list(second)
    except RuntimeError as error:
        notes.append(str(error))
    return [*notes, *pool, seen, [t.grad for t in pool if t.retains_grad]]


@settings(max_examples=300)
@given(st.lists(instruction, max_size=9), st.booleans())
def test_random_programs_of_views_and_writes(steps, tracked_base):
    same(lambda torch: run(torch, steps, tracked_base))
