"""Connections to Ray."""

from __future__ import annotations

import signal

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


def use_and_fail() -> None:
    import ray
    from ray.exceptions import ObjectStoreFullError

    with connect("local"):
        with connect("127.0.0.1:1"):
            assert ray.is_initialized()
        assert ray.is_initialized()
        raise ObjectStoreFullError("no space\nand a trace")


def test_local_ray_is_stopped_a_connection_that_was_there_stays_and_errors_of_ray_are_one_sentence() -> None:
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ConnectionError, match=r"^Ray could not go on: no space"):
        use_and_fail()
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == handler, "Ray has one of its own"
