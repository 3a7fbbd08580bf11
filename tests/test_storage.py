"""Models on disk: what is saved comes back, what is damaged is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from safetensors.numpy import load_file
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, arrays, load, shortlist, storage
from lightdxml.compression import compressed
from lightdxml.kernels import sketches
from tests.processor import kept
from tests.training.test_cycle import SMALL, topics

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 10
NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 10


def write(folder: Path, name: str, content: bytes) -> None:
    """Put a file into a model as whoever made the model would have: with its checksum."""
    (folder / name).write_bytes(content)
    if name != "manifest.json":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its own checksum."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(content | {"sha256": seal}))


@pytest.fixture(scope="module")
def trained() -> LightDXML:
    return LightDXML(**SMALL).fit(TEXTS, NAMES)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("everywhere", lambda a: np.array([5], dtype=np.int32), "not in its index"),
        ("labels", lambda a: a[:0], "shape"),
        ("labels", lambda a: a[::-1].copy(), "ascending"),
        ("classifier", lambda a: a * np.nan, "NaN"),
        ("classifier", lambda a: a.astype(np.float64), "described wrongly"),
        ("word_vectors", lambda a: a[:, 1:].copy(), "shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, name: str, change: Any, message: str) -> None:
    folder = tmp_path / "model"
    LightDXML(**SMALL).fit(TEXTS, NAMES).save(folder)
    arrays = load_file(folder / "arrays.safetensors")
    arrays[name] = change(arrays[name])
    write(folder, "arrays.safetensors", safetensors.numpy.save(arrays))
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.mark.parametrize("settings", [{}, {"relu": True, "residual": True, "frequent_labels": 2}], ids=str)
def test_a_saved_model_predicts_the_same_in_a_new_process(tmp_path: Path, settings: dict[str, Any]) -> None:
    texts = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 10
    labels = [["cat, 🐈"], ["dog\n"], ["cat, 🐈", "dog\n"], []] * 10
    trained = LightDXML(**(SMALL | settings)).fit(texts, labels)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(texts, k=2) == trained.predict(texts, k=2)
    assert again.model_.config == trained.model_.config
    assert again.config() == trained.model_.config
    program = (
        "import sys, numpy as np; from lightdxml import load\n"
        "labels, scores = load(sys.argv[1]).rank(sys.argv[2:], 2)\n"
        "sys.stdout.write(labels.tobytes().hex() + ' ' + scores.tobytes().hex())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model"), *texts]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert out == " ".join(array.tobytes().hex() for array in trained.rank(texts, 2))


def test_a_model_folder_is_replaced_whole_and_nothing_else_is(tmp_path: Path) -> None:
    X, Y = topics(60)
    trained = LightDXML(**SMALL).fit(X, Y)
    trained.save(tmp_path / "model")
    trained.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("important")
    with pytest.raises(ValueError, match="holds something that is no model"):
        trained.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "important"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{", "is damaged"),
        ("manifest.json", b'{"format": 99}', "update lightdxml"),
        ("manifest.json", None, "is no model"),
        ("arrays.safetensors", b"x" * 100, "is damaged"),
        ("arrays.safetensors", None, "is damaged"),
        ("manifest.json", b"[1]", "names no format"),
        ("manifest.json", b'{"format": 1}', "train the model again"),
        ("label_names.json", b'["a"]', "1 label names for 2 labels"),
        ("label_names.json", b'{"a": 1}', "no list of names"),
        ("label_names.json", None, "is damaged"),
        ("vocabulary.json", b'["a"]', "do not fit together"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    folder = tmp_path / "model"
    LightDXML(**SMALL).fit(["a cat", "a dog", "the cat", "the dog"], [["c"], ["d"], ["c"], ["d"]]).save(folder)
    (folder / name).unlink()
    if content is not None:
        write(folder, name, content)
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.mark.parametrize("name", ["arrays.safetensors", "label_names.json", "vocabulary.json", "history.json"])
@pytest.mark.parametrize("change", ["missing", "cut", "altered"])
def test_every_file_is_checked(trained: LightDXML, tmp_path: Path, name: str, change: str) -> None:
    trained.save(tmp_path / "model")
    path = tmp_path / "model" / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if change == "cut":
        path.write_bytes(content[:-1])
    elif change == "altered":
        content[-3] ^= 1
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"is damaged .*{name}.*copy or train it again"):
        load(tmp_path / "model")


def test_a_manifest_cannot_name_files_elsewhere(trained: LightDXML, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    manifest["files"]["../secret"] = {"bytes": 1, "sha256": "00"}
    write_manifest(tmp_path / "model", manifest)
    with pytest.raises(ValueError, match=r"names a file '\.\./secret'"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b"{",
        b'{"labels": {"dtype": "I32", "shape": [1000000000000], "data_offsets": [0, 4]}}',
        b'{"labels": {"dtype": "I32", "shape": [-1], "data_offsets": [4, 0]}}',
        b'{"labels": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"labels": {"dtype": "I32", "shape": [4], "data_offsets": [0, 16]}, "labels2": 5}',
    ],
)
def test_a_header_that_lies_is_refused(trained: LightDXML, tmp_path: Path, header: bytes) -> None:
    trained.save(tmp_path / "model")
    write(tmp_path / "model", "arrays.safetensors", len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")
    write(tmp_path / "model", "arrays.safetensors", (1 << 62).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")


def test_arrays_are_mapped_and_half_as_large(trained: LightDXML, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model").model_
    assert again.classifier.dtype == again.encoder.vectors.dtype == np.float16
    assert isinstance(again.classifier.base, np.memmap) or isinstance(again.classifier, np.memmap)
    assert not again.classifier.flags.writeable


def test_float32_is_kept_where_asked_for_and_where_float16_cannot_hold_it(tmp_path: Path) -> None:
    X, Y = topics(60)
    wide = LightDXML(**SMALL, precision="float32").fit(X, Y)
    wide.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.classifier.dtype == np.float32
    np.testing.assert_array_equal(again.rank(X)[1], wide.rank(X)[1])
    vectors = np.full((42, 16), 1e5, dtype=np.float32)
    assert LightDXML(**SMALL, vectors=vectors).fit(X, Y).model_.encoder.vectors.dtype == np.float32


def test_what_rounding_costs_is_in_the_history() -> None:
    X, Y = topics(60)
    (entry,) = [entry for entry in LightDXML(**SMALL).fit(X, Y).history_ if entry["phase"] == "rounding"]
    assert entry["precision"] == "float16"
    assert set(entry["before"]) == set(entry["after"])
    wide = LightDXML(**SMALL, precision="float32").fit(X, Y)
    (exact,) = [entry for entry in wide.history_ if entry["phase"] == "rounding"]
    assert exact["before"] == exact["after"]


def check_refused(model: LightDXML, folder: Path, name: str, change: Any, message: str) -> None:
    """Check that a stored model with one array changed is refused with this message."""
    model.save(folder)
    arrays = load_file(folder / "arrays.safetensors")
    arrays[name] = change(arrays[name])
    write(folder, "arrays.safetensors", safetensors.numpy.save(arrays))
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.fixture(scope="module")
def graph_model() -> LightDXML:
    X, Y = topics(200, labels=60)
    return LightDXML(**SMALL, index="hnsw").fit(X, Y)


def test_a_stored_graph_is_searched_as_the_built_one(graph_model: LightDXML, tmp_path: Path) -> None:
    X, _ = topics(50, labels=60, seed=3)
    graph_model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.shortlist.kind == "hnsw"
    for found, expected in zip(again.rank(X), graph_model.rank(X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("graph_levels", lambda a: a * 0, "levels that cannot be"),
        ("graph_levels", lambda a: a + 1, "not there"),
        ("graph_neighbours", lambda a: np.where(a >= 0, 60, a).astype(np.int32), "not there"),
        ("graph_neighbours", lambda a: a - 1, "not there"),
        ("graph_entry", lambda a: a - 61, "starts from"),
        ("graph_entry", lambda a: np.zeros(2, dtype=np.int32), "shape"),
    ],
)
def test_a_graph_that_leads_astray_is_refused(
    graph_model: LightDXML, tmp_path: Path, name: str, change: Any, message: str
) -> None:
    check_refused(graph_model, tmp_path / "model", name, change, message)


def test_a_link_to_a_label_below_its_level_is_refused() -> None:
    links = shortlist._LINKS
    neighbours = np.full(2 * links + 3 * links, -1, dtype=np.int32)
    neighbours[links * 4] = 0
    graph = shortlist.Graph(np.array([1, 2], dtype=np.int32), neighbours, entry=1)
    with pytest.raises(ValueError, match="not on their level"):
        shortlist.check_graph(graph, 2)


@pytest.fixture(scope="module")
def clustered_model() -> LightDXML:
    X, Y = topics(200, labels=60)
    return LightDXML(**SMALL, index="ivf").fit(X, Y)


def test_a_stored_inverted_file_is_searched_as_the_built_one(clustered_model: LightDXML, tmp_path: Path) -> None:
    X, _ = topics(50, labels=60, seed=3)
    clustered_model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.shortlist.kind == "ivf"
    for found, expected in zip(again.rank(X), clustered_model.rank(X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cluster_of", lambda a: a - 1, "clusters that are not there"),
        ("cluster_of", lambda a: a + 60, "clusters that are not there"),
        ("cluster_of", lambda a: a[:-1].copy(), "shape"),
        ("cluster_of", lambda a: a.astype(np.int64), "type"),
        ("cluster_probes", lambda a: a * 0, "looks into 0"),
        ("cluster_probes", lambda a: a + 60, "looks into"),
        ("cluster_probes", lambda a: np.zeros(2, dtype=np.int32), "shape"),
        ("cluster_centres", lambda a: a[:0].copy(), "clusters that are not there"),
        ("cluster_centres", lambda a: a[:, :-1].copy(), "shape"),
        ("cluster_centres", lambda a: a * np.float32(np.nan), "NaN"),
    ],
)
def test_an_inverted_file_that_leads_astray_is_refused(
    clustered_model: LightDXML, tmp_path: Path, name: str, change: Any, message: str
) -> None:
    check_refused(clustered_model, tmp_path / "model", name, change, message)


@pytest.fixture(scope="module")
def sketched_model() -> LightDXML:
    if not sketches.AVAILABLE:
        pytest.skip("this processor cannot look bytes up")
    X, Y = topics(200, labels=60)
    return LightDXML(**SMALL, index="sketch").fit(X, Y)


@pytest.mark.parametrize("verify", [True, False])
def test_stored_sketches_are_searched_as_those_that_were_made(
    sketched_model: LightDXML, tmp_path: Path, verify: bool
) -> None:
    X, _ = topics(50, labels=60, seed=3)
    sketched_model.save(tmp_path / "model")
    again = load(tmp_path / "model", verify=verify)
    assert again.model_.shortlist.kind == "sketch"
    for found, expected in zip(again.rank(X), sketched_model.rank(X), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_only_models_with_sketches_have_their_format(
    sketched_model: LightDXML, clustered_model: LightDXML, tmp_path: Path
) -> None:
    """Versions before them read all others."""
    other = copy.copy(sketched_model)
    other.model_ = compressed(sketched_model.model_, index="exact")
    # Versions before do not know the setting either.
    for model, expected in ((sketched_model, 6), (other, 6), (clustered_model, 4)):
        model.save(tmp_path / "model")
        assert json.loads((tmp_path / "model" / "manifest.json").read_text("utf-8"))["format"] == expected


def test_a_loaded_model_with_sketches_can_be_copied(sketched_model: LightDXML, tmp_path: Path) -> None:
    X, _ = topics(50, labels=60, seed=3)
    sketched_model.save(tmp_path / "model")
    for found, expected in zip(copy.deepcopy(load(tmp_path / "model")).rank(X), sketched_model.rank(X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sketch_places", lambda a: a + 1, "not there, or of some twice"),
        ("sketch_places", lambda a: a * 0, "not there, or of some twice"),
        ("sketch_places", lambda a: a[:-1].copy(), "shape"),
        ("sketch_candidates", lambda a: a * 0, "compares 0"),
        ("sketch_candidates", lambda a: a + 60, "compares"),
        ("sketch_signs", lambda a: a[:, :-1].copy(), "shape"),
        ("sketch_signs", lambda a: a.astype(np.int32), "type"),
        ("sketch_codes", lambda a: a[:-1].copy(), "shape"),
        ("sketch_codes", lambda a: a.astype(np.uint8), "type"),
        ("sketch_scales", lambda a: a * np.float32(np.nan), "NaN"),
        ("sketch_code_scales", lambda a: a[1:].copy(), "shape"),
        ("sketch_code_shifts", lambda a: a[1:].copy(), "shape"),
    ],
)
def test_sketches_that_lead_astray_are_refused(
    sketched_model: LightDXML, tmp_path: Path, name: str, change: Any, message: str
) -> None:
    check_refused(sketched_model, tmp_path / "model", name, change, message)


@pytest.mark.parametrize("index", kept("exact", "sketch", "ivf"))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_document_gets_what_a_batch_gets_even_among_equals(k: int, index: Any) -> None:
    """Labels that always occur together have equal embeddings: which of them are candidates must not differ."""
    X, Y = topics(100)
    twins = csr_matrix(np.repeat(Y.toarray(), 3, axis=1))
    trained = LightDXML(**(SMALL | {"k": k}), index=index).fit(X, twins)
    labels, scores = trained.rank(X, k)
    for i in range(X.shape[0]):
        alone = trained.rank(X[i], k)
        np.testing.assert_array_equal(alone[0][0], labels[i])
        np.testing.assert_array_equal(alone[1][0], scores[i])


@pytest.mark.parametrize("name", ["format-2-texts", *(f"format-{n}-features" for n in range(2, 7))])
def test_a_model_that_an_earlier_version_wrote_predicts_as_it_did(name: str) -> None:
    """The folders in tests/models stay as they are: a new format gets folders of its own beside them."""
    folder = Path(__file__).parent / "models"
    expected = json.loads((folder / f"{name}.json").read_text())
    X: Any = TEXTS[:4] if name.endswith("texts") else topics(60)[0][:4]
    labels, scores = load(folder / name).rank(X, len(expected["labels"][0]))
    assert labels.tolist() == expected["labels"]
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-5)


def test_label_numbers_that_wrap_around_are_refused(trained: LightDXML, tmp_path: Path) -> None:
    """Differences of int32 wrap around: these once passed as ascending, and led compiled code out of bounds."""
    trained.save(tmp_path / "model")
    arrays = load_file(tmp_path / "model" / "arrays.safetensors")
    numbers = np.array([0, 2_000_000_000, -2_000_000_000, 1], dtype=np.int32)
    arrays["labels"], arrays["label_embeddings"] = numbers, np.zeros((4, SMALL["D"]), dtype=np.float16)
    write(tmp_path / "model", "arrays.safetensors", safetensors.numpy.save(arrays))
    with pytest.raises(ValueError, match="not ascending numbers"):
        load(tmp_path / "model")


def test_a_graph_with_more_levels_than_faiss_has_room_for_is_refused() -> None:
    levels = np.array([7, 1], dtype=np.int32)
    neighbours = np.full(int(shortlist._first_links(levels)[-1]), -1, dtype=np.int32)
    with pytest.raises(ValueError, match="levels that cannot be"):
        shortlist.check_graph(shortlist.Graph(levels, neighbours, entry=0), 2)


@pytest.mark.parametrize("name", ["arrays.safetensors.bak", "src"])
def test_a_folder_with_a_manifest_of_something_else_is_not_replaced(
    trained: LightDXML, tmp_path: Path, name: str
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"name": "my web app", "format": 2}')
    with pytest.raises(ValueError, match="no model"):
        trained.save(tmp_path / "app")
    trained.save(tmp_path / "model")
    (tmp_path / "model" / name).write_text("mine")
    with pytest.raises(ValueError, match=f"no model \\({name}\\)"):
        trained.save(tmp_path / "model")
    assert (tmp_path / "model" / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_documents": float("inf")}, "documents"),
        ({"n_documents": -1}, "documents"),
        ({"metrics": {"P@1": 10**400}}, ""),
    ],
)
def test_a_manifest_of_odd_numbers_is_refused(
    trained: LightDXML, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    trained.save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    write_manifest(tmp_path / "model", manifest | change)
    with pytest.raises(ValueError, match=f"is damaged .*{message}"):
        load(tmp_path / "model")


@pytest.mark.parametrize("content", ["5", "[1]", '{"a": 1}', "null"])
def test_a_history_of_another_form_is_refused(trained: LightDXML, tmp_path: Path, content: str) -> None:
    trained.save(tmp_path / "model")
    write(tmp_path / "model", "history.json", content.encode())
    with pytest.raises(ValueError, match="no list of phases"):
        load(tmp_path / "model")


def test_a_manifest_that_was_altered_is_refused(trained: LightDXML, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"beta": 0.123}))
    with pytest.raises(ValueError, match=r"manifest\.json was altered"):
        load(tmp_path / "model")


def test_settings_of_another_version_are_named(trained: LightDXML, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    manifest["config"]["bxta"] = manifest["config"].pop("beta")
    write_manifest(tmp_path / "model", manifest)
    with pytest.raises(ValueError, match="not those of this format: beta, bxta"):
        load(tmp_path / "model")


def unlisted(folder: Path, name: str) -> None:
    """Leave a file out of a manifest, as whoever made the model could have."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"][name]
    write_manifest(folder, manifest)


@pytest.mark.parametrize("name", ["history.json", "vocabulary.json", "arrays.safetensors"])
def test_a_file_that_the_manifest_does_not_name_is_not_read(trained: LightDXML, tmp_path: Path, name: str) -> None:
    trained.save(tmp_path / "model")
    unlisted(tmp_path / "model", name)
    with pytest.raises(ValueError, match=f"is damaged .its manifest names no {name}"):
        load(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("name", ["history.json", "vocabulary.json", "manifest.json", "arrays.safetensors"])
def test_pipes_and_devices_in_place_of_a_models_files_are_not_read(
    trained: LightDXML, tmp_path: Path, name: str
) -> None:
    """Reading a pipe waits for ever, reading /dev/zero until memory is full."""
    for kind, make in (("pipe", os.mkfifo), ("device", lambda path: path.symlink_to("/dev/zero"))):
        folder = tmp_path / kind
        trained.save(folder)
        (folder / name).unlink()
        make(folder / name)
        with pytest.raises(ValueError, match=r"missing|is no model|no file"):
            load(folder)
        with pytest.raises(ValueError, match=r"no file|no list|damaged|no model"):
            storage.read_json(folder / name)
        if name == "manifest.json":
            with pytest.raises(ValueError, match="holds something that is no model"):
                trained.save(folder)


def test_names_made_to_fill_memory_are_not_read(trained: LightDXML, tmp_path: Path) -> None:
    trained.save(tmp_path / "model")
    write(tmp_path / "model", "label_names.json", json.dumps(["x" * 2_000_000, "y"]).encode())
    with pytest.raises(ValueError, match=r"label_names\.json has more than \d+ bytes"):
        load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"history\.json has more than 10 bytes"):
        storage.read_json(tmp_path / "model" / "history.json", 10)


def test_a_model_is_on_the_disk_before_the_one_before_it_is_removed(
    trained: LightDXML, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints too are removed once it is saved: a power cut must then find all of it."""
    happened: list[tuple[str, str]] = []
    remove = shutil.rmtree

    def noted(path: Path, **_: Any) -> None:
        happened.append(("remove", path.name))
        remove(path)

    monkeypatch.setattr(storage, "sync", lambda path: happened.append(("sync", path.name)))
    monkeypatch.setattr(shutil, "rmtree", noted)
    for _ in range(2):
        happened.clear()
        trained.save(tmp_path / "model")
        assert {name for what, name in happened if what == "sync"} >= {
            "arrays.safetensors", "history.json", "label_names.json", "manifest.json", "vocabulary.json", tmp_path.name,
        }  # fmt: skip
    # The folder itself under the name in which it is written, then the one that holds it, then the old one goes.
    assert [what for what, _ in happened[-3:]] == ["sync", "sync", "remove"]
    assert happened[-2] == ("sync", tmp_path.name)


def test_a_model_in_new_folders_is_on_the_disk_with_them(
    trained: LightDXML, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(storage, "sync", synced.append)
    trained.save(tmp_path / "a" / "b" / "model")
    assert synced[-3:] == [tmp_path / "a" / "b", tmp_path / "a", tmp_path]


def test_a_model_is_exchanged_for_another_at_once_where_the_system_can(
    trained: LightDXML, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    if not storage._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system cannot")
    trained.save(tmp_path / "model")

    def refuse(*_: Any) -> None:
        raise AssertionError("renamed in two steps")

    monkeypatch.setattr(Path, "rename", refuse)
    trained.save(tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "model"]


def test_a_model_is_replaced_in_two_steps_where_the_system_cannot_exchange(
    trained: LightDXML, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_exchange", lambda *_: False)
    for _ in range(2):
        trained.save(tmp_path / "model")
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert load(tmp_path / "model").predict(TEXTS) == trained.predict(TEXTS)


def test_a_model_is_found_where_a_process_left_it_that_was_killed_while_replacing_it(
    trained: LightDXML, tmp_path: Path
) -> None:
    """Between the two steps there was no model at its place."""
    trained.save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / ".model.0123abcd.old")
    assert load(tmp_path / "model").predict(TEXTS) == trained.predict(TEXTS)
    trained.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_of_two_models_that_were_left_none_is_guessed(trained: LightDXML, tmp_path: Path) -> None:
    for name in (".model.0123abcd.old", ".model.4567abcd.old"):
        trained.save(tmp_path / name)
    with pytest.raises(ValueError, match="there is no such folder"):
        load(tmp_path / "model")


def test_rooms_of_a_training_must_not_lie_where_its_model_goes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    for room in (tmp_path / "model", tmp_path / "model" / "kept", tmp_path / "link" / "kept"):
        with pytest.raises(ValueError, match=r"lies in .*/model, where the model goes"):
            storage.check_target(tmp_path / "model", None, room)
    storage.check_target(tmp_path / "model", tmp_path, tmp_path / "model-kept")


def test_arrays_may_be_read_by_whom_other_files_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    arrays.write(tmp_path / "arrays.safetensors", {"ones": np.ones(3, dtype=np.float32)})
    assert (tmp_path / "arrays.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode
