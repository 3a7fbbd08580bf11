"""Annif's clients talk to the service unchanged."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from annif_client import AnnifClient

from lightdxml import Predictor
from lightdxml.serve.schemas import MAX_DOCUMENTS
from tests.support.serving import Running


@pytest.fixture
def client(server: Running) -> AnnifClient:
    return AnnifClient(server.url + "/v1/")


def test_the_client_of_annif_lists_and_shows_projects(client: AnnifClient) -> None:
    assert set(client.api_info) == {"title", "version"}
    assert [project["project_id"] for project in client.projects] == ["pets", "animals"]
    project = client.get_project("animals")
    assert project["backend"] == {"backend_id": "lightdxml"}
    assert project["vocab"] == {"vocab_id": "animals", "languages": ["en", "fi"], "size": 4, "loaded": True}
    assert (project["language"], project["is_trained"]) == ("en", True)


def test_the_client_of_annif_gets_what_the_model_predicts(client: AnnifClient, server: Running) -> None:
    found = client.suggest("animals", "the cat purrs", limit=2)
    model = server.service.models["animals"].model
    labels, scores = Predictor(model).rank(["the cat purrs"], 2)
    expected = [
        {"uri": label.id, "label": label.name, "notation": label.notation or None, "score": round(score, 6)}
        for label, score in zip(map(model.label, labels[0].tolist()), scores[0].tolist(), strict=True)
    ]
    assert found == expected
    assert found[0]["uri"] == "urn:cat"
    assert found[0]["notation"] == "50"


def test_the_client_of_annif_reads_files_and_applies_a_threshold(client: AnnifClient) -> None:
    assert [one["label"] for one in client.suggest("pets", io.StringIO("a barking dog"), threshold=0.5)] == ["dog"]
    assert client.suggest("pets", "a barking dog", limit=0) == []


def test_the_client_of_annif_asks_about_many_documents(client: AnnifClient) -> None:
    documents = [{"text": "a cat", "document_id": "one"}, {"text": "a dog"}, {"text": ""}]
    found = client.suggest_batch("pets", documents, limit=1)
    assert [one["document_id"] for one in found] == ["one", None, None]
    assert [[label["label"] for label in one["results"]] for one in found] == [["cat"], ["dog"], []]
    assert found[0]["results"] == client.suggest("pets", "a cat", limit=1)


def test_the_client_of_annif_explains_an_unknown_project(client: AnnifClient) -> None:
    asked: list[Callable[[], Any]] = [
        lambda: client.get_project("none"),
        lambda: client.suggest("none", "a cat"),
        lambda: client.suggest_batch("none", [{"text": "a cat"}]),
        lambda: client.learn("none", [{"text": "a cat", "subjects": [{"uri": "urn:cat"}]}]),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match="there is no project or model 'none': GET /v1/projects lists them"):
            ask()


def test_learning_is_forbidden_unless_it_is_allowed(server: Running) -> None:
    answer = server.post("/v1/projects/pets/learn", json=[{"text": "a cat", "subjects": [{"uri": "urn:cat"}]}])
    assert answer.status_code == 403
    assert "does not allow" in answer.json()["detail"]


def test_the_client_of_annif_detects_languages(client: AnnifClient) -> None:
    found = client.detect_language("the cat sleeps on the sofa", ["fi", "en"])["results"]
    assert found[0] == {"language": "en", "score": 1.0}
    assert {one["language"] for one in found} == {"en", "fi", None}


def test_an_empty_language_is_no_language(server: Running) -> None:
    texts = {"text": "the cat purrs", "limit": "1"}
    answers = {
        language: server.post("/v1/projects/animals/suggest", data=texts | {"language": language}).json()["results"]
        for language in ("", "en", "fi")
    }
    assert answers[""] == answers["en"]
    assert [answers[language][0]["label"] for language in ("en", "fi")] == ["cat", "kissa"]
    refused = server.post("/v1/projects/animals/suggest", data=texts | {"language": "sv"})
    assert (refused.status_code, refused.json()["detail"]) == (
        400, "language 'sv' is not one of the vocabulary's: en, fi",
    )  # fmt: skip


def test_a_title_in_the_metadata_counts(server: Running) -> None:
    form = server.post("/v1/projects/pets/suggest", data={"text": "an animal", "metadata_title": "cat", "limit": 1})
    batch = server.post(
        "/v1/projects/pets/suggest-batch?limit=1",
        json={"documents": [{"text": "an animal", "metadata": {"title": "cat", "year": 1999}}]},
    )
    assert form.json()["results"] == batch.json()[0]["results"]
    assert form.json()["results"][0]["label"] == "cat"


def test_labels_without_a_uri_get_one(server: Running) -> None:
    found = server.post("/v1/projects/pets/suggest", data={"text": "a cat", "limit": 1}).json()["results"]
    assert found[0]["uri"] == "urn:lightdxml:label:cat"


def test_other_sites_may_ask(server: Running) -> None:
    origin = {"Origin": "https://example.org"}
    answer = server.post("/v1/projects/pets/suggest", data={"text": "a cat"}, headers=origin)
    assert answer.headers["access-control-allow-origin"] == "*"
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    assert server.service.options.origins == ("*",)
    import requests

    preflight = requests.options(server.url + "/v1/projects/pets/suggest-batch", headers=asked, timeout=30)
    assert preflight.status_code == 200
    assert "POST" in preflight.headers["access-control-allow-methods"]


def test_the_framework_and_the_fast_path_give_the_same_answer(server: Running) -> None:
    for form in ({"text": "a cat", "limit": "2"}, {"text": ""}, {"limit": "2"}, {"text": "a cat", "limit": "x"}):
        fast = server.post("/v1/projects/pets/suggest", data=form)
        slow = server.post("/v1/projects/pets/suggest", data=form, headers={"Origin": "https://example.org"})
        assert (fast.status_code, fast.text) == (slow.status_code, slow.text)
        assert fast.headers["content-type"] == slow.headers["content-type"]
        assert fast.headers["cache-control"] == slow.headers["cache-control"] == "no-store"


def test_a_document_gets_the_same_answer_alone_and_in_a_batch(server: Running) -> None:
    texts = [f"{word} {'and a dog' * (i % 2)}" for i, word in enumerate(["cat", "cow", "a barking dog", "none"] * 8)]
    documents = [{"text": text, "metadata": {"title": "cow" * (i % 3 == 0)}} for i, text in enumerate(texts)]
    assert len(documents) == MAX_DOCUMENTS
    batch = server.post("/v1/projects/pets/suggest-batch?limit=3", json={"documents": documents}).json()
    for document, found in zip(documents, batch, strict=True):
        alone = server.post("/v1/projects/pets/suggest-batch?limit=3", json={"documents": [document]}).json()
        assert alone[0]["results"] == found["results"]
