"""Connections to Ray."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from lightdxml.cluster.connection import connect


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("127.0.0.1:1", ConnectionError, "no Ray cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:99999", ConnectionError, "no Ray cluster answers"),
        ("nonsense", ValueError, "is not the address of a Ray cluster: give `local`, `auto` or HOST:PORT"),
    ],
)
def test_an_address_without_a_cluster_is_refused_at_once(address: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), connect(address):
        pass


def test_without_ray_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lightdxml.cluster.connection.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r'needs ray: pip install "lightdxml\[ray\]"'), connect("local"):
        pass


def test_a_machine_without_a_cluster_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def find_nothing(address: str, **_: object) -> None:
        raise ConnectionError("Could not find any running Ray instance. Please specify the one to connect to")

    monkeypatch.setattr(ray, "init", find_nothing)
    with pytest.raises(ConnectionError, match=r"^no Ray cluster runs on this machine: start one"), connect("auto"):
        pass


def use_and_fail() -> None:
    import ray
    from ray.exceptions import ObjectStoreFullError

    with connect("local"):
        (folder,) = Path(os.environ["RAY_TMPDIR"]).iterdir()
        assert folder.stat().st_mode & 0o077 == 0, "others cannot read its files"
        with connect("127.0.0.1:1"):
            assert ray.is_initialized()
        assert ray.is_initialized()
        raise ObjectStoreFullError("no space\nand a trace")


def test_local_ray_is_stopped_a_connection_that_was_there_stays_and_errors_of_ray_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    # Not pytest's folder: the paths of Ray's sockets must be short.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        with pytest.raises(ConnectionError, match=r"^Ray could not go on: no space"):
            use_and_fail()
        assert not list(Path(folder).iterdir())
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == handler, "Ray has one of its own"
