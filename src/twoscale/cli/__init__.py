"""The command line."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import traceback
import warnings
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Timer
from types import FrameType
from typing import Any, NoReturn

from twoscale.cli.terminal import is_quiet, muted, terminal_width, wrap
from twoscale.errors import TwoscaleError, TwoscaleWarning, missing_extra

_DEBUG, _QUIET = "--debug", ("-q", "--quiet")
_COMPLETE = "_TWOSCALE_COMPLETE"  # set by the shell that asks for words
_BAD_INPUT, _INTERRUPTED = 2, 130
_SOON = 0.01  # seconds


class _Stopped(KeyboardInterrupt):
    """A request to stop, from the keyboard or by another signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


_stops: list[_Stopped] = []  # the requests to stop that have come


def main() -> NoReturn:
    """Run the command line: whatever goes wrong becomes one sentence and an exit status.

    `--quiet` and `--debug`, which shows the traceback of an error, may stand anywhere in a command.
    """
    _stops.clear()
    arguments = sys.argv[1:]
    debug = _DEBUG in arguments
    quiet = any(one in arguments for one in _QUIET) and "--help" not in arguments
    arguments = [one for one in arguments if one not in (_DEBUG, *_QUIET)]
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _stopped_by_signals(), _warnings_in_one_line():
            with muted() if quiet else nullcontext():
                status = _run(arguments or ["--help"])
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        _silence()
        status = 0
    except BaseException as error:
        status = _tell(error, debug)
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    try:
        import typer

        from twoscale.cli.app import app
    except ImportError as error:
        raise missing_extra(error.name or "typer", "cli") from error
    commands = typer.main.get_command(app)
    if _COMPLETE in os.environ:
        commands.main(prog_name="twoscale")
    try:  # not by Typer's own `main`, which makes an exit status of interruptions and broken pipes
        width = shutil.get_terminal_size((80, 24)).columns
        with commands.make_context("twoscale", arguments, terminal_width=width) as context:
            commands.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        # Typer brings its own copy of click's exceptions: told by what they can do.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message().rstrip(".")
        path = getattr(getattr(error, "ctx", None), "command_path", "twoscale")
        raise TwoscaleError(f"{message[:1].lower()}{message[1:]} (see {path} --help)") from error
    return 0


def _tell(error: BaseException, debug: bool) -> int:
    """Print an error as one sentence and return the exit status."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if debug:
        traceback.print_exception(error)
    notes = getattr(error, "__notes__", ())
    if _stops and not isinstance(error, KeyboardInterrupt):
        error = _stops[-1]  # which a library took for an error of its own
    _complain("; ".join([_sentence(error), *notes]))
    if isinstance(error, KeyboardInterrupt):
        return getattr(error, "status", _INTERRUPTED)
    return _BAD_INPUT


def _complain(sentence: str) -> None:
    """Print a sentence to stderr; on a terminal its lines end between words."""
    print(wrap(f"twoscale: {sentence}", terminal_width(sys.stderr)), file=sys.stderr)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, TwoscaleError):
        return text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    from twoscale.runtime.memory import is_out_of_memory  # of torch, which help does not need

    if is_out_of_memory(error):
        return "there is not enough memory for this: take smaller sizes, or fewer fields at a time"
    if isinstance(error, RecursionError):
        return "something given is nested too deeply"
    if isinstance(error, OSError):
        return f"the system refused: {text}"
    return f"unexpected {type(error).__name__}: {text}; {_DEBUG} shows where"


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let requests to end act as Ctrl-C does: a search keeps its best, others clean up."""

    def stop(number: int, frame: FrameType | None) -> None:
        _stops.append(_Stopped(number))
        raise _stops[-1]

    def again(unraisable: Any) -> None:
        """Ask once more where Python could not raise it: inside a clean-up of an object, say."""
        if isinstance(unraisable.exc_value, _Stopped):
            number = signal.Signals(unraisable.exc_value.status - 128)
            Timer(_SOON, interrupt_main, (number,)).start()  # at once, it would be raised here
        else:
            usual_hook(unraisable)

    usual_hook = sys.unraisablehook
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {}
    for number in (getattr(signal, name) for name in names):
        if signal.getsignal(number) in usual:  # with nohup a hang-up is to be ignored
            with suppress(ValueError):  # not the main thread: somebody else's program
                before[number] = signal.signal(number, stop)
    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = usual_hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show our warnings as sentences; those of libraries as Python does."""

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        if issubclass(category, TwoscaleWarning):
            if not is_quiet():
                _complain(f"warning: {' '.join(str(message).split())}")
        else:
            usual(message, category, *rest)  # type: ignore[arg-type]

    usual = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always", TwoscaleWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _silence() -> None:
    """Keep Python from complaining at its end that nobody reads the output."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
