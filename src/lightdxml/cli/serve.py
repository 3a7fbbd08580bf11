"""`lightdxml serve`."""

from __future__ import annotations

import ipaddress
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli.output import NJobs, note, seconds_of, warn

_PANEL = "Limits"
_TOKENS = "LIGHTDXML_TOKENS"
# Characters of a token that is hard to guess.
_SHORTEST = 16


def run(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL…",
            help="Folders of trained models. `ID=FOLDER` sets the id of a model.",
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.", min=0, max=65535)] = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on. `0.0.0.0` lets other machines in.")] = "127.0.0.1",
    n_jobs: NJobs = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Check every second for replaced models and load them. SIGHUP checks once.")
    ] = False,
    allow_learn: Annotated[
        bool, typer.Option("--allow-learn", help="Let models learn from documents that clients send with labels.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File of bearer tokens, one per line. Clients must send one. Or set {_TOKENS}, separated by commas.",
            show_default=False,
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Web site whose pages may call the API (CORS). Repeatable. Default: all; none with `--allow-learn` and"
            " without tokens.",
            show_default=False,
        ),
    ] = None,
    access_log: Annotated[bool, typer.Option(help="Log each request as a line of JSON.")] = True,
    queue: Annotated[
        int,
        typer.Option(
            help="Maximum number of documents in the queue. Further requests get status 429.",
            min=1,
            rich_help_panel=_PANEL,
        ),
    ] = 512,
    timeout: Annotated[
        str, typer.Option(help="Time limit for a request to arrive, and to wait in the queue.", rich_help_panel=_PANEL)
    ] = "30s",
    max_body: Annotated[
        str, typer.Option(help="Largest request body. Larger ones get status 413.", rich_help_panel=_PANEL)
    ] = "10MB",
) -> None:
    """Serve models over HTTP: a page for people, Annif's REST API for programs, and an API with all options.

    The page is at `/`, the description of both APIs at `/v1/ui/`, metrics for Prometheus at `/metrics`, health at
    `/v2/health/ready`. SIGTERM and Ctrl-C finish running requests first.

    Example: `lightdxml serve my-model`
    """
    with suppress(AttributeError, ValueError):  # Windows has no SIGHUP, and tests may call this from a thread.
        # Until the service can reload models, the signal must not end it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    missing = [name for name in ("fastapi", "uvicorn", "httptools", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise ImportError(f'serving needs {missing[0]}: pip install "lightdxml[serve]"')
    from lightdxml.model import store
    from lightdxml.persistence.atomic_dir import locate
    from lightdxml.predictor import threads_of
    from lightdxml.resources.system import parse_size
    from lightdxml.serve.app import create_app
    from lightdxml.serve.registry import parse_models
    from lightdxml.serve.server import Server, listen
    from lightdxml.serve.service import ServeOptions

    folders = parse_models(models)
    for folder in folders.values():
        if not store.is_model(locate(folder, store.is_model)):
            raise ValueError(f"{folder} is not a model: train one with lightdxml train DATA --model {folder}")
    seconds = seconds_of(timeout, "--timeout")
    if seconds < 1:
        raise ValueError(f"--timeout is {timeout}: it must be at least 1s")
    tokens = _tokens(token_file)
    if allow_learn:
        _check_writable(folders.values())
    options = ServeOptions(
        threads=threads_of(n_jobs),
        queue=queue,
        timeout=seconds,
        max_body=parse_size(max_body),
        tokens=tokens,
        # Any page that someone visits could teach the models otherwise.
        origins=tuple(cors_origin or (() if allow_learn and not tokens else ("*",))),
        access_log=access_log,
        allow_learn=allow_learn,
    )
    listener = listen(host, port)
    app, service = create_app(folders, options)
    shown, number = listener.getsockname()[:2]
    address = f"http://[{shown}]:{number}" if ":" in shown else f"http://{shown}:{number}"
    if not _is_loopback(shown) and not options.tokens:
        use = "use it and change its models" if allow_learn else "use it"
        warn(f"anyone who can reach {address} can {use}: require a token with --token-file")

    def on_ready() -> None:
        names = ", ".join(f"{one.id} ({one.model.n_labels:,} labels)" for one in service.models)
        note(f"serving {names} at {address}/ (API: {address}/v1/ui/). Ctrl-C stops.")

    note(f"loading {', '.join(folders)} …")
    Server(app, service, listener, watch=reload, on_ready=on_ready).run()
    note("stopped")


def _check_writable(folders: Iterable[Path]) -> None:
    """Raise a `ValueError` if a model cannot be replaced, and so cannot learn."""
    for folder in folders:
        above = folder.resolve().parent
        if not os.access(above, os.W_OK):
            raise ValueError(f"{folder} cannot learn: {above} is not writable, and a lesson replaces the model in it")


def _tokens(file: Path | None) -> tuple[str, ...]:
    """Return the tokens of a file, or of the environment; none if neither is given."""
    given = os.environ.get(_TOKENS)
    if file is not None and given is not None:
        raise ValueError(f"there are tokens in {file} and in {_TOKENS}: give one of them")
    if file is not None:
        if not file.is_file():
            raise ValueError(f"there is no file {file}: write tokens into it, one per line")
        lines = file.read_text("utf-8").splitlines()
        tokens = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    else:
        tokens = [token.strip() for token in (given or "").split(",") if token.strip()]
    if not tokens and (file is not None or given is not None):
        raise ValueError(f"{file or _TOKENS} has no tokens: give at least one, or leave it out")
    if short := [token for token in tokens if len(token) < _SHORTEST or not token.isascii()]:
        raise ValueError(
            f"{len(short)} of {len(tokens)} tokens are too short or not ASCII: use {_SHORTEST} characters or more"
        )
    return tuple(tokens)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
