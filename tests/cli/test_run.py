"""`pullback run`: the program is alone with Python."""

import subprocess
import sys

import pytest


def test_an_error_of_the_program_is_shown_as_python_shows_it(command, script, tmp_path):
    name = script("fails.py", "def half(x):\n    return x / 0\n\n\nhalf(1)\n")
    ours = command("run", name)
    python = subprocess.run([sys.executable, name], capture_output=True, text=True, cwd=tmp_path)
    assert (ours.returncode, ours.stderr) == (1, python.stderr)


def test_a_program_that_is_no_python_is_shown_as_python_shows_it(command, script, tmp_path):
    name = script("broken.py", "x = 1\nif x\n    pass\n")
    python = subprocess.run([sys.executable, name], capture_output=True, text=True, cwd=tmp_path)
    assert command("run", name).stderr == python.stderr


@pytest.mark.parametrize(
    ("end", "status", "text"), [("3", 3, ""), ("", 0, ""), ("'too small'", 1, "too small\n"), ("True", 1, "")]
)
def test_the_status_of_the_program_is_the_status_of_the_command(command, script, end, status, text):
    result = command("run", script("ends.py", f"import sys\nsys.exit({end})\n"))
    assert (result.returncode, result.stderr) == (status, text)


def test_the_program_is_main_and_its_classes_can_be_pickled(command, script):
    text = (
        "import pickle, sys, torch\n"
        "class Point:\n    pass\n"
        "print(type(pickle.loads(pickle.dumps(Point()))).__module__, sys.modules['__main__'].Point is Point)\n"
        "print(sys.argv[1:], torch.ones(1).item())\n"
    )
    result = command("run", script("main.py", text), "--epochs", "3", "-m", "--help")
    assert result.stdout.splitlines() == ["__main__ True", "['--epochs', '3', '-m', '--help'] 1.0"], result.stderr


def test_a_module_runs_as_python_minus_m_runs_it(command, script):
    script("trainer.py", "import sys, torch\nprint(__name__, sys.argv[1:], torch.__version__)\n")
    result = command("run", "-m", "trainer", "a")
    assert result.stdout == "__main__ ['a'] 2.13.0+pullback\n", result.stderr


def test_a_module_that_is_not_there_is_a_mistake(command):
    result = command("run", "-m", "no_such_module")
    assert (result.returncode, result.stderr) == (2, "pullback: No module named no_such_module\n")


def test_a_missing_import_of_the_program_is_its_own_error(command, script):
    result = command("run", script("imports.py", "import no_such_module\n"))
    assert result.returncode == 1 and result.stderr.startswith("Traceback") and "imports.py" in result.stderr


def test_a_folder_without_a_program_is_a_mistake(command, tmp_path):
    (tmp_path / "empty").mkdir()
    result = command("run", "empty")
    assert result.returncode == 2 and "__main__.py" in result.stderr


def test_a_hook_the_program_set_for_errors_is_called(command, script):
    text = "import sys\nsys.excepthook = lambda kind, error, trace: print('caught', error)\nraise ValueError('it')\n"
    result = command("run", script("hook.py", text))
    assert (result.returncode, result.stdout, result.stderr) == (1, "caught it\n", "")


def test_an_interrupted_program_ends_with_130(command, script):
    result = command("run", script("stopped.py", "raise KeyboardInterrupt\n"))
    assert result.returncode == 130 and "KeyboardInterrupt" in result.stderr


def test_two_dashes_of_the_program_are_its_own(command, script):
    result = command("run", script("args.py", "import sys\nprint(sys.argv[1:])\n"), "--", "a", "--", "b")
    assert result.stdout == "['--', 'a', '--', 'b']\n"
