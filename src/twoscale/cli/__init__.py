"""The command line."""

from __future__ import annotations

import sys

from twoscale.errors import TwoscaleError, missing_extra


def main() -> None:
    """Run the command line; a user's mistake becomes one sentence and exit status 2."""
    try:
        sys.exit(_run())
    except TwoscaleError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except MemoryError:
        _stop("there is not enough memory for this", 2)
    except OSError as error:
        _stop(f"the system refused: {error}", 2)


def _run() -> int:
    try:
        import typer

        from twoscale.cli.app import app
    except ImportError as error:
        raise missing_extra(error.name or "typer", "cli") from error
    try:
        status = app(standalone_mode=False) or 0
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Typer brings its own copy of click's exceptions: told by what they can do.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message)
            return 2
        raise TwoscaleError(f"{message.rstrip('.')}. Try --help.") from error
    if status == 130:  # how Typer passes on an interruption
        raise KeyboardInterrupt
    return status


def _stop(message: str, status: int) -> None:
    print(f"twoscale: {message}", file=sys.stderr)
    sys.exit(status)
