"""A guided tour of autograd: a short text whose examples run while you read.

    python examples/tour.py                   all sections
    python examples/tour.py 3 7               these sections
    python examples/tour.py --list            what there is
    python examples/tour.py --module torch    the same tour on another module with torch's interface

The text below is in doctest's format. What is printed under an example is what it has just answered; an example that
ends in `# raises` is there for its error, and any other error ends the tour.
"""

import argparse
import ast
import contextlib
import doctest
import importlib
import io
import linecache
import os
import re
import sys
import textwrap

TOUR = r"""
# The graph
Compute with tensors that require gradients, and every operation leaves a node behind.

>>> A = torch.tensor(2., requires_grad=True)
>>> B = torch.tensor(.5, requires_grad=True)
>>> E = torch.tensor(1., requires_grad=True)
>>> C = A * B
>>> D = C.exp()
>>> F = D + E
>>> F

A, B and E were created: they are leaves. C, D and F were computed, and their grad_fn says by what.

>>> [x.is_leaf for x in [A, B, C, D, E, F]]
>>> [type(x.grad_fn).__name__ for x in [F, D, C, A]]

next_functions leads from a node to those that made its inputs. A leaf has no grad_fn; the edge to it ends in an
AccumulateGrad node, which adds what arrives to the leaf's .grad.

>>> F.grad_fn.next_functions
>>> F.grad_fn.next_functions[1][0].variable is E

backward() walks the graph from F to the leaves. By hand: dF/dA = B exp(AB), dF/dB = A exp(AB), dF/dE = 1.

>>> F.backward()
>>> A.grad, B.grad, E.grad

# An engine written by hand
A node can be called: it takes the gradient of its output and returns those of its inputs. So an engine needs no more
than a stack. This one sends every gradient down to the leaves at once, one path after another.

>>> def engine(node, gradient):
...     stack = [(node, gradient)]
...     while stack:
...         node, gradient = stack.pop()
...         gradients = node(gradient)
...         if not isinstance(gradients, tuple):
...             gradients = (gradients,)
...         for grad, (parent, _) in zip(gradients, node.next_functions):
...             if type(parent).__name__ == "AccumulateGrad":
...                 leaf = parent.variable
...                 leaf.by_hand = getattr(leaf, "by_hand", 0) + grad
...             else:
...                 stack.append((parent, grad))
>>> A = torch.tensor([3.], requires_grad=True)
>>> B = torch.tensor([2.], requires_grad=True)
>>> D = B ** 2
>>> F = D + A ** 2 * D
>>> engine(F.grad_fn, torch.tensor([1.]))
>>> A.by_hand, B.by_hand

The real engine waits at each node until all of its gradients have arrived. The answer is the same.

>>> F.backward()
>>> A.grad, B.grad

# A graph made by control flow
The graph is recorded anew in every forward pass, so if, for and while decide what it looks like.

>>> def product_of_positives(x):
...     result = 1
...     for item in x:
...         if item.item() > 0:
...             result = item * result
...     return result
>>> x = torch.tensor([0.3071, 1.1043, 1.3605, -0.3471], requires_grad=True)
>>> product_of_positives(x).backward()
>>> x.grad

Another input, another graph: now it is the third element that takes no part.

>>> x = torch.tensor([1.2817, 1.7840, -1.7033, 0.1302], requires_grad=True)
>>> product_of_positives(x).backward()
>>> x.grad

# Jacobians and Hessians
Whole matrices of derivatives come from autograd.functional. The shape of a Jacobian is output shape + input shape.

>>> functional = torch.autograd.functional
>>> x = torch.tensor([1., 2., 3.])
>>> functional.jacobian(lambda x: x.sum() * x, x)
>>> functional.jacobian(lambda x: x.view(3, 1) * x, x).shape

A Hessian needs a function with one number as its result.

>>> functional.hessian(lambda x: (x ** 3).sum(), x)
>>> functional.hessian(lambda x: x ** 3, x)  # raises

Derivatives can be differentiated again: create_graph=True records the backward pass too.

>>> x = torch.tensor(3., requires_grad=True)
>>> first, = torch.autograd.grad(x ** 3, x, create_graph=True)
>>> second, = torch.autograd.grad(first, x)
>>> first, second

# Gradients in the middle: grad, hooks, retain_grad
backward() fills the .grad of leaves only. There are three ways to a gradient in the middle. The first: ask for it.

>>> A = torch.tensor(2., requires_grad=True)
>>> C = A * .5
>>> torch.autograd.grad(C.exp(), (C, A))

The second: a hook sees the gradient as it passes, and what it returns travels on.

>>> C = A * .5
>>> handle = C.register_hook(lambda grad: print("at C passes", grad))
>>> C.exp().backward()
>>> handle.remove()

The third: tell the tensor to keep it.

>>> C = A * .5
>>> C.retain_grad()
>>> C.exp().backward()
>>> C.grad

# A function of one's own
forward computes, backward is the derivative, ctx carries what the one saves for the other.

>>> class Sigmoid(torch.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         output = 1 / (1 + torch.exp(-x))
...         ctx.save_for_backward(output)
...         return output
...
...     @staticmethod
...     def backward(ctx, grad_output):
...         output, = ctx.saved_tensors
...         return output * (1 - output) * grad_output
>>> x = torch.tensor([-1., 0., 1.], requires_grad=True)
>>> y = Sigmoid.apply(x)
>>> y
>>> y.sum().backward()
>>> x.grad

# Is the derivative right? gradcheck
gradcheck compares a backward with differences of the forward. In double precision, because differences lose digits.

>>> x = torch.randn(4, dtype=torch.float64, requires_grad=True)
>>> torch.autograd.gradcheck(Sigmoid.apply, (x,), eps=1e-6)
>>> torch.autograd.gradgradcheck(Sigmoid.apply, (x,))

A backward that is wrong is found out.

>>> class Wrong(Sigmoid):
...     @staticmethod
...     def backward(ctx, grad_output):
...         output, = ctx.saved_tensors
...         return output * grad_output
>>> torch.autograd.gradcheck(Wrong.apply, (torch.zeros(1, dtype=torch.float64, requires_grad=True),))  # raises

# Not recording: no_grad and inference_mode
Under no_grad nothing is recorded, whatever the inputs ask for. It works as a block and as a decorator.

>>> x = torch.tensor([1.], requires_grad=True)
>>> with torch.no_grad():
...     y = x * 2
>>> y.requires_grad
>>> @torch.no_grad()
... def double(x):
...     return x * 2
>>> double(x).requires_grad

inference_mode goes further: its tensors do not count versions and must stay out of recorded computations.

>>> with torch.inference_mode():
...     y = x * 2
>>> y.is_inference()
>>> x * y  # raises

# Writing in place
Every tensor counts the in-place operations on it. A node remembers the count of what it saved, and compares.

>>> x = torch.tensor([1., 2.], requires_grad=True)
>>> y = x.exp()
>>> y._version
>>> y.add_(1)
>>> y._version
>>> y.sum().backward()  # raises

exp had saved its result, which then changed. An addition saves nothing, so there it does no harm:

>>> y = x + 1
>>> y.mul_(10).sum().backward()
>>> x.grad

A leaf itself may be written only where nothing is recorded, as optimizers do.

>>> x.mul_(2)  # raises
>>> with torch.no_grad():
...     x.sub_(0.01 * x.grad)
>>> x

A write through a view reaches the base, and so does its history.

>>> base = x * 1
>>> base[0].mul_(5)
>>> base.grad_fn
>>> torch.autograd.grad(base.sum(), x)

# What a node saves
The attributes that begin with _saved show it: a product keeps both factors, exp its result, an addition nothing.

>>> x = torch.tensor([1., 2.], requires_grad=True)
>>> y = torch.tensor([3., 4.], requires_grad=True)
>>> node = (x * y).grad_fn
>>> node._saved_self is x, node._saved_other is y
>>> x.exp().grad_fn._saved_result

saved_tensors_hooks decides how they are kept. Here they become lists; they could as well go to a file.

>>> def pack(tensor):
...     print("packing  ", tensor.tolist())
...     return tensor.tolist()
>>> def unpack(values):
...     print("unpacking", values)
...     return torch.tensor(values)
>>> with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
...     z = (x * y).sum()
>>> z.backward()
>>> x.grad, y.grad

After backward they are released; a second walk needs retain_graph=True in the first.

>>> z.backward()  # raises

# Leaving the graph: detach
detach gives the same numbers without their history.

>>> x = torch.tensor([2.], requires_grad=True)
>>> y = x.pow(2)
>>> z = y.detach()
>>> z, z.data_ptr() == y.data_ptr()
>>> (z * 3).backward()  # raises

Along the path that was not detached the gradient is 2x; the other one is a constant.

>>> (y + z * 3).backward()
>>> x.grad

# Training two layers
All together: a network of two layers learns to answer [0.01, 0.99] to [5, 10].

>>> w1 = torch.tensor([[0.1, 0.15], [0.2, 0.25], [0.3, 0.35]], requires_grad=True)
>>> w2 = torch.tensor([[0.4, 0.45, 0.5], [0.55, 0.6, 0.65]], requires_grad=True)
>>> inputs = torch.tensor([[5.], [10.]])
>>> label = torch.tensor([[0.01], [0.99]])
>>> def answer():
...     hidden = torch.sigmoid(torch.mm(w1, inputs) + 1)
...     return torch.sigmoid(torch.mm(w2, hidden) + 1)
>>> for step in range(1, 1001):
...     loss = ((answer() - label) ** 2).sum()
...     loss.backward()
...     with torch.no_grad():
...         for w in (w1, w2):
...             w.sub_(0.5 * w.grad)
...             w.grad.zero_()
...     progress(step, 1000, loss.item())
>>> answer()

# Looking into it (pullback's own)
explain says how a tensor came to be, who will get gradients, and what is kept for backward.

>>> loss = ((answer() - label) ** 2).sum()
>>> print(torch.explain(loss))

why_no_grad says why a gradient does not come, find_nonfinite which operation made the first NaN or infinity.

>>> x = torch.tensor([0., 1.], requires_grad=True)
>>> print(torch.why_no_grad(x, lambda: (x.detach() * 2).sum()))
>>> print(torch.find_nonfinite(lambda: (x.sqrt() * x).sum()))
"""

BOLD, CYAN, RED, DIM, PLAIN = "1", "36", "31", "2", "0"
WIDTH, MARGIN = 100, " " * 4
OWN = "(pullback's own)"


def main() -> None:
    """Read the command line and run the sections asked for."""
    parser = argparse.ArgumentParser(description="A guided tour of autograd.")
    parser.add_argument("sections", nargs="*", type=int, help="numbers of the sections to run; all unless told")
    parser.add_argument("--module", default="pullback", help="the module to call torch (default: pullback)")
    parser.add_argument("--list", action="store_true", help="list the sections")
    arguments = parser.parse_args()

    sections = re.findall(r"^# (.+)\n((?:(?!# ).*\n)+)", TOUR, re.MULTILINE)
    if arguments.module != "pullback":
        sections = [section for section in sections if OWN not in section[0]]
    if unknown := [number for number in arguments.sections if not 1 <= number <= len(sections)]:
        parser.error(f"there is no section {unknown[0]}; the sections are 1 to {len(sections)}")
    if arguments.list:
        for number, (title, _) in enumerate(sections, 1):
            print(f"{number:3}  {title}")
        return

    module = importlib.import_module(arguments.module)
    module.manual_seed(0)
    print("\n" + MARGIN + colour(f">>> import {arguments.module} as torch", CYAN))
    names = {"torch": module, "progress": progress, "print": print_indented}
    for number, (title, text) in enumerate(sections, 1):
        if not arguments.sections or number in arguments.sections:
            play(title, number, text, names)
        elif number < max(arguments.sections):
            # A later section may use what this one defines, so it runs too, silently.
            with contextlib.redirect_stdout(io.StringIO()):
                play(title, number, text, names)


def play(title: str, number: int, text: str, names: dict[str, object]) -> None:
    """Print one section and run its examples."""
    print("\n" + colour(f"{number}. {title}", BOLD) + "\n" + colour("─" * WIDTH, DIM))
    after_example = False
    for piece in doctest.DocTestParser().parse(text):
        if isinstance(piece, doctest.Example):
            run(piece.source, names)
            after_example = True
        elif piece.strip():
            print(("\n" if after_example else "") + textwrap.fill(" ".join(piece.split()), WIDTH) + "\n")


def run(source: str, names: dict[str, object]) -> None:
    """Print an example and what it answers, as an interactive session does."""
    source = source.rstrip()
    expected_to_raise = source.endswith("# raises")
    shown = source.removesuffix("# raises").rstrip().split("\n")
    for prompt, line in zip([">>>"] + ["..."] * len(shown), shown):
        print(MARGIN + colour(f"{prompt} {line}".rstrip(), CYAN))
    file = f"<tour {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for those who quote lines
    try:
        if isinstance(ast.parse(source).body[0], ast.Expr):
            answer = eval(compile(source, file, "eval"), names)
            if answer is not None:
                print(textwrap.indent(repr(answer), MARGIN))
        else:
            exec(compile(source, file, "exec"), names)
    except Exception as error:
        if not expected_to_raise:
            raise
        for line in f"{type(error).__name__}: {error}".strip().split("\n"):
            print("\n".join(MARGIN + colour(part, RED) for part in textwrap.wrap(line, WIDTH - len(MARGIN))))
        return
    if expected_to_raise:
        raise AssertionError(f"this should have raised an error: {source}")


def print_indented(*values: object) -> None:
    """Print as the examples do, under their own lines."""
    print(textwrap.indent(" ".join(map(str, values)), MARGIN))


def progress(step: int, steps: int, loss: float) -> None:
    """Draw a bar that stays on its line; where the output is no terminal, print it once it is full."""
    bar = "█" * (30 * step // steps)
    line = f"{MARGIN}{bar:░<30} step {step} of {steps}, loss {loss:.6f}"
    if sys.stdout.isatty() and step % max(1, steps // 50) == 0:
        print("\r" + line, end="", flush=True)
    if step == steps:
        print("" if sys.stdout.isatty() else line)


def colour(text: str, code: str) -> str:
    """Colour a text for a terminal; elsewhere, and where NO_COLOR is set, leave it plain."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{code}m{text}\033[{PLAIN}m"


if __name__ == "__main__":
    main()
