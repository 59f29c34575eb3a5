"""The commands about programs and machines, and how they speak."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from pullback.cli import COMMANDS, output

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1])}
PROGRAM = """import sys
import torch
print("training", sys.argv[1:])
net = torch.nn.Linear(3, 2)
for _ in range(2):
    net(torch.randn(4, 3)).tanh().sum().backward()
"""


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_teaches_by_examples(command, name):
    result = command(*[name] * bool(name), "--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "examples:" in result.stdout and f"pullback {name}" in result.stdout
    assert all(len(line) <= 120 for line in result.stdout.splitlines())


def test_no_command_prints_the_help_and_fails(command):
    result = command()
    assert result.returncode == 2 and "examples:" in result.stdout


@pytest.mark.parametrize("words", [["fly"], ["check"], ["info", "--loud"], ["run"]])
def test_what_is_not_understood_is_told_without_a_traceback(command, words):
    result = command(*words)
    assert result.returncode == 2 and "usage:" in result.stderr and "Traceback" not in result.stderr


def test_the_version_is_printed(command):
    assert command("--version").stdout.startswith("pullback 0.")


def test_check_answers_for_machines(command, script):
    script("a.py", "import torch\ntorch.ones(2)\ntorch.export.export(print)\n")
    result = command("check", "--json", "a.py")
    (report,) = json.loads(result.stdout)
    assert result.returncode == 1 and report["file"] == "a.py" and "torch.ones" in report["found"]
    why = "save the model with torch.save or safetensors.torch.save_file"
    assert report["missing"] == [{"name": "torch.export.export", "line": 3, "why": why}]
    assert report["refuses"] == report["unknown"] == []


def test_check_tells_a_name_that_torch_lacks_from_one_that_is_missing_or_refuses(command, script):
    script(
        "a.py", "import torch\ntorch.onse(2)\ntorch.export.export(print)\ntorch.quantize_per_tensor(1)\ntorch.quint8\n"
    )
    result = command("check", "a.py")
    assert result.returncode == 1
    first, *lines = result.stdout.splitlines()
    assert first == "a.py: 5 names of torch, 1 missing, 2 refusing, 1 unknown to torch"
    assert lines[0] == "  line 2: torch.onse is no name of torch"
    assert lines[1].startswith("  line 3: torch.export.export is missing: save the model with torch.save")
    assert lines[2].startswith("  line 4: torch.quantize_per_tensor raises when it is called: ")
    assert lines[3] == "  line 5: torch.quint8 raises when it is called: no tensor can have it"


def test_check_follows_the_imports_of_a_program_to_its_own_files(command, script, tmp_path):
    for folder in ("package", "package/inner"):
        (tmp_path / folder).mkdir()
    script("a.py", "import torch, json, helper\nfrom package.inner import layers\n")
    script("helper.py", "import a\nfrom torch.nn import Linear\n")
    script("package/__init__.py", "")
    script("package/inner/__init__.py", "from . import other\nfrom ..top import *\n")
    script("package/inner/layers.py", "import torch\ntorch.export.export(print)\n")
    script("package/inner/other.py", "")
    script("package/top.py", "import torch\n")
    script("unused.py", "import torch\n")
    result = command("check", "--json", "a.py")
    assert {report["file"] for report in json.loads(result.stdout)} == {
        "a.py", "helper.py", "package/__init__.py", "package/inner/__init__.py", "package/inner/layers.py",
        "package/inner/other.py", "package/top.py",
    }  # fmt: skip
    assert result.returncode == 1


def test_check_says_when_there_is_nothing_to_check(command, script, tmp_path):
    assert command("check", script("a.py", "print(1)\n")).stdout == "a.py: no names of torch, nothing to check\n"
    (tmp_path / "empty").mkdir()
    result = command("check", "empty")
    assert result.returncode == 2
    assert result.stderr == "pullback: there is no Python file in empty: nothing to check\n"


def test_check_reads_a_folder_and_can_be_quiet(command, script, tmp_path):
    (tmp_path / "inner").mkdir()
    script("inner/fine.py", "import torch\n")
    script("inner/lacks.py", "import torch\ntorch.export.export(print)\n")
    lines = command("check", "--quiet", "inner").stdout.splitlines()
    assert lines[0] == "inner/lacks.py: 2 names of torch, 1 missing" and len(lines) == 2
    assert lines[1].startswith("  line 2: torch.export.export is missing: ")


def test_check_says_where_a_program_is_no_python(command, script):
    result = command("check", script("broken.py", "x = 1\nif x\n"))
    assert result.returncode == 2 and result.stderr.startswith("pullback: broken.py, line 2, is no Python: ")


def rows_of(table):
    return sum(line.strip()[-1:].isdigit() and "%" in line for line in table.splitlines())


def test_profile_prints_the_table_after_the_program(command, script):
    result = command("profile", "--rows", "2", script("p.py", PROGRAM), "--epochs", "1")
    lines = result.stdout.splitlines()
    assert result.returncode == 0 and lines[0] == "training ['--epochs', '1']"
    assert rows_of(result.stdout) == 2
    assert any(line.startswith("Self CPU time total") for line in lines)


def test_profile_takes_its_options_behind_the_script_too(command, script):
    result = command("profile", script("p.py", PROGRAM), "--rows=1", "--sort", "count", "--", "--rows", "9")
    assert "training ['--rows', '9']" in result.stdout
    assert rows_of(result.stdout) == 1


def test_profile_answers_for_machines_and_writes_a_timeline(command, script, tmp_path):
    result = command("profile", "--json", "--shapes", "--memory", "--trace", "t.json", script("p.py", PROGRAM))
    rows = json.loads(result.stdout)
    assert {"name", "count", "self_us", "total_us", "shapes", "bytes"} == set(rows[0])
    assert "training []" in result.stderr
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_profile_of_a_program_without_ops_says_so(command, script):
    result = command("profile", script("none.py", "print(1)\n"))
    assert result.returncode == 1 and "called no op" in result.stderr


def test_profile_keeps_the_status_of_the_program(command, script):
    result = command("profile", script("p.py", PROGRAM + "sys.exit(4)\n"))
    assert result.returncode == 4 and "Self CPU time total" in result.stdout


def test_info_says_what_computes(command):
    facts = json.loads(command("info", "--json").stdout)
    text = command("info").stdout
    assert facts["versions"]["numpy"] in text and facts["arithmetic"]["blas"] in text
    assert facts["processor"]["cores"] > 0 and "llvmlite" in facts["optional"]


@pytest.mark.parametrize("words", [("run",), ("profile",), ("bench", "--quick", "--alone"), ("info",)])
def test_without_the_compiler_a_command_says_in_one_line_how_to_get_it(command, script, tmp_path, words):
    script("sitecustomize.py", "import sys\nsys.modules['llvmlite'] = None\n")
    program = script("train.py", "import torch\nprint(torch.ones(2) + 1)\n")
    arguments = (*words, program) if words[0] in ("run", "profile") else words
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    told = command(*arguments, PYTHONPATH=path, PULLBACK_KERNELS="")
    lines = [line for line in (told.stdout + told.stderr).splitlines() if "llvmlite is not installed" in line]
    assert told.returncode == 0 and len(lines) == 1
    assert "pip install 'pullback[fast]'" in lines[0] and "in a clone pip install '.[fast]'" in lines[0]


def test_with_the_compiler_nothing_is_said_of_it(command, script):
    pytest.importorskip("llvmlite")
    assert command("run", script("train.py", "print(1)\n")).stderr == ""


def test_bench_measures_alone(command):
    result = command("bench", "--quick", "--alone", "--json")
    answer = json.loads(result.stdout)
    assert answer["torch"] is None and len(answer["rows"]) > 5
    assert all(0 < row["pullback_us"] < 1e6 for row in answer["rows"])


class Terminal:
    def isatty(self):
        return True


def test_colour_is_for_terminals_only(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.paint("red", output.RED) == "red"
    assert output.paint("red", output.RED, Terminal()) == "\033[31mred\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("red", output.RED, Terminal()) == "red"


def test_a_reader_who_has_seen_enough_is_no_error(command):
    line = f"{sys.executable} -m pullback info | head -c 1"
    assert subprocess.run(line, shell=True, capture_output=True, text=True, env=ENVIRONMENT).stderr == ""
