"""The command that serves surrogates."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated
from warnings import warn

import typer

from twoscale.cli import options
from twoscale.errors import TwoscaleWarning
from twoscale.serve.limits import HOST, PORT, Limits


def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folders or saved surrogates. One is the model 'forward'; several are models "
            "with the names of their folders.",
        ),
    ],
    port: Annotated[
        int, typer.Option(metavar="N", help="Port to listen at; 0 for any free one.")
    ] = PORT,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen at. The default is reached from this machine only, and asks "
            "for localhost, 127.0.0.1 or [::1] with the port as Host of a request. Other "
            "addresses accept any Host. Web pages of others are refused.",
        ),
    ] = HOST,
    inputs: Annotated[
        str,
        typer.Option(
            metavar="MAP",
            help="What the input vector of UM-Bridge means. fields: the values at all nodes. "
            "kl:64: 64 coefficients of the Gaussian random field behind the inputs, standard "
            "normal. kl:64,width=0.3: the same, with the jump of a two-phase medium made a smooth "
            "step, which derivatives need.",
        ),
    ] = "fields",
    points: Annotated[
        str | None,
        typer.Option(
            metavar="RxC|FILE",
            help="Where UM-Bridge wants the solution: 13x13 for a lattice of inner points, or an "
            "npy file (P, 2) of rows and columns from 0 to 1. By default at all nodes.",
        ),
    ] = None,
    max_request: Annotated[
        str, typer.Option(metavar="SIZE", help="Largest request that is accepted.")
    ] = f"{Limits.request_bytes // 10**6}MB",
    max_waiting: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most requests that may wait.")
    ] = Limits.queue,
    timeout: Annotated[
        float, typer.Option(metavar="S", help="Most seconds until a request is answered.")
    ] = Limits.seconds,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Serve predictions by HTTP: fields as JSON or npy, vectors and derivatives by UM-Bridge.

    The server's own page, at its address, says how to ask. Errors of requests are printed to
    stderr. Ctrl-C or SIGTERM stops it once the requests that have begun are answered.

    \b
    Examples:
      twoscale serve runs/a
      twoscale serve runs/a runs/b --port 0
      twoscale serve runs/darcy --inputs kl:64,width=0.3 --points 13x13
    """
    from twoscale.cli.display import print_json
    from twoscale.cli.paths import SAVED, expect
    from twoscale.cli.terminal import is_quiet, print_answer, say
    from twoscale.files.npy import open_npy
    from twoscale.runtime.memory import parse_size
    from twoscale.serve import Server, load_models

    limits = Limits(request_bytes=parse_size(max_request), queue=max_waiting, seconds=timeout)
    expect(SAVED, *runs)
    wanted = open_npy(Path(points)) if points and points.endswith(".npy") else points
    models = load_models(runs, inputs=inputs, points=wanted, device=device)
    server = Server(models, host=host, port=port, limits=limits)
    if server.is_open:
        warn(f"{server.url} is open to others, without a password", TwoscaleWarning, stacklevel=2)
    described = [model.describe() for model in models]
    if json:
        print_json({"url": server.url, "models": described})
    elif is_quiet():
        print_answer(server.url)
    else:
        names = ", ".join(model.name for model in models)
        say(f"serving {names} at {server.url}: open it in a browser, or stop it with Ctrl-C")
        for one in described:
            say(f"{one['name']}: its UM-Bridge input is {one['umbridge']['input']}")
    sys.stdout.flush()
    log_to_stderr()
    server.run()
    if not json:
        say("stopped")


def log_to_stderr() -> None:
    """Let the library and uvicorn print what goes wrong, a line each, with the time."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("twoscale", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
