"""Models learn from documents that clients send, while they are served."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
from annif_client import AnnifClient

from lightdxml import LightDXML, Predictor
from lightdxml.learning import journal
from lightdxml.learning.folder import ModelFolder
from lightdxml.persistence.lock import writing
from lightdxml.serve import registry, teacher
from lightdxml.serve.registry import load_served_model
from tests.serve.test_server import serving
from tests.support.serving import Running, running, wait_until

LEARN, ANNIF = "/api/models/pets/learn", "/v1/projects/pets/learn"
HORSE = {"text": "a neighing horse", "labels": ["horse"]}
ANNIF_HORSE = {"text": "a neighing horse", "subjects": [{"uri": "horse"}]}


@pytest.fixture
def folder(kept_folder: Path, tmp_path: Path) -> Path:
    """A model that may be changed."""
    shutil.copytree(kept_folder, tmp_path / "pets")
    return tmp_path / "pets"


@pytest.fixture
def school(folder: Path) -> Iterator[Running]:
    """A server whose model may learn."""
    with running({"pets": folder}, allow_learn=True) as one:
        yield one


class Pause:
    """Lessons that wait until they may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun, self.running, self.most = threading.Event(), 0, 0, 0
        learn = ModelFolder.learn

        def paused(*arguments: Any, **options: Any) -> Any:
            self.begun += 1
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                assert self.go.wait(30)
                return learn(*arguments, **options)
            finally:
                self.running -= 1

        monkeypatch.setattr(ModelFolder, "learn", paused)


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    found = Pause(monkeypatch)
    yield found
    found.go.set()


def teach(server: Running, *documents: dict[str, Any]) -> requests.Response:
    return server.post(LEARN, json={"documents": [*documents]})


def best(server: Running, text: str = "a neighing horse") -> str:
    found = server.post("/v1/projects/pets/suggest", data={"text": text, "limit": 1}).json()["results"]
    return str(found[0]["label"]) if found else ""


def steps(folder: Path) -> int:
    return ModelFolder(folder).journal.step


def test_a_model_learns_a_new_label_and_is_served_at_once(school: Running, folder: Path) -> None:
    before = school.service.models["pets"]
    assert best(school) == ""
    answer = teach(school, HORSE, {"text": "a cat", "title": "horse", "id": "7", "labels": ["cat", "horse", "horse"]})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert {name: found[name] for name in ("model", "step", "labels", "new_labels")} == {
        "model": "pets", "step": 1, "labels": 2, "new_labels": 1,
    }  # fmt: skip
    assert found["seconds"] > 0
    assert found["drift"]["learned"] == 2 / 50
    assert best(school) == "horse"
    assert found["version"] != before.version
    assert found["version"] == school.get("/api/models/pets").json()["version"]
    stored = load_served_model("pets", folder)
    assert found["version"] == stored.version, "a restart changes no version"
    ranked = [Predictor(one.model).rank(["a cat on a horse"], 4) for one in (stored, school.service.models["pets"])]
    for one, other in zip(*ranked, strict=True):
        np.testing.assert_array_equal(one, other)
    assert school.get("/api/models/pets").json()["documents"] == 50


def test_labels_are_taken_by_uri_and_by_name(school: Running) -> None:
    labels = ["urn:lightdxml:label:cat", "cat", "urn:lightdxml:label:red%20rose"]
    found = teach(school, {"text": "a rose cat", "labels": labels}).json()
    assert (found["labels"], found["new_labels"]) == (2, 1)
    assert "red rose" in (school.service.models["pets"].model.label_names or [])


def test_names_of_concepts_are_those_of_the_vocabulary(concept_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(concept_folder, tmp_path / "animals")
    with running({"animals": tmp_path / "animals"}, allow_learn=True) as server:
        document = {"text": "a purring tiger", "labels": ["kissa", "urn:dog"]}
        found = server.post("/api/models/animals/learn", json={"documents": [document]})
        assert found.status_code == 200, found.text
        assert (found.json()["labels"], found.json()["new_labels"]) == (2, 0)


def test_the_client_of_annif_teaches(school: Running) -> None:
    client = AnnifClient(school.url + "/v1/")
    documents = [
        {"text": "it neighs", "metadata": {"title": "horse"}, "document_id": "1", "subjects": [{"uri": "horse"}]},
        {"text": "a purring cat", "subjects": [{"uri": "urn:lightdxml:label:cat", "label": "cat"}]},
    ]
    answer = client.learn("pets", documents)
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.suggest("pets", "it neighs", limit=1)[0]["label"] == "horse"
    with pytest.raises(ValueError, match="there is no project or model 'none'"):
        client.learn("none", documents)


@pytest.mark.parametrize("path", [LEARN, ANNIF])
def test_unless_it_is_allowed_learning_is_refused_before_the_body_is_read(server: Running, path: str) -> None:
    assert server.get("/api/models/pets").json()["can_learn"] is False
    with server.connect() as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
        connection.sendall(head.encode())
        with connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 403 Forbidden\r\n"


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        (LEARN, {"documents": []}, 400, "documents: list should have at least 1 item"),
        (LEARN, {"documents": [HORSE] * 33}, 400, "documents: list should have at most 32 items"),
        (LEARN, {"documents": [HORSE | {"text": " "}]}, 400, "documents.0.text: must not be empty"),
        (LEARN, {"documents": [HORSE | {"labels": []}]}, 400, "documents.0.labels: list should have at least 1 item"),
        (LEARN, {"documents": [HORSE | {"labels": [" "]}]}, 400, "documents.0.labels.0: must not be empty"),
        (LEARN, {"documents": [HORSE | {"label": "x"}]}, 400, "documents.0.label: extra inputs are not permitted"),
        (LEARN, {"documents": [HORSE], "k": 1}, 400, "k: extra inputs are not permitted"),
        (LEARN, {"documents": [HORSE | {"labels": ["x" * 1001]}]}, 400, "at most 1000 characters"),
        (LEARN, {"documents": [HORSE | {"id": "x" * 1001}]}, 400, "documents.0.id: string should have at most 1000"),
        (ANNIF, [ANNIF_HORSE | {"document_id": "x" * 1001}], 400, "0.document_id: string should have at most 1000"),
        (ANNIF, [], 400, "the body: list should have at least 1 item"),
        (ANNIF, {}, 400, "the body: input should be a valid list"),
        (ANNIF, [ANNIF_HORSE] * 33, 400, "the body: list should have at most 32 items"),
        (ANNIF, [{"text": "a horse"}], 400, "0.subjects: field required"),
        (ANNIF, [ANNIF_HORSE | {"subjects": [{"label": "horse"}]}], 400, "0.subjects.0.uri: field required"),
        (ANNIF.replace("pets", "none"), [ANNIF_HORSE], 404, "there is no project or model 'none'"),
    ],
)
def test_bad_lessons_get_one_sentence(taught_nothing: Running, path: str, body: Any, status: int, detail: str) -> None:
    answer = taught_nothing.post(path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json()["detail"]


@pytest.fixture(scope="module")
def taught_nothing(kept_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose model may learn, and does not."""
    folder = tmp_path_factory.mktemp("nothing") / "pets"
    shutil.copytree(kept_folder, folder)
    with running({"pets": folder}, allow_learn=True) as one:
        yield one
    assert steps(folder) == 0


def test_lessons_must_be_json(taught_nothing: Running) -> None:
    # Pages of other sites may send other types without asking first.
    answer = taught_nothing.post(LEARN, data=json.dumps({"documents": [HORSE]}), headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_labels_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    LightDXML("fast", min_df=1).fit(["a cat", "a dog"] * 20, [[1], [2]] * 20).save(tmp_path / "pets")
    with running({"pets": tmp_path / "pets"}, allow_learn=True) as server:
        refused = teach(server, HORSE)
        assert (refused.status_code, refused.json()["detail"]) == (
            400, "the label 'horse' is not a number: the labels of this model are",
        )  # fmt: skip
        assert teach(server, HORSE | {"labels": ["7", "urn:lightdxml:label:1"]}).json()["new_labels"] == 1


def test_lessons_are_given_one_by_one_and_few_may_wait(
    school: Running, folder: Path, pause: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(school.service.teacher._queue, "capacity", 2)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(teach, school, HORSE)
        wait_until(lambda: pause.begun == 1)
        others = [pool.submit(teach, school, HORSE) for _ in range(2)]
        wait_until(lambda: school.service.teacher._queue.waiting == 2)
        for path, body in ((LEARN, {"documents": [HORSE]}), (ANNIF, [ANNIF_HORSE])):
            refused = school.post(path, json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert "too many lessons are waiting" in refused.json()["detail"]
        assert best(school, "a cat") == "cat", "predictions do not wait"
        assert school.get("/api/models/pets/history").json()["entries"] == []
        pause.go.set()
        answers = [one.result() for one in (first, *others)]
    assert [one.status_code for one in answers] == [200] * 3
    assert {one.json()["step"] for one in answers} == {1, 2, 3}
    assert (pause.most, steps(folder)) == (1, 3)


def test_a_lesson_that_has_begun_is_finished_and_one_that_waits_times_out(folder: Path, pause: Pause) -> None:
    with running({"pets": folder}, allow_learn=True, timeout=0.5) as school:
        with school.connect() as connection:
            body = json.dumps({"documents": [HORSE]})
            head = f"POST {LEARN} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
            wait_until(lambda: pause.begun == 1)
        # Now the client is gone.
        waited = teach(school, HORSE)
        assert (waited.status_code, waited.json()["detail"]) == (503, "the request waited too long: try again later")
        pause.go.set()
        wait_until(lambda: best(school) == "horse")
    assert steps(folder) == 1


def test_a_server_that_stops_finishes_the_lesson(folder: Path, pause: Pause, caplog: pytest.LogCaptureFixture) -> None:
    with ThreadPoolExecutor(1) as pool, running({"pets": folder}, allow_learn=True, timeout=1) as school:
        asked = pool.submit(teach, school, HORSE)
        wait_until(lambda: pause.begun == 1)
        # After the time that requests have to end.
        timer = threading.Timer(1.5, pause.go.set)
        timer.start()
    assert asked.exception() is not None or asked.result().status_code == 500
    assert steps(folder) == 1
    assert not [record for record in caplog.records if record.name == "concurrent.futures"]


def test_no_prediction_is_lost_while_a_model_learns(school: Running) -> None:
    statuses: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        session = requests.Session()
        while not stop.is_set():
            path = school.url + "/v1/projects/pets/suggest"
            statuses.append(session.post(path, data={"text": "a cat"}, timeout=30).status_code)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = [teach(school, HORSE | {"labels": [f"horse {i}"]}) for i in range(4)]
    stop.set()
    for thread in threads:
        thread.join()
    assert [one.json()["step"] for one in answers] == [1, 2, 3, 4]
    assert len({one.json()["version"] for one in answers}) == 4
    assert len(statuses) > 10
    assert set(statuses) == {200}


def test_what_was_learned_here_is_not_loaded_again_and_what_was_learned_elsewhere_is(
    school: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def load_again(name: str, place: Path) -> registry.ServedModel:
        loaded.append(name)
        return load_served_model(name, place)

    monkeypatch.setattr(registry, "load_served_model", load_again)
    teach(school, HORSE)
    assert school.service.models.reload() == []
    assert loaded == []
    ModelFolder(folder).learn(["a bleating sheep"], [["sheep"]])
    assert best(school, "a bleating sheep") == ""
    assert [one.id for one in school.service.models.reload()] == loaded == ["pets"]
    assert best(school, "a bleating sheep") == "sheep"
    # The next lesson goes on from there, also if nobody has reloaded the model.
    ModelFolder(folder).learn(["a clucking hen"], [["hen"]])
    assert teach(school, HORSE).json()["step"] == 4
    assert best(school, "a clucking hen") == "hen"
    assert school.service.models.reload() == []


def test_the_history_tells_what_was_learned(school: Running) -> None:
    teach(school, HORSE)
    teach(school, HORSE | {"id": "1"}, {"text": "a cat", "labels": ["cat"]})
    found = school.get("/api/models/pets/history").json()
    assert (found["model"], found["version"]) == ("pets", school.service.models["pets"].version)
    assert [(one["step"], one["kind"], one["figures"]["documents"]) for one in found["entries"]] == [
        (1, "learn", 1), (2, "learn", 2),
    ]  # fmt: skip
    assert found["drift"]["documents"] == 3
    latest = school.get("/api/models/pets/history?limit=1").json()
    assert latest["entries"] == found["entries"][1:]
    assert school.get("/api/models/none/history").status_code == 404


def test_metrics_count_lessons_and_documents(school: Running) -> None:
    teach(school, HORSE, HORSE)
    teach(school, HORSE | {"labels": []})
    text = school.get("/metrics").text
    assert 'lightdxml_lessons_total{model="pets"} 1.0' in text
    assert 'lightdxml_learned_documents_total{model="pets"} 2.0' in text
    assert "lightdxml_model_reloads_total 0.0" in text


def test_the_command_allows_learning_to_its_own_page_only(folder: Path, tmp_path: Path) -> None:
    with serving(folder, "--allow-learn", "--no-access-log") as service:
        elsewhere = {"Origin": "https://example.org"}
        answer = requests.post(service.url + LEARN, json={"documents": [HORSE]}, headers=elsewhere, timeout=30)
        assert answer.status_code == 200
        asked = elsewhere | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        assert requests.options(service.url + LEARN, headers=asked, timeout=30).status_code == 400
        assert service.suggest("a neighing horse").json()["results"][0]["label"] == "horse"
        assert service.stop() == 0
    assert steps(folder) == 1


def test_a_model_that_cannot_be_replaced_cannot_learn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lightdxml.cli import serve

    serve._check_writable([folder])
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match=r"pets cannot learn: .* is not writable"):
        serve._check_writable([folder])


def test_a_service_that_does_not_learn_loads_no_scipy(plain_folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lightdxml.serve.app import create_app;"
        f"create_app({{'pets': Path({str(plain_folder)!r})}})[1].models.load();"
        "print({'scipy.sparse', 'lightdxml.learning.folder'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_a_model_whose_first_label_was_retired_is_served_and_learns(folder: Path) -> None:
    ModelFolder(folder).retire(["cat"])
    with running({"pets": folder}, allow_learn=True) as school:
        answer = teach(school, HORSE)
        assert (answer.status_code, answer.json()["step"]) == (200, 2)
        assert best(school) == "horse"


def test_a_model_with_one_label_left_is_served(folder: Path) -> None:
    ModelFolder(folder).retire(["cat", "dog"])
    assert load_served_model("pets", folder).model.n_labels == 3


def test_a_lesson_that_is_on_the_disk_is_no_error(
    school: Running, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ValueError("no warmth")

    monkeypatch.setattr(registry, "_warm_up", fail)
    assert teach(school, HORSE).status_code == 200
    assert best(school) == "horse"
    assert "model pets could not be warmed up: no warmth" in caplog.text
    assert steps(folder) == 1


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("lightdxml.model.store.save", fail)


def test_what_is_wrong_with_the_folder_is_no_fault_of_the_client(
    school: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, reason in (
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)), "No space left on device"),
        (ValueError(f"{folder} cannot be written ({folder.parent} is read-only): choose another folder"), "the log of"),
    ):
        fail_with(monkeypatch, error)
        assert_no_path(teach(school, HORSE), 503, reason, folder)
    monkeypatch.undo()
    learn = journal.apply

    def replaced(*arguments: Any) -> Any:
        # By a training, which waits for nobody.
        (folder / "manifest.json").touch()
        return learn(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(journal, "apply", replaced)
        assert_no_path(teach(school, HORSE), 409, "the model pets was changed meanwhile: try again", folder)
    assert teach(school, HORSE).status_code == 200


def assert_no_path(answer: requests.Response, status: int, reason: str, folder: Path) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert reason in answer.json()["detail"]
    assert str(folder.parent) not in answer.text


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_folder_that_cannot_be_read_is_said_so(school: Running, folder: Path, how: str) -> None:
    if how == "gone":
        shutil.rmtree(folder)
    else:
        (folder / "learning" / "journal.json").write_text("{")
    history = school.get("/api/models/pets/history")
    for answer in (teach(school, HORSE), history):
        assert_no_path(answer, 503, "the folder of the model pets cannot be read or written now", folder)
    assert best(school, "a cat") == "cat"


def test_a_lesson_does_not_wait_without_end_for_another_process(
    school: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher, "_PATIENCE", 0.1)
    with writing(folder):
        answer = teach(school, HORSE)
    assert_no_path(answer, 503, "the model pets is being changed by another process: try again later", folder)
    assert teach(school, HORSE).status_code == 200


def test_a_document_may_have_no_label_of_a_model_without_names() -> None:
    trained = LightDXML("fast").fit(["a cat", "a dog"] * 20, np.eye(2)[[0, 1] * 20])
    assert teacher._labels_for(trained.model_, []) == []


def test_a_server_stops_although_another_process_never_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "_PATIENCE", 0.5)
    with ThreadPoolExecutor(1) as pool, writing(folder), running({"pets": folder}, allow_learn=True) as school:
        asked = pool.submit(teach, school, HORSE)
        wait_until(lambda: school.service.teacher._queue._busy)
    assert asked.exception() is not None or asked.result().status_code == 503
    assert steps(folder) == 0
