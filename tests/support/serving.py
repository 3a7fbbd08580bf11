"""Servers in threads, and raw connections to them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from lightdxml.serve.app import create_app
from lightdxml.serve.server import Server, listen
from lightdxml.serve.service import ServeOptions, Service


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    port: int
    service: Service

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=30, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return requests.post(self.url + path, timeout=30, **options)

    def connect(self) -> socket.socket:
        """Return a connection of its own."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextmanager
def running(folders: Mapping[str, Path], **options: Any) -> Iterator[Running]:
    """Serve models on a free port inside the `with` block, once they are loaded."""
    app, service = create_app(folders, ServeOptions(**({"access_log": False} | options)))
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    ready = threading.Event()
    server = Server(app, service, listener, on_ready=ready.set)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60), "the server did not start"
        yield Running(port, service)
    finally:
        server.stop()
        thread.join(60)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    """Return when a condition holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
