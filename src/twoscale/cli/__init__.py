"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a user's mistake becomes one sentence and exit status 2."""
    from twoscale.errors import TwoscaleError

    try:
        from twoscale.cli.app import app
    except ImportError as error:
        sys.exit(f"twoscale: the command line needs '{error.name}': pip install 'twoscale[cli]'")
    try:
        app()
    except TwoscaleError as error:
        print(f"twoscale: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("twoscale: interrupted; run the same command again to continue", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
