"""The service's own API: all options of prediction, explanations, streams, health and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightdxml import Predictor, __version__
from tests.support.serving import Running, running


def test_models_are_described(server: Running) -> None:
    models = server.get("/api/models").json()["models"]
    assert [(one["id"], one["labels"], one["documents"], one["has_hierarchy"]) for one in models] == [
        ("pets", 3, 48, False), ("animals", 4, 48, True),
    ]  # fmt: skip
    assert server.get("/api/models/animals").json() == models[1]


def test_all_options_of_prediction_are_there(server: Running) -> None:
    predictor = Predictor(server.service.models["animals"].model)
    asked = {"text": "a cat and a dog", "k": 3, "tail": 0.5, "exclude": ["urn:cow"]}
    found = server.post("/api/models/animals/suggest", json=asked).json()
    labels, scores = predictor.rank(["a cat and a dog"], 3, tail=0.5, exclude=["urn:cow"])
    kept = [(j, round(score, 6)) for j, score in zip(labels[0].tolist(), scores[0].tolist(), strict=True) if j >= 0]
    assert [(one["uri"], one["score"]) for one in found["labels"]] == [
        (predictor.model.label(j).id, score) for j, score in kept
    ]
    assert "urn:cow" not in [one["uri"] for one in found["labels"]]
    assert found["version"] == server.service.models["animals"].version


@pytest.mark.parametrize("threshold", [0.3, "auto", "macro-f1", "precision=0.9"])
def test_thresholds_are_those_of_the_predictor(server: Running, threshold: float | str) -> None:
    predictor = Predictor(server.service.models["pets"].model)
    found = server.post("/api/models/pets/suggest", json={"text": "a cat and a dog", "threshold": threshold})
    expected = predictor.predict("a cat and a dog", 10, threshold=threshold)
    assert [one["label"] for one in found.json()["labels"]] == expected


def test_rules_take_uris_names_and_branches(server: Running) -> None:
    def suggested(model: str, **rules: list[str]) -> set[str]:
        answer = server.post(f"/api/models/{model}/suggest", json={"text": "cat dog cow", **rules})
        assert answer.status_code == 200, answer.text
        return {one["label"] for one in answer.json()["labels"]}

    assert suggested("pets", include=["urn:lightdxml:label:cat"]) == {"cat"}
    assert "dog" not in suggested("pets", exclude=["dog"])
    assert "cat" in suggested("animals", include_branch=["animal"])
    refused = server.post("/api/models/animals/suggest", json={"text": "cat", "exclude_branch": ["urn:animal"]})
    assert (refused.status_code, refused.json()["detail"]) == (
        400, "the rules leave no label that could be suggested: include more, or exclude less",
    )  # fmt: skip
    refused = server.post("/api/models/pets/suggest", json={"text": "cat", "include_branch": ["cat"]})
    assert "needs a vocabulary with a hierarchy" in refused.json()["detail"]


def test_requests_with_different_rules_never_share_a_batch(server: Running) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def labels(rule: str) -> set[str]:
        asked = {"text": "cat dog cow", rule: ["cat"]}
        return {one["label"] for one in server.post("/api/models/pets/suggest", json=asked).json()["labels"]}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(labels, ["include", "exclude"] * 20))
    assert all(one == {"cat"} for one in found[::2])
    assert all("cat" not in one for one in found[1::2])


def test_suggestions_show_the_way_to_the_top_of_the_hierarchy(server: Running) -> None:
    asked = {"text": "a cat", "k": 1, "language": "fi"}
    (label,) = server.post("/api/models/animals/suggest", json=asked).json()["labels"]
    assert label["label"] == "kissa"
    assert label["broader"] == [{"uri": "urn:animal", "label": "eläin"}]
    assert label["training_documents"] == 24


def test_explanations_add_up_and_say_where_words_are(server: Running) -> None:
    text = "😀 Purring CAT: a purring cat!"
    answer = server.post("/api/models/pets/explain", json={"text": text, "k": 1}).json()
    (label,) = answer["labels"]
    assert label["label"] == "cat"
    assert label["base"] + sum(word["adds"] for word in label["words"]) == pytest.approx(label["score"], abs=1e-4)
    assert {word["word"] for word in label["words"]} <= set(answer["positions"])
    found = {word: [text[begin:end] for begin, end in some] for word, some in answer["positions"].items()}
    assert (found["cat"], found["purring"]) == (["CAT", "cat"], ["Purring", "purring"])


def test_suggestions_and_explanations_are_of_the_same_labels(server: Running) -> None:
    for options in ({"k": 2, "threshold": 0.3}, {"k": 1}, {"k": 3, "threshold": "auto", "tail": 1.0}):
        asked = {"text": "a cat and a cow", **options}
        suggested, explained = (
            server.post(f"/api/models/pets/{kind}", json=asked).json()["labels"] for kind in ("suggest", "explain")
        )
        assert [(one["uri"], one["score"]) for one in explained] == [(one["uri"], one["score"]) for one in suggested]


def test_lines_get_lines_in_the_same_order(server: Running) -> None:
    documents = [{"id": i, "text": ["a cat", "a dog", "a cow"][i % 3]} for i in range(100)]
    body = "\n".join(map(json.dumps, documents)) + "\n\n"
    answer = server.post(
        "/api/models/pets/suggest-lines?k=1", data=body, headers={"Content-Type": "application/x-ndjson"}
    )
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [(line["id"], line["labels"][0]["label"]) for line in lines] == [
        (i, ["cat", "dog", "cow"][i % 3]) for i in range(100)
    ]


def test_lines_that_cannot_be_read_disturb_no_others(server: Running) -> None:
    lines = [b'{"text": "a cat"}', b"{", b'{"text": 7, "id": 5}', b'"\xff"', b"[" * 100_000, b'{"text": "a dog"}']
    answer = server.post(
        "/api/models/pets/suggest-lines?k=1", data=b"\n".join(lines), headers={"Content-Type": "application/jsonl"}
    )
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert [one.get("error") for one in found] == [
        None, "the line is not JSON", 'the line is not an object with a "text"', "the line is not UTF-8",
        "the line is not JSON", None,
    ]  # fmt: skip
    assert found[-1]["labels"][0]["label"] == "dog"
    assert found[2]["id"] == 5


_STREAM = b"POST /api/models/pets/suggest-lines HTTP/1.1\r\nhost: x\r\ncontent-type: application/jsonl\r\n"


def _lines_of(received: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a chunked response that have labels or an error."""
    return (line for line in received if line.startswith(b"{"))


def test_a_line_is_answered_before_the_next_one_arrives(server: Running) -> None:
    with server.connect() as connection, connection.makefile("rb") as received:
        connection.sendall(_STREAM + b"transfer-encoding: chunked\r\n\r\n")
        found = _lines_of(received)
        for text in (b"a cat", b"a dog"):
            line = b'{"text": "%s"}\n' % text
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            assert text[2:] in next(found)
        connection.sendall(b"0\r\n\r\n")
        assert received.read(3) is not None


def test_a_stream_that_ends_early_loses_no_document(plain_folder: Path) -> None:
    with running({"pets": plain_folder}, timeout=1.0) as server, server.connect() as connection:
        connection.sendall(_STREAM + b'content-length: 1000\r\n\r\n{"text": "a cat"}\n{"text": "a dog"}\n')
        with connection.makefile("rb") as received:
            found = list(_lines_of(received))
    assert [b"cat" in found[0], b"dog" in found[1], b"nothing arrived for 1 seconds" in found[2]] == [True] * 3


def test_a_client_that_waits_for_permission_to_send_gets_it(server: Running) -> None:
    with server.connect() as connection, connection.makefile("rb") as received:
        connection.sendall(_STREAM + b"content-length: 18\r\nexpect: 100-continue\r\n\r\n")
        assert received.readline() == b"HTTP/1.1 100 Continue\r\n"
        connection.sendall(b'{"text": "a cat"}\n')
        assert b"cat" in next(_lines_of(received))


def test_platforms_see_that_the_service_lives_and_is_ready(server: Running) -> None:
    assert server.get("/v2").json()["name"] == "lightdxml"
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/pets/ready"):
        assert server.get(path).status_code == 200
    assert server.get("/v2/models/pets").json()["versions"] == [server.service.models["pets"].version]
    assert server.get("/v2/models/none").status_code == 404


def test_platforms_send_texts_as_tensors(server: Running) -> None:
    asked = {
        "id": "7",
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a cat", "unknown"]}],
        "parameters": {"k": 2},
    }
    answer = server.post("/v2/models/pets/infer", json=asked).json()
    labels, scores = answer["outputs"]
    assert (answer["id"], labels["shape"], scores["shape"]) == ("7", [2, 2], [2, 2])
    assert labels["data"][0] == "urn:lightdxml:label:cat"
    assert labels["data"][2:] == ["", ""]
    assert scores["data"][2:] == [0, 0]


def test_metrics_count_requests_batches_and_models(server: Running) -> None:
    def value(name: str) -> float:
        lines: Iterator[str] = iter(server.get("/metrics").text.splitlines())
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)), 0.0)

    counted = 'lightdxml_requests_total{method="POST",route="/v1/projects/{project_id}/suggest",status="200"}'
    before = value(counted), value("lightdxml_batch_documents_sum")
    server.post("/v1/projects/pets/suggest", data={"text": "a cat"})
    assert (value(counted), value("lightdxml_batch_documents_sum")) == (before[0] + 1, before[1] + 1)
    version = server.service.models["pets"].version
    assert (
        f'lightdxml_model_info{{lightdxml="{__version__}",model="pets",version="{version}"}} 1.0'
        in server.get("/metrics").text
    )
    assert value("lightdxml_ready") == 1


def test_unknown_paths_make_no_new_time_series(server: Running) -> None:
    for i in range(3):
        server.get(f"/made/up/{i}")
        server.post(f"/v1/projects/made-up-{i}/suggest", data={"text": "a cat"})
    assert "made" not in server.get("/metrics").text
