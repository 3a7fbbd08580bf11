"""The command `lightdxml serve`: start, signals, models that are replaced, and what it logs."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from lightdxml import LightDXML, load
from lightdxml.persistence.atomic_dir import replace_folder
from lightdxml.serve.app import create_app
from lightdxml.serve.registry import parse_models
from tests.support.commands import COMMAND, run_process
from tests.support.serving import running, wait_until


class Process:
    """A service in a process of its own."""

    def __init__(self, *arguments: Any, env: dict[str, str] | None = None) -> None:
        command = [*COMMAND, "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, bufsize=1
        )
        self.notes: list[str] = []
        self.log: list[str] = []
        streams = (self.process.stderr, self.notes), (self.process.stdout, self.log)
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in streams]
        for reader in self._readers:
            reader.start()
        wait_until(lambda: self.url or self.process.poll() is not None, 60)

    @staticmethod
    def _read(stream: Any, lines: list[str]) -> None:
        with stream:
            # Line by line: the test looks at them meanwhile.
            while line := stream.readline():
                lines.append(line)

    @property
    def url(self) -> str:
        found = [re.search(r"at (http://\S+?)/ ", line) for line in self.notes]
        return next((one[1] for one in found if one), "")

    def suggest(self, text: str = "a cat", **options: Any) -> requests.Response:
        path = self.url + "/v1/projects/pets/suggest"
        return requests.post(path, data={"text": text, "limit": 1}, timeout=30, **options)

    def stop(self) -> int:
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(30)
        for reader in self._readers:
            reader.join()
        return code


@contextmanager
def serving(*arguments: Any) -> Iterator[Process]:
    service = Process(*arguments)
    try:
        assert service.url, service.notes
        yield service
    finally:
        service.process.kill()
        service.wait()


def replace_model(folder: Path, other: Path) -> None:
    """Put another model into a folder, as `save` does."""
    replace_folder(folder, lambda place: shutil.copytree(other, place, dirs_exist_ok=True), lambda _: True)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def reversed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that calls cats dogs."""
    folder = tmp_path_factory.mktemp("reversed") / "pets"
    LightDXML("fast", min_df=1).fit(["a cat", "a dog"] * 20, [["dog"], ["cat"]] * 20).save(folder)
    return folder


def test_the_command_serves_exchanges_and_stops(plain_folder: Path, reversed_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pets"
    shutil.copytree(plain_folder, folder)
    with serving(folder) as service:
        assert service.suggest("a SECRET cat").json()["results"][0]["label"] == "cat"
        replace_model(folder, reversed_folder)
        assert service.suggest().json()["results"][0]["label"] == "cat", "nobody has said that it has changed"
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: service.suggest().json()["results"][0]["label"] == "dog")
        assert service.stop() == 0
        assert service.notes[-1] == "stopped\n"
        entries = [json.loads(line) for line in service.log]
    assert entries[0] | {"time": "", "ms": 0} == {
        "time": "", "client": "127.0.0.1", "method": "POST", "path": "/v1/projects/pets/suggest", "status": 200,
        "ms": 0, "bytes": entries[0]["bytes"],
    }  # fmt: skip
    assert "SECRET" not in "".join(service.log + service.notes)


def test_a_watched_model_is_exchanged_and_a_damaged_one_is_not(
    plain_folder: Path, reversed_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pets"
    shutil.copytree(plain_folder, folder)
    with serving(folder, "--reload", "--no-access-log") as service:
        replace_model(folder, reversed_folder)
        wait_until(lambda: service.suggest().json()["results"][0]["label"] == "dog")
        damaged = tmp_path / "damaged"
        shutil.copytree(plain_folder, damaged)
        (damaged / "arrays.safetensors").write_bytes(b"nothing")
        replace_model(folder, damaged)
        wait_until(lambda: any("was not reloaded" in line for line in service.notes))
        time.sleep(2.5)
        assert sum("was not reloaded" in line for line in service.notes) == 1, "it is tried once"
        assert service.suggest().json()["results"][0]["label"] == "dog"
        assert service.log == []


def test_sigterm_answers_what_has_begun(plain_folder: Path) -> None:
    with serving(plain_folder) as service:
        port = int(service.url.rpartition(":")[2])
        import socket

        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            kind = b"application/x-www-form-urlencoded"
            head = (
                b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\ncontent-length: 10\r\n\r\n"
            )
            connection.sendall(head % kind + b"text=")
            time.sleep(0.2)
            service.process.terminate()
            time.sleep(0.4)
            connection.sendall(b"a+cat")
            with connection.makefile("rb") as answer:
                assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
                assert b"results" in answer.read()
        assert service.wait() == 0


def test_models_that_cannot_be_served_are_named(tmp_path: Path, plain_folder: Path) -> None:
    found = run_process("serve", tmp_path / "none")
    assert (found.returncode, found.stderr.count("\n")) == (1, 1)
    assert "is not a model: train one with lightdxml train" in found.stderr
    damaged = tmp_path / "damaged"
    shutil.copytree(plain_folder, damaged)
    (damaged / "arrays.safetensors").write_bytes(b"nothing")
    found = run_process("serve", damaged, "--port", "0")
    assert found.returncode == 1
    assert "is damaged" in found.stderr.splitlines()[-1]


def test_a_model_of_features_is_refused(tmp_path: Path, documents: Any) -> None:
    folder = tmp_path / "features"
    LightDXML("fast").fit(*documents).save(folder)
    _, service = create_app({"features": folder})
    with pytest.raises(ValueError, match="was trained on features, not on texts: only models of texts can be served"):
        service.models.load()


def test_a_port_that_is_taken_is_named(plain_folder: Path) -> None:
    with running({"pets": plain_folder}) as server:
        found = run_process("serve", plain_folder, "--port", server.port)
    assert (found.returncode, found.stderr) == (
        1, f"error: port {server.port} is taken: choose another one with --port\n",
    )  # fmt: skip


def test_tokens_come_from_a_file_and_must_be_hard_to_guess(plain_folder: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# for the catalog\nthe-token-of-the-catalog\n")
    with serving(plain_folder, "--token-file", tokens) as service:
        assert service.suggest().status_code == 401
        assert service.suggest(headers={"Authorization": "Bearer the-token-of-the-catalog"}).status_code == 200
    for content, reason in (("1234\n", "too short"), ("# none\n", "has no tokens")):
        tokens.write_text(content)
        found = run_process("serve", plain_folder, "--token-file", tokens)
        assert (found.returncode, found.stderr.count("\n")) == (1, 1)
        assert reason in found.stderr


def test_tokens_come_from_the_environment_and_an_empty_one_is_an_error(
    plain_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lightdxml.cli.serve import _tokens

    monkeypatch.setenv("LIGHTDXML_TOKENS", "the-token-of-the-catalog, another-long-token")
    assert _tokens(None) == ("the-token-of-the-catalog", "another-long-token")
    with pytest.raises(ValueError, match="give one of them"):
        _tokens(plain_folder)
    monkeypatch.setenv("LIGHTDXML_TOKENS", "")
    with pytest.raises(ValueError, match="LIGHTDXML_TOKENS has no tokens"):
        _tokens(None)


def test_until_models_are_loaded_the_service_lives_but_is_not_ready(plain_folder: Path, monkeypatch: Any) -> None:
    from lightdxml.serve import registry

    go, load_model = threading.Event(), registry.load_served_model
    monkeypatch.setattr(registry, "load_served_model", lambda *arguments: go.wait(30) and load_model(*arguments))
    with running_unready({"pets": plain_folder}) as url:
        paths = ("/v2/health/live", "/v2/health/ready", "/v2/models/pets/ready", "/v1/projects", "/")
        seen = [requests.get(url + path, timeout=30).status_code for path in paths]
        answer = requests.post(url + "/v1/projects/pets/suggest", data={"text": "a cat"}, timeout=30)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        go.set()
        wait_until(lambda: requests.get(url + "/v2/health/ready", timeout=30).status_code == 200)
    assert seen == [200, 503, 503, 503, 200]


@contextmanager
def running_unready(folders: dict[str, Path]) -> Iterator[str]:
    from lightdxml.serve.server import Server, listen
    from lightdxml.serve.service import ServeOptions

    app, service = create_app(folders, ServeOptions(access_log=False))
    listener = listen("127.0.0.1", 0)
    server = Server(app, service, listener)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        thread.join(60)
        listener.close()


def test_models_are_exchanged_under_load_without_an_error(
    plain_folder: Path, reversed_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pets"
    shutil.copytree(plain_folder, folder)
    statuses: list[int] = []
    stop = threading.Event()
    with running({"pets": folder}) as server:

        def ask() -> None:
            session = requests.Session()
            while not stop.is_set():
                path = server.url + "/v1/projects/pets/suggest"
                statuses.append(session.post(path, data={"text": "a cat"}, timeout=30).status_code)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(10):
            replace_model(folder, [reversed_folder, plain_folder][i % 2])
            assert len(server.service.models.reload()) == 1
        stop.set()
        for thread in threads:
            thread.join()
        assert server.service.models.swaps == 10
    assert len(statuses) > 10
    assert set(statuses) == {200}


def test_ids_of_models_are_their_names_or_given(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two models are called y"):
        parse_models(["a/y", "b/y"])
    with pytest.raises(ValueError, match="has a name that is no id: give it one"):
        parse_models(["my model"])
    (tmp_path / "n=1").mkdir()
    with pytest.raises(ValueError, match="has a name that is no id"):
        parse_models([str(tmp_path / "n=1")])


def test_a_served_model_predicts_what_the_saved_one_does(plain_folder: Path) -> None:
    with running({"pets": plain_folder}) as server:
        found = server.post("/v1/projects/pets/suggest", data={"text": "cat and dog", "limit": 2}).json()["results"]
    assert [one["label"] for one in found] == load(plain_folder).predict("cat and dog", k=2)
