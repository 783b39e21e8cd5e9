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
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType
from typing import Any, NoReturn

from twoscale.cli.layout import wrap
from twoscale.cli.quiet import is_quiet
from twoscale.errors import TwoscaleError, TwoscaleWarning, did_you_mean, missing_extra

_DEBUG = "--debug"
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

    `--debug`, anywhere in the command, shows the traceback too.
    """
    _stops.clear()
    debug = _DEBUG in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != _DEBUG]
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _stopped_by_signals(), _warnings_in_one_line():
            status = _run()
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        _silence()
        status = 0
    except BaseException as error:
        status = _tell(error, debug)
    sys.exit(status)


def _run() -> int:
    try:
        import typer

        from twoscale.cli.app import app
        from twoscale.cli.group import PassedOn
    except ImportError as error:
        raise missing_extra(error.name or "typer", "cli") from error
    try:
        status = app(prog_name="twoscale", standalone_mode=False) or 0
    except PassedOn as passed:
        raise passed.error from passed.error.__cause__
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Typer brings its own copy of click's exceptions: told by what they can do.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return _BAD_INPUT
        raise TwoscaleError(_usage_error(error)) from error
    if status == _INTERRUPTED:  # while the arguments were read: Typer's own answer
        raise _stops[-1] if _stops else KeyboardInterrupt
    return status


def _usage_error(error: Any) -> str:
    """Return an error of Typer's in our words: what is wrong, and where to look it up."""
    if name := getattr(error, "option_name", None):
        hint = did_you_mean(name, getattr(error, "possibilities", None) or ())
        message = f"no option is called '{name}'{hint}"
    else:
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
    context = getattr(error, "ctx", None)
    return f"{message}. Try {context.command_path if context else 'twoscale'} --help."


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
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    print("\n".join(wrap(f"twoscale: {sentence}", width)), file=sys.stderr)


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
