"""Vocabularies: TSV, CSV and SKOS, and what they say about bad input."""

from __future__ import annotations

import gzip
import re
import socket
import urllib.request
from pathlib import Path

import pytest

from lightdxml.data.errors import DataError
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.data.vocabulary_statistics import describe

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <urn:x:> .
:animal a skos:Concept ; skos:prefLabel "animal"@en, "eläin"@fi ; skos:narrower :dog .
:cat a skos:Concept ; skos:prefLabel "cat"@en ; skos:altLabel "house cat"@en, "kitty"@en ; skos:hiddenLabel "kat"@en ;
    skos:broader :animal ; skos:notation "C1" .
:dog a skos:Concept ; skos:prefLabel "dog"@en .
:wolf a skos:Concept ; skos:prefLabel "wolf"@en ; owl:deprecated true .
:nameless a skos:Concept .
"""


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path


def test_tsv_has_uris_labels_and_notations(tmp_path: Path) -> None:
    path = written(tmp_path, "v.tsv.gz", "<urn:a>\tcat\tC1\n\nurn:b\tdog\n")
    concepts = Vocabulary.load(path).concepts
    assert concepts == [Concept("urn:a", {"": ("cat",)}, "C1"), Concept("urn:b", {"": ("dog",)})]


def test_csv_has_a_label_per_language(tmp_path: Path) -> None:
    content = 'uri,label_en,label_fi,notation\nurn:a,cat,kissa,1\n<urn:b>,"dog, domestic",,\n'
    vocabulary = Vocabulary.load(written(tmp_path, "v.csv", content))
    assert [vocabulary.name("urn:a", one) for one in ("en", "fi", "sv")] == ["cat", "kissa", "cat"]
    assert vocabulary["urn:b"].names == {"en": ("dog, domestic",)}
    assert vocabulary.languages == ["en", "fi"]


def test_skos_has_all_names_hierarchy_and_no_deprecated_concepts(tmp_path: Path) -> None:
    vocabulary = Vocabulary.load(written(tmp_path, "v.ttl", TURTLE))
    assert [one.uri for one in vocabulary.concepts] == ["urn:x:animal", "urn:x:cat", "urn:x:dog"]
    assert vocabulary.names("urn:x:cat", "en") == ("cat", "house cat", "kitty", "kat")
    assert vocabulary["urn:x:cat"].notation == "C1"
    assert vocabulary.branch("urn:x:animal") == {"urn:x:animal", "urn:x:cat", "urn:x:dog"}


def test_a_vocabulary_survives_json(tmp_path: Path) -> None:
    vocabulary = Vocabulary.load(written(tmp_path, "v.ttl", TURTLE))
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    for damaged in (None, [1], [{"uri": "a"}], [{"uri": 1, "names": {}}], [{"uri": "a", "names": {"en": [1]}}]):
        with pytest.raises(ValueError, match="its vocabulary has another form"):
            Vocabulary.from_json(damaged)


def test_labels_are_concepts_by_uri_or_by_a_name_that_only_one_concept_has() -> None:
    concepts = [
        Concept("urn:1", {"en": ("bank",)}),
        Concept("urn:2", {"en": ("bank",)}),
        Concept("urn:3", {"en": ("tree",)}),
    ]
    vocabulary = Vocabulary(concepts)
    assert vocabulary.all_labels(["tree", "<urn:1>", "other"]) == (["urn:1", "urn:2", "urn:3", "other"], [2, 0, 3])
    with pytest.raises(ValueError, match="the label 'bank' is the name of urn:1 and urn:2: give URIs as labels"):
        vocabulary.all_labels(["bank"])


def test_a_branch_with_a_cycle_ends() -> None:
    one, other = (Concept(a, {"": (a,)}, broader=(b,)) for a, b in (("a", "b"), ("b", "a")))
    assert Vocabulary([one, other]).branch("a") == {"a", "b"}
    with pytest.raises(ValueError, match="the vocabulary has no concept c"):
        Vocabulary([one, other]).branch("c")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.tsv", "urn:a\n", "line 1: found 'urn:a\\\\n', expected a URI, a label and"),
        (
            "v.tsv",
            "urn:a\tcat\n\nurn:a\tdog\n",
            "line 3: found urn:a, which is in line 1 too, expected each concept once",
        ),
        (
            "v.csv",
            "uri,label\na,b\nc,d\n<a>,e\n",
            "line 4: found a, which is in line 2 too, expected each concept once",
        ),
        ("v.csv", "uri,label_en,label_fi\na,,\n", "line 2: found no label for a"),
        ("v.tsv", "", "no concepts"),
        ("v.tsv", "a b\tcat\n", "expected a URI without spaces"),
        ("v.tsv", "urn:a\t\tC1\n", "line 1: found no label for urn:a"),
        ("v.csv", "id,label\na,b\n", "expected columns named uri and label_en"),
        ("v.csv", "uri,label\na\n", "line 2: found 1 cells"),
        ("v.csv", 'uri,label\na,"b\n', "a malformed line"),
        ("v.ttl", "this is not Turtle", "no valid RDF"),
        ("v.rdf", "<rdf:RDF", "no valid RDF"),
        ("v.rdf", "<!DOCTYPE rdf:RDF SYSTEM 'http://localhost:1/x.dtd'><x/>", "entities and external files"),
        ("v.jsonld", "{", "nothing is fetched"),
        ("v.jsonld", '{"@context": [[{}, ["http://example.org/x"]]], "@id": "urn:a"}', "nothing is fetched"),
        ("v.rdf", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>', "entities and external files"),
        ("v.jsonld", '{"@context": "http://example.org/x", "@id": "urn:a"}', "nothing is fetched"),
        ("v.jsonld", '{"\\u0040context": {"@import": "http://example.org/x"}, "@id": "urn:a"}', "nothing is fetched"),
        ("v.rdf", "<\0x\0/\0>\0", "UTF-16"),
        ("v.nt", "", "no concepts"),
    ],
)
def test_bad_vocabularies_are_refused_in_one_sentence(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        Vocabulary.load(written(tmp_path, name, content))
    assert "\n" not in str(error.value)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.tsv"
    path.write_bytes("urn:a\tkäsi\n".encode("latin-1"))
    with pytest.raises(DataError, match=re.escape("--encoding")):
        Vocabulary.load(path)
    assert Vocabulary.load(path, encoding="latin-1").name("urn:a") == "käsi"


@pytest.mark.parametrize("name", ["v.ttl", "v.rdf", "v.nt"])
def test_rdf_in_another_encoding_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(TURTLE.encode("latin-1"))
    with pytest.raises(DataError, match="found text that is not UTF-8, expected RDF in UTF-8: convert the file"):
        Vocabulary.load(tmp_path / name)


REMOTE = "http://127.0.0.1:9/remote"
CONCEPT_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"
    xmlns:skos="http://www.w3.org/2004/02/skos/core#" xml:base="http://127.0.0.1:9/remote">
  <owl:Ontology rdf:about=""><owl:imports rdf:resource="http://127.0.0.1:9/remote"/></owl:Ontology>
  <skos:Concept rdf:about="urn:x:cat"><skos:prefLabel>cat</skos:prefLabel></skos:Concept></rdf:RDF>"""
CONCEPT_JSON = """{"@context": {"skos": "http://www.w3.org/2004/02/skos/core#", "@base": "http://127.0.0.1:9/remote",
    "@vocab": "http://127.0.0.1:9/remote#"}, "@graph": [{"@id": "urn:x:cat", "@type": "skos:Concept",
    "skos:prefLabel": "cat", "http://www.w3.org/2002/07/owl#imports": {"@id": "http://127.0.0.1:9/remote"}}]}"""
SCOPED_JSON = """{"@context": {"term": {"@id": "urn:t", "@context": "http://127.0.0.1:9/remote"}}, "@id": "urn:a",
    "term": {"http://www.w3.org/2004/02/skos/core#prefLabel": "cat"}}"""


@pytest.mark.parametrize(
    ("name", "content", "is_read"),
    [
        ("v.ttl", f"@base <{REMOTE}> . <> <http://www.w3.org/2002/07/owl#imports> <{REMOTE}> ." + TURTLE, True),
        ("v.n3", f"@base <{REMOTE}> . <> <http://www.w3.org/2002/07/owl#imports> <{REMOTE}> ." + TURTLE, True),
        ("v.trig", f"<{REMOTE}> {{ <{REMOTE}> <http://www.w3.org/2002/07/owl#imports> <{REMOTE}> . }}" + TURTLE, True),
        ("v.rdf", CONCEPT_XML, True),
        ("v.jsonld", CONCEPT_JSON, True),
        ("v.jsonld", CONCEPT_JSON.replace("{", '{"@context": "http://127.0.0.1:9/remote", ', 1), True),
        ("v.jsonld", SCOPED_JSON, False),
        ("v.jsonld", f'{{"@graph": [{{"@id": "urn:a", "@context": "{REMOTE}"}}]}}', False),
        ("v.rdf", f'<?xml-stylesheet href="{REMOTE}"?>' + CONCEPT_XML, True),
    ],
)
def test_nothing_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, is_read: bool
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(urllib.request, "urlopen", lambda *arguments, **_: calls.append(arguments))
    path = written(tmp_path, name, content)
    if is_read:
        assert Vocabulary.load(path).name("urn:x:cat") == "cat"
    else:
        with pytest.raises(DataError, match="nothing is fetched"):
            Vocabulary.load(path)
    assert calls == []


def test_a_cycle_is_noted_and_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = TURTLE + ":animal skos:broader :cat ."
    with caplog.at_level("INFO", "lightdxml"):
        vocabulary = Vocabulary.load(written(tmp_path, "v.ttl", content))
    assert "the hierarchy has a cycle, which does no harm: urn:x:animal is below itself" in caplog.text
    assert vocabulary.branch("urn:x:cat") == {"urn:x:animal", "urn:x:cat", "urn:x:dog"}


def test_vocabularies_and_collections_are_no_concepts(tmp_path: Path) -> None:
    others = (
        ':all a skos:ConceptScheme ; skos:prefLabel "all"@en .'
        ':some a skos:Collection ; skos:prefLabel "some"@en .'
        ':untyped skos:prefLabel "untyped"@en .'
    )
    found = {one.uri for one in Vocabulary.load(written(tmp_path, "v.ttl", TURTLE + others)).concepts}
    assert found == {"urn:x:animal", "urn:x:cat", "urn:x:dog", "urn:x:untyped"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.trig", '@prefix skos: <http://www.w3.org/2004/02/skos/core#> . <urn:g> { <urn:a> skos:prefLabel "cat" . }'),
        ("v.nq", '<urn:a> <http://www.w3.org/2004/02/skos/core#prefLabel> "cat" <urn:g> .\n'),
    ],
)
def test_concepts_in_named_graphs_are_read(tmp_path: Path, name: str, content: str) -> None:
    assert Vocabulary.load(written(tmp_path, name, content)).concepts == [Concept("urn:a", {"": ("cat",)})]


def test_statistics_count_languages_names_and_hierarchy(tmp_path: Path) -> None:
    found = describe(
        Vocabulary.load(written(tmp_path, "v.ttl", TURTLE + ':tom a skos:Concept ; skos:prefLabel "cat" .'))
    )
    assert (found.concepts, found.names, found.notations, found.narrower) == (4, 8, 1, 2)
    assert found.languages == {"en": 3, "": 1, "fi": 1}
    assert (found.ambiguous, found.cycle) == (2, None)


def test_a_name_of_ten_thousand_words_is_cut(tmp_path: Path) -> None:
    path = written(tmp_path, "v.tsv", f"urn:a\t{'word ' * 10_000}\n")
    assert len(Vocabulary.load(path).name("urn:a")) <= 1000


def test_an_unknown_encoding_is_one_sentence(tmp_path: Path) -> None:
    """It once was a traceback."""
    (tmp_path / "v.tsv").write_text("<urn:a>\tcat\n", encoding="utf-8")
    with pytest.raises(ValueError, match="encoding 'latin99' is unknown: common ones are"):
        Vocabulary.load(tmp_path / "v.tsv", encoding="latin99")
