"""Models on disk: what is saved comes back, what is damaged or forged is refused in one sentence."""

from __future__ import annotations

import copy
import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load
from lightdxml.model import store
from lightdxml.persistence import arrays as stored
from tests.support.configs import PAPER, SMALL
from tests.support.data import TEXTS, topics
from tests.support.forging import Arrays, change_arrays, change_manifest, write_file
from tests.support.indexes import needs_rabitq
from tests.support.stored_model import EXPECTED, FOLDER

DAMAGED = r"is damaged \(.*\): copy or train it again"


@pytest.fixture
def saved(text_model: LightDXML, tmp_path: Path) -> Path:
    """A folder with a model of texts."""
    text_model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def saved_views(four_views: LightDXML, tmp_path: Path) -> Path:
    """A folder with a model of all four views."""
    four_views.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="module")
def rabitq_model() -> LightDXML:
    return LightDXML(options=PAPER | {"epochs": 1, "index": "rabitq"}).fit(*topics(200, labels=60))


def check_refused(folder: Path, match: str = DAMAGED) -> None:
    with pytest.raises(ValueError, match=match) as refused:
        load(folder)
    assert "\n" not in str(refused.value)


def test_the_stored_model_of_this_format_still_predicts_the_same() -> None:
    """Once it is released it stays as it is: if it can no longer be read, the format needs another number."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    model = load(FOLDER)
    assert set(model.model_.views) == {"nearness", "classifier", "linear", "tree", "names"}
    labels, scores = model.rank(expected["texts"], 3)
    assert labels.tolist() == expected["labels"]
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-5)
    assert model.predict(expected["texts"], k=1) == expected["best"]


@pytest.mark.parametrize(
    "settings",
    [PAPER, PAPER | {"dense.relu": True, "dense.residual": True}, SMALL, SMALL | {"precision": "float32"}],
    ids=["paper", "residual", "linear", "float32"],
)
def test_a_saved_model_predicts_the_same_bits(tmp_path: Path, settings: dict[str, Any]) -> None:
    labels = [["cat, 🐈"], ["dog\n"], ["cat, 🐈", "dog\n"], []] * 10
    trained = LightDXML(options=settings | {"epochs": 2}).fit(TEXTS, labels)
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(TEXTS, k=2) == trained.predict(TEXTS, k=2)
    for found, expected in zip(again.rank(TEXTS, tail=0.5), trained.rank(TEXTS, tail=0.5), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert again.config() == again.model_.config == trained.model_.config
    assert again.model_.metrics == trained.model_.metrics
    assert len(again.history_) == len(trained.history_)


def test_a_saved_model_predicts_the_same_bits_in_a_new_process(four_views: LightDXML, saved_views: Path) -> None:
    program = (
        "import sys; import numpy as np; from lightdxml import load\n"
        "labels, scores = load(sys.argv[1]).rank(np.eye(42), 5)\n"
        "sys.stdout.write(labels.tobytes().hex() + ' ' + scores.tobytes().hex())"
    )
    command = [sys.executable, "-c", program, str(saved_views)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert out == " ".join(array.tobytes().hex() for array in four_views.rank(np.eye(42), 5))


@needs_rabitq
@pytest.mark.parametrize("verify", [True, False])
def test_stored_codes_are_searched_as_those_that_were_built(
    rabitq_model: LightDXML, tmp_path: Path, verify: bool
) -> None:
    X, _ = topics(50, labels=60, seed=3)
    rabitq_model.save(tmp_path / "model")
    again = load(tmp_path / "model", verify=verify)
    assert again.model_.views["nearness"].facts()["index"] == "rabitq"
    for model in (again, copy.deepcopy(again)):
        for found, expected in zip(model.rank(X), rabitq_model.rank(X), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_arrays_are_mapped_and_read_only(saved: Path) -> None:
    for view in load(saved).model_.views.values():
        for array in view.arrays().values():
            # A part of a file without bytes is an array of its own.
            assert not array.size or isinstance(array.base, np.memmap) or isinstance(array, np.memmap)
            assert not array.flags.writeable


def test_views_without_a_weight_are_not_stored(documents: tuple[csr_matrix, csr_matrix], tmp_path: Path) -> None:
    for settings, missing in (
        (PAPER | {"blend.beta": 0.0}, ("classifier", "linear")),
        (PAPER | {"blend.beta": 1.0}, ("linear", "tree")),
    ):
        LightDXML(options=settings | {"epochs": 1}).fit(*documents).save(tmp_path / "model")
        names = stored.read(tmp_path / "model" / "arrays.safetensors")
        assert not [name for name in names if name.startswith(missing)]
        model = load(tmp_path / "model")
        assert not set(model.model_.views) & set(missing)
        assert (model.rank(documents[0], 1)[0] >= 0).all()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{", "is damaged"),
        ("manifest.json", b'{"format": 99}', "has format 99 and this version reads 3: update lightdxml"),
        ("manifest.json", b'{"format": 0}', "train the model again"),
        ("manifest.json", b'{"format": true}', "names no format"),
        ("manifest.json", b"[1]", "names no format"),
        ("manifest.json", b"[" * 100_000, "is damaged"),
        ("manifest.json", None, "is not a model"),
    ],
)
def test_a_damaged_manifest_is_refused(saved: Path, name: str, content: bytes | None, message: str) -> None:
    (saved / name).unlink()
    if content is not None:
        (saved / name).write_bytes(content)
    check_refused(saved, message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("arrays.safetensors", b"x" * 100, "header"),
        ("label_names.json", b'["a"]', "label_names.json has 1 names for 2 labels"),
        ("label_names.json", b'{"a": 1}', "not a list of names"),
        ("vocabulary.json", b'["a"]', "vocabulary.json has 1 names for 7 features"),
        ("vocabulary.json", b"[1, 2, 3]", "not a list of names"),
    ],
)
def test_a_forged_file_is_refused(saved: Path, name: str, content: bytes, message: str) -> None:
    write_file(saved, name, content)
    check_refused(saved, rf"is damaged \(.*{message}.*\): copy or train it again")


@pytest.mark.parametrize("name", ["arrays.safetensors", "label_names.json", "vocabulary.json", "history.json"])
@pytest.mark.parametrize("change", ["missing", "cut", "changed"])
def test_every_file_is_checked(saved: Path, name: str, change: str) -> None:
    content = bytearray((saved / name).read_bytes())
    if change == "missing":
        (saved / name).unlink()
    elif change == "cut":
        (saved / name).write_bytes(content[:-1])
    else:
        content[-3] ^= 1
        (saved / name).write_bytes(content)
    check_refused(saved, f"is damaged .*{name}.*copy or train it again")


@pytest.mark.parametrize("name", ["arrays.safetensors", "vocabulary.json", "history.json"])
def test_a_file_that_the_manifest_does_not_name_is_not_read(saved: Path, name: str) -> None:
    change_manifest(saved, lambda manifest: manifest["files"].pop(name))
    check_refused(saved, f"is damaged .its manifest names no {name}")


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b"{",
        b'{"label_frequency": {"dtype": "I32", "shape": [1000000000000], "data_offsets": [0, 4]}}',
        b'{"label_frequency": {"dtype": "I32", "shape": [-1], "data_offsets": [4, 0]}}',
        b'{"label_frequency": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"label_frequency": {"dtype": "I32", "shape": [4], "data_offsets": [0, 16]}, "more": 5}',
    ],
)
def test_a_header_that_lies_is_refused(saved: Path, header: bytes) -> None:
    write_file(saved, "arrays.safetensors", len(header).to_bytes(8, "little") + header + bytes(16))
    check_refused(saved)
    write_file(saved, "arrays.safetensors", (1 << 62).to_bytes(8, "little") + header)
    check_refused(saved)


def one(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Arrays], object]:
    """Return a change of one array."""
    return lambda arrays: arrays.update({name: change(arrays[name])})


FORGED_ARRAYS: dict[str, Callable[[Arrays], object]] = {
    "labels of the index reversed": one("nearness.labels", lambda a: a[::-1].copy()),
    "labels of the index missing": lambda arrays: arrays.pop("nearness.labels"),
    "label ids that wrap around": lambda arrays: arrays.update(
        {
            "nearness.labels": np.array([0, 2_000_000_000, -2_000_000_000, 1], dtype=np.int32),
            "nearness.vectors": arrays["nearness.vectors"][:4].copy(),
        }
    ),
    "NaN in the classifier": one("classifier.W", lambda a: a * np.float16(np.nan)),
    "infinite word vectors": one("encoder.vectors", lambda a: a * np.float16(np.inf)),
    "narrow word vectors": one("encoder.vectors", lambda a: a[:, 1:].copy()),
    "negative frequencies": one("label_frequency", lambda a: a - 1000),
    "frequencies of other labels": one("label_frequency", lambda a: a[:-1].copy()),
    "weights of a label that does not exist": one("linear.classes", lambda a: a + 12),
    "features whose weights lie nowhere": one("linear.indptr", lambda a: a + 1),
    # Once led compiled code out of bounds.
    "a dense label many times": one("linear.dense", lambda a: np.repeat(a[:1], 3_000_000)),
    "a negative dense label": one("linear.dense", lambda a: a - 100),
    "int8 weights of the linear view": one("linear.weights", lambda a: a.astype(np.int8)),
    "a node that does not exist": one("tree.0.paths", lambda a: np.where(a > 0, 10**6, a).astype(np.int32)),
    "paths below -1": one("tree.0.paths", lambda a: a - 2),
    "paths of one axis": one("tree.0.paths", lambda a: a[:, 0].copy()),
    "paths without an axis": one("tree.0.paths", lambda a: np.array(3, dtype=np.int32)),
    "weights of a cluster that does not exist": one("tree.0.clusters.classes", lambda a: a + 60_000),
}


@pytest.mark.parametrize("name", FORGED_ARRAYS)
def test_forged_arrays_are_refused(saved_views: Path, name: str) -> None:
    with np.errstate(invalid="ignore"):
        change_arrays(saved_views, FORGED_ARRAYS[name])
    check_refused(saved_views)


FORGED_CODES: dict[str, Callable[[Arrays], object]] = {
    "row ids beyond": one("nearness.index.row_ids", lambda a: a + 1),
    "one row id for all": one("nearness.index.row_ids", lambda a: a * 0),
    "no candidates": one("nearness.index.candidates", lambda a: a * 0),
    "too many candidates": one("nearness.index.candidates", lambda a: a + 60),
    "narrow signs": one("nearness.index.signs", lambda a: a[:, :-1].copy()),
    "signs of another type": one("nearness.index.signs", lambda a: a.astype(np.int32)),
    "scales that are not finite": one("nearness.index.scales", lambda a: a * np.float32(np.nan)),
    "codes missing": lambda arrays: arrays.pop("nearness.index.codes"),
}


@needs_rabitq
@pytest.mark.parametrize("name", FORGED_CODES)
def test_forged_codes_are_refused(rabitq_model: LightDXML, tmp_path: Path, name: str) -> None:
    rabitq_model.save(tmp_path / "model")
    change_arrays(tmp_path / "model", FORGED_CODES[name])
    check_refused(tmp_path / "model")


FORGED_MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "documents without end": lambda m: m.update(n_documents=float("inf")),
    "fewer than no documents": lambda m: m.update(n_documents=-1),
    "no features": lambda m: m.update(n_features=0),
    "features as text": lambda m: m.update(n_features="42"),
    "other features": lambda m: m.update(n_features=41),
    "a measure that is too large": lambda m: m.update(metrics={"P@1": 10**400}),
    "measures of another form": lambda m: m.update(metrics=5),
    "a negative tail": lambda m: m["tail"].update(lowest=-1),
    "a tail too strong": lambda m: m["tail"].update(highest=1e9),
    "a tail of text": lambda m: m["tail"].update(highest="1"),
    "a tail that is true": lambda m: m["tail"].update(lowest=True),
    "no tail": lambda m: m.pop("tail"),
    "a tail without an end": lambda m: m["tail"].pop("highest"),
    "a tail of another form": lambda m: m.update(tail=5),
    "no views": lambda m: m.update(views={}),
    "a view that does not exist": lambda m: m["views"].update(mine={}),
    "views of another form": lambda m: m.update(views=5),
    "a view without facts": lambda m: m["views"].update(linear=None),
    "a view missing": lambda m: m["views"].pop("linear"),
    "another index": lambda m: m["views"]["nearness"].update(index="zzz"),
    "an index without its arrays": lambda m: m["views"]["nearness"].update(index="rabitq"),
    "shortlists without end": lambda m: m["views"]["nearness"].update(shortlist_size=2**40),
    "more trees than levels": lambda m: m["views"]["tree"].update(trees=99),
    "another blend": lambda m: m["blend"].update(kind="zzz"),
    "a weight of a view that does not exist": lambda m: m["blend"]["slopes"].update(mine=[[0.5] * 7] * 2),
    "a weight beyond 1000": lambda m: m["blend"]["slopes"].update(linear=[[1001.0] * 7] * 2),
    "weights for other groups": lambda m: m["blend"]["slopes"].update(linear=[[1.0] * 6] * 2),
    "no bias": lambda m: m["blend"].pop("biases"),
    "no files": lambda m: m.pop("files"),
    "a file elsewhere": lambda m: m["files"].update({"../secret": {"bytes": 1, "sha256": "00"}}),
    "a setting out of range": lambda m: m["config"]["dense"].update(dim=-1),
    "a setting that does not exist": lambda m: m["config"]["dense"].update(bxta=1),
    "settings of another form": lambda m: m.update(config=[1]),
    "an unknown option of reading": lambda m: m.update(reading={"memory_limit": "1"}),
    "an option of reading that is a number": lambda m: m.update(reading={"text_column": 5}),
    "an empty option of reading": lambda m: m.update(reading={"encoding": ""}),
    "an option of reading without end": lambda m: m.update(reading={"text_column": "x" * 10_000}),
    "options of reading of another form": lambda m: m.update(reading=["text_column"]),
    "integers as labels that have none": lambda m: m.update(integer_labels=True),
}


@pytest.mark.parametrize("name", FORGED_MANIFESTS)
def test_a_forged_manifest_is_refused(saved_views: Path, name: str) -> None:
    change_manifest(saved_views, FORGED_MANIFESTS[name])
    check_refused(saved_views)


def test_a_manifest_without_its_checksum_is_refused(saved: Path) -> None:
    path = saved / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_documents": 7}))
    check_refused(saved, r"manifest\.json was changed after the model was written")


def test_settings_of_another_version_are_named(saved: Path) -> None:
    change_manifest(saved, lambda m: m["config"]["blend"].update(bxta=m["config"]["blend"].pop("beta")))
    check_refused(saved, r"settings that this version does not know: blend\.bxta")


@pytest.mark.parametrize("content", ["5", "[1]", '{"a": 1}', "null"])
def test_a_history_of_another_form_is_refused(saved: Path, content: str) -> None:
    write_file(saved, "history.json", content.encode())
    check_refused(saved, "not a list of phases")


def test_names_made_to_fill_memory_are_not_read(saved: Path) -> None:
    write_file(saved, "label_names.json", json.dumps(["x" * 5_000_000, "y"]).encode())
    check_refused(saved, r"label_names\.json has more than \d+ bytes")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["history.json", "vocabulary.json", "manifest.json", "arrays.safetensors"])
def test_pipes_and_devices_are_not_read(text_model: LightDXML, tmp_path: Path, name: str) -> None:
    """Reading a pipe waits forever, reading /dev/zero until memory is full."""
    for kind, make in (("pipe", os.mkfifo), ("device", lambda path: path.symlink_to("/dev/zero"))):
        folder = tmp_path / kind
        text_model.save(folder)
        (folder / name).unlink()
        make(folder / name)
        check_refused(folder, r"is not a file|is not a model")
        if name == "manifest.json":
            with pytest.raises(ValueError, match="holds something other than a model"):
                text_model.save(folder)


def test_a_model_is_replaced_and_nothing_else_is(text_model: LightDXML, saved: Path, tmp_path: Path) -> None:
    text_model.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("important")
    with pytest.raises(ValueError, match=r"holds something other than a model \(thesis\.txt\)"):
        text_model.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "important"
    with pytest.raises(ValueError, match="is a file"):
        text_model.save(tmp_path / "mine" / "thesis.txt")


@pytest.mark.parametrize("name", ["arrays.safetensors.bak", "src"])
def test_a_folder_with_other_files_is_not_replaced(
    text_model: LightDXML, saved: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"name": "my web app", "format": 1}')
    with pytest.raises(ValueError, match="other than a model"):
        text_model.save(tmp_path / "app")
    (saved / name).write_text("mine")
    with pytest.raises(ValueError, match=rf"other than a model \({name}\)"):
        text_model.save(saved)
    assert (saved / name).read_text() == "mine"


def test_a_model_behind_a_link_is_replaced_and_the_link_stays(
    text_model: LightDXML, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(saved)
    text_model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]


def test_a_model_that_a_killed_process_left_is_found_and_put_back(
    text_model: LightDXML, saved: Path, tmp_path: Path
) -> None:
    saved.rename(tmp_path / ".model.0123abcd.old")
    assert load(saved).predict(TEXTS) == text_model.predict(TEXTS)
    text_model.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_folders_of_a_training_must_not_lie_where_its_model_goes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    for other in (tmp_path / "model", tmp_path / "model" / "kept", tmp_path / "link" / "kept"):
        with pytest.raises(ValueError, match=r"lies in .*/model, where the model goes"):
            store.check_target(tmp_path / "model", None, other)
    store.check_target(tmp_path / "model", tmp_path, tmp_path / "model-kept")


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *arguments, **options: False)
    with pytest.raises(ValueError, match=r"cannot be written .*read-only"):
        store.check_target(tmp_path / "new" / "model")


def test_loading_runs_no_code(saved: Path) -> None:
    """Whatever a model's author writes, only JSON and arrays are read."""
    for path in saved.iterdir():
        assert path.suffix in (".json", ".safetensors")
    write_file(saved, "vocabulary.json", b"cos\nsystem\n(S'touch /tmp/hacked'\ntR.")
    check_refused(saved)


def test_names_of_labels_survive(tmp_path: Path) -> None:
    names = ["a, b", "dog\n", "🐈", " ", "ﬁ"]
    trained = LightDXML(options=PAPER | {"epochs": 1}).fit(np.eye(5), [[name] for name in names])
    trained.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == names


@pytest.mark.parametrize("verify", [True, False])
def test_a_model_that_is_replaced_while_it_is_read_is_never_mixed(
    text_model: LightDXML, four_views: LightDXML, tmp_path: Path, verify: bool
) -> None:
    folder, stop = tmp_path / "model", threading.Event()
    text_model.save(folder)

    def swap() -> None:
        while not stop.is_set():
            four_views.save(folder)
            text_model.save(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        seen = set()
        for _ in range(60):
            found = load(folder, verify=verify)
            expected = four_views if found.model_.vectorizer is None else text_model
            assert found.model_.arrays().keys() == expected.model_.arrays().keys()
            for name, array in found.model_.arrays().items():
                np.testing.assert_array_equal(array, expected.model_.arrays()[name])
            assert found.model_.label_names == expected.model_.label_names
            assert len(found.history_) == len(expected.history_)
            seen.add(found.model_.vectorizer is None)
    finally:
        stop.set()
        swapper.join()
    assert seen == {True, False}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO])
def test_errors_of_the_system_are_not_called_damage(saved: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(np, "memmap", fail)
    with pytest.raises(OSError, match=rf"cannot be read now \({os.strerror(number)}\)") as caught:
        load(saved)
    assert "damaged" not in str(caught.value)


def test_a_wrong_number_of_threads_is_not_called_damage(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_THREADS", "many")
    with pytest.raises(ValueError, match=r"^LIGHTDXML_THREADS is 'many'"):
        load(saved)
