"""Running somebody's program: as Python runs it, with torch's names meaning pullback's."""

from __future__ import annotations

import argparse
import runpy
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from pullback.cli.output import DASHES, Mistake, say_if_not_compiled
from pullback.compat import install

INTERRUPTED = 130
OURS = (str(Path(__file__).parent), "<frozen runpy>", "<frozen importlib", runpy.__file__)


def add_program(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a program."""
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for `python -m`")
    parser.add_argument("script", help="the program, unchanged")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets as its own arguments")


def own_options(parser: argparse.ArgumentParser, given: argparse.Namespace, options: list[argparse.Action]) -> None:
    """Take our options from right behind the script too; from another word on, or `--`, all is the program's."""
    arity = {name: int(action.nargs != 0) for action in options for name in action.option_strings}
    count, rest = 0, given.arguments
    while count < len(rest) and rest[count].partition("=")[0] in arity:
        count += 1 + arity.get(rest[count], 0)
    if count:
        before = {action.dest: getattr(given, action.dest) for action in options}
        parser.parse_args([*rest[:count], given.script], given)
        for action in options:  # what stood before the script is not undone by the defaults
            if getattr(given, action.dest) == action.default:
                setattr(given, action.dest, before[action.dest])
    rest = rest[count:]
    given.arguments = rest[1:] if rest[:1] == [DASHES] else rest


def compiled(script: str) -> CodeType:
    """The code of a script; a file that cannot be read is a mistake."""
    path = Path(script).absolute()
    if not path.exists():
        raise Mistake(f"there is no file {script}")
    if path.is_dir():
        path /= "__main__.py"
        if not path.exists():
            raise Mistake(f"{script} is a folder without a __main__.py")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise Mistake(f"{script} cannot be read: {error.strerror}") from None
    return compile(source, str(path), "exec", dont_inherit=True)


def execute(given: argparse.Namespace, quiet: bool = False) -> int:
    """Run the program; the status it ends with. Its own errors are printed as Python prints them.

    With `quiet`, what it prints goes to stderr, because stdout is for the answer of the command.
    """
    given.arguments = ["--" if word == DASHES else word for word in given.arguments]
    install()
    say_if_not_compiled()
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(redirect_stdout(sys.stderr))
        try:
            if given.module:
                sys.argv = [given.script, *given.arguments]
                sys.path.insert(0, "")
                runpy.run_module(given.script, run_name="__main__", alter_sys=True)
            else:
                code = compiled(given.script)
                sys.argv = [given.script, *given.arguments]
                sys.path.insert(0, str(Path(code.co_filename).resolve().parent))
                main = ModuleType("__main__")
                main.__dict__.update(__file__=code.co_filename, __builtins__=__builtins__)
                sys.modules["__main__"] = main  # pickle, multiprocessing and inspect look it up by name
                exec(code, main.__dict__)
        except SystemExit as stop:
            return status_of(stop)
        except Mistake:
            raise
        except BaseException as error:
            if given.module and isinstance(error, ImportError) and beyond(error.__traceback__) is None:
                raise Mistake(str(error)) from None  # no such module
            sys.stdout.flush()
            error = error.with_traceback(beyond(error.__traceback__))
            sys.excepthook(type(error), error, error.__traceback__)
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def status_of(stop: SystemExit) -> int:
    """What Python makes of `sys.exit(...)`."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def beyond(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of the command itself."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    return trace
