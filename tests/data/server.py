"""A local HTTP server with the faults of real ones, and archives that it serves."""

from __future__ import annotations

import io
import random
import re
import socket
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from lightdxml.data.fetch import https_session

Handler = BaseHTTPRequestHandler
Script = Callable[[Handler], None]


def zipped(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tarred(*members: tuple[str, bytes]) -> bytes:
    """Return a tar that is not compressed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


NOISE = random.Random(0).randbytes(200_000)
BODY = zipped(("noise.txt", NOISE))
OTHER = zipped(("noise.txt", random.Random(1).randbytes(200_000)))


def local_session() -> requests.Session:
    """Return the session of downloads, which also speaks plain HTTP to the local server and does not wait."""
    session = https_session()
    retry = session.get_adapter("https://").max_retries  # type: ignore[attr-defined]
    assert isinstance(retry, Retry)
    session.mount("http://127.0.0.1", HTTPAdapter(max_retries=retry.new(backoff_factor=0)))
    return session


def put(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


class Site:
    """A local server that answers each request with the next script; the last one repeats."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[Script] = []
        site = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                script = site.scripts.pop(0) if len(site.scripts) > 1 else site.scripts[0]
                script(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(HTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                pass  # the client may disconnect

        self.server = Quiet(("127.0.0.1", 0), Answering)
        self.root = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.root}/data.zip"

    def answers(self, *scripts: Script) -> None:
        self.scripts = list(scripts)

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.requests]


def file(
    body: bytes = BODY,
    *,
    upto: int | None = None,
    etag: str | None = '"one"',
    modified: str | None = None,
    ranges: bool = True,
    if_range: bool = True,
    shift: int = 0,
    length: bool = True,
    reset: bool = False,
    stall: float = 0,
) -> Script:
    """Serve a file correctly, or with faults.

    At most `upto` bytes are sent. `ranges` and `if_range` are the headers that the server supports. `shift` is added to
    the start of a range. `length` tells whether the length is announced. `stall` is a wait in seconds before the end.
    """

    def answer(handler: Handler) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "") if ranges else None
        condition = handler.headers["If-Range"]
        if wanted and if_range and condition not in (None, etag, modified):
            wanted = None
        start = int(wanted[1]) + shift if wanted else 0
        content = body[start:]
        if wanted and not content:
            text("", 416)(handler)
            return
        handler.send_response(206 if wanted else 200)
        handler.send_header("Content-Type", "application/zip")
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        optional = {"Content-Length": str(len(content)) if length else None, "ETag": etag, "Last-Modified": modified}
        for name, value in optional.items():
            if value is not None:
                handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content[:upto])
        handler.wfile.flush()
        time.sleep(stall)
        if reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()

    return answer


def text(content: str | bytes, status: int = 200, kind: str = "text/html") -> Script:
    body = content.encode() if isinstance(content, str) else content

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirect(to: str, status: int = 302) -> Script:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def refused() -> str:
    """Return an address without a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/data.zip"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupted_at(size: int) -> Callable[[int, int | None], None]:
    def progress(done: int, total: int | None) -> None:
        if done >= size:
            raise KeyboardInterrupt

    return progress
