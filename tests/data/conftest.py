"""Fixtures for tests of downloads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.data.server import Site


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no local request through a proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def site(no_proxy: None) -> Iterator[Site]:
    """A running server."""
    made = Site()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()
