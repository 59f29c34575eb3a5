"""`pullback graph`: which pass is drawn, and that the program does not notice."""

import json

import pytest

PROGRAM = """import sys
import torch
torch.manual_seed(0)
print(sys.argv[1:])
w = torch.ones(3, requires_grad=True)
for steps in (1, 3, 2):
    loss = w
    for _ in range(steps):
        loss = loss.tanh()
    loss.sum().backward()
print(w.grad)
"""


@pytest.fixture
def program(script):
    return script("program.py", PROGRAM)


def test_the_largest_pass_is_drawn_as_a_page(command, program, tmp_path):
    result = command("graph", program, "--output", "g.html", "--lr", "1")
    assert result.stderr == "" and result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "['--lr', '1']" and lines[-1] == "4 nodes of backward pass 2 of 3 are in g.html"
    assert "<html" in (tmp_path / "g.html").read_text(encoding="utf-8")


def test_the_program_does_not_notice(command, program):
    plain, drawn = command("run", program), command("graph", program)
    assert drawn.stdout.splitlines()[:-1] == plain.stdout.splitlines()


@pytest.mark.parametrize(("which", "number", "nodes"), [("largest", 2, 4), ("last", 3, 3), ("1", 1, 2)])
def test_one_can_say_which_pass(command, program, which, number, nodes):
    answer = json.loads(command("graph", "--json", "--which", which, "--output", "g.dot", program).stdout)
    assert (answer["pass"], answer["nodes"], answer["passes"], answer["status"]) == (number, nodes, 3, 0)


@pytest.mark.parametrize(("kind", "begins"), [("svg", "<svg"), ("dot", "digraph")])
def test_pictures_and_graphviz(command, program, tmp_path, kind, begins):
    command("graph", program, f"--output=g.{kind}")
    assert (tmp_path / f"g.{kind}").read_text(encoding="utf-8").startswith(begins)


def test_stop_ends_the_program_there(command, program):
    result = command("graph", "--which", "1", "--stop", program)
    assert result.returncode == 0 and result.stdout.splitlines() == [
        "[]",
        "2 nodes of backward pass 1 of 1 are in graph.html",
    ]


def test_passes_of_autograd_grad_and_of_several_tensors_count(command, script):
    text = (
        "import torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "print(torch.autograd.grad([x.exp(), x.sin().sum()], x, [torch.ones(2), None]))\n"
        "torch.autograd.grad(outputs=x.exp(), inputs=x, grad_outputs=torch.ones(2))\n"
        "torch.autograd.backward((x * 2, x * 3), (torch.ones(2), torch.ones(2)))\n"
        "(x * 2).backward(gradient=torch.ones(2))\n"
        "print(x.grad)\n"
    )
    name = script("several.py", text)
    result = command("graph", name)
    assert result.stdout.splitlines()[:-1] == command("run", name).stdout.splitlines(), result.stderr
    assert "3 nodes of backward pass 1 of 4" in result.stdout


def test_a_program_without_a_backward_pass_is_told(command, script):
    result = command("graph", script("none.py", "print(1)\n"))
    assert result.returncode == 1 and "the program ran no backward pass" in result.stderr


def test_a_pass_that_never_came_is_told(command, program):
    result = command("graph", "--which", "9", program)
    assert result.returncode == 1 and "the program ran 3 backward passes" in result.stderr


def test_a_program_that_fails_after_its_pass_is_drawn_all_the_same(command, script):
    result = command("graph", script("fails.py", PROGRAM + "raise ValueError('late')\n"))
    assert result.returncode == 1 and "ValueError: late" in result.stderr and "are in graph.html" in result.stdout


def test_a_pass_that_fails_fails_as_it_would_alone(command, script):
    text = "import torch\ny = torch.ones(1, requires_grad=True).exp()\ny.backward()\ny.backward()\n"
    name = script("twice.py", text)
    drawn, plain = command("graph", "--which", "2", name), command("run", name)
    assert drawn.returncode == plain.returncode == 1
    assert drawn.stderr.splitlines()[-3:] == plain.stderr.splitlines()[-3:]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--output", "g.png"], "one of .html, .svg, .dot"),
        (["--output", "no/such/folder/g.svg"], "there is no such folder"),
        (["--which", "best"], "say largest, last, or a number"),
    ],
)
def test_mistakes_are_told_before_the_program_runs(command, program, words, text):
    result = command("graph", *words, program)
    assert result.returncode == 2 and text in result.stderr and result.stdout == ""


def test_without_a_display_open_says_where_the_page_is(command, program):
    result = command("graph", "--open", program, DISPLAY="", WAYLAND_DISPLAY="")
    assert result.returncode == 0 and "no display" in result.stderr and result.stderr.rstrip().endswith("/graph.html")


THREADS = """import threading, torch
def work():
    for _ in range(5):
        torch.ones(3, requires_grad=True).tanh().sum().backward()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_passes_of_all_threads_are_counted(command, script):
    answer = json.loads(
        command("graph", "--json", "--which", "last", "--output", "g.dot", script("t.py", THREADS)).stdout
    )
    assert (answer["passes"], answer["pass"], answer["nodes"]) == (40, 40, 2)
