from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, arrays, load, storage
from lightdxml.config import Config
from lightdxml.kernels import parallel
from lightdxml.model import blend_views, find_candidates
from lightdxml.progress import Progress
from lightdxml.training import blend, fit, sparse_view
from lightdxml.training.checkpoint import Interrupted
from tests.training.test_cycle import SMALL, topics

QUIET = Progress(show=False)


@pytest.fixture(scope="module")
def data() -> tuple[csr_matrix, csr_matrix]:
    return topics(300)


@pytest.fixture(scope="module")
def trained(data: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    return LightDXML(**{**SMALL, "sparse": True}).fit(*data)


def all_near(Y: csr_matrix) -> Any:
    return np.tile(np.arange(Y.shape[1], dtype=np.int32), (Y.shape[0], 1))


def test_the_view_tells_labels_by_their_words(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    for work in (0, 10**6):
        view = sparse_view.train(X, Y, all_near(Y), Config(sparse_work=work), QUIET).view
        from lightdxml.sparse_view import find

        found = find(view, X, 1)
        right = np.asarray(Y[np.arange(len(found.labels)), found.labels[:, 0]]).ravel()
        assert right.mean() > 0.9


def test_the_view_does_not_depend_on_threads(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    found = []
    for threads in (1, 3):
        with parallel.use_threads(threads):
            found.append(sparse_view.train(X, Y, all_near(Y), Config(sparse_work=3 * X.nnz), QUIET).view)
    for name, array in vars(found[0]).items():
        np.testing.assert_array_equal(array, getattr(found[1], name))


def test_right_labels_are_no_negatives_and_none_counts_twice() -> None:
    Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32))
    near = np.array([[0, 1, 1, -1], [2, 1, 2, 0]], dtype=np.int32)
    found = sparse_view._negatives(Y, near[:, :2], near[:, 2:], np.array([1, 2], dtype=np.int32), Config())
    assert found.pointers.tolist() == [0, 0, 1, 2]
    assert found.documents.tolist() == [0, 1]


def test_a_label_that_no_shortlist_reaches_is_found_by_its_word(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = data
    settings = {**SMALL, "k": 1, "sparse": True}
    model = LightDXML(**settings).fit(X, Y).model_
    candidates = find_candidates(model, X)
    assert candidates.labels.shape[1] > 1
    assert candidates.margins is not None
    for row in candidates.labels:
        known = row[row >= 0]
        assert len(np.unique(known)) == len(known)


def test_without_it_the_score_is_the_papers(data: tuple[csr_matrix, csr_matrix]) -> None:
    model = LightDXML(**{**SMALL, "sparse": False}).fit(*data).model_
    assert model.sparse is None
    assert find_candidates(model, data[0]).margins is None
    assert not any(name.startswith("sparse") for name in storage.arrays_of(model))


def test_shares_are_chosen_on_validation_documents(trained: LightDXML) -> None:
    (entry,) = (entry for entry in trained.history_ if entry["phase"] == "blend")
    assert (trained.model_.beta, trained.model_.gamma) == (entry["beta"], entry["gamma"])
    assert len(entry["surface"]) == 1, "a handful of documents cannot tell"


def test_with_many_validation_documents_no_precision_is_given_up(data: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = topics(600, seed=1)
    model = LightDXML(**{**SMALL, "sparse": True, "e_model": 1}).fit(*data, dev=(X, Y))
    (entry,) = (entry for entry in model.history_ if entry["phase"] == "blend")
    assert len(entry["surface"]) == len(blend.BETAS) * len(blend.GAMMAS)
    for k in (1, 3, 5):
        best = max(figures[f"P@{k}"] for _, figures in entry["surface"])
        assert entry[f"P@{k}"] >= best - 1


@pytest.mark.parametrize("negatives", [0, 1, 2])
def test_it_is_trained_with_hardly_any_negatives(data: tuple[csr_matrix, csr_matrix], negatives: int) -> None:
    model = LightDXML(**{**SMALL, "sparse": True, "sparse_negatives": negatives, "sparse_work": 0}).fit(*data).model_
    assert model.sparse is not None
    assert len(model.sparse.weights) > 0


def test_given_shares_are_kept(data: tuple[csr_matrix, csr_matrix]) -> None:
    model = LightDXML(**{**SMALL, "sparse": True, "gamma": 0.25, "beta": 0.5}).fit(*data).model_
    assert (model.beta, model.gamma) == (0.5, 0.25)


def test_scores_lie_between_0_and_1_and_are_those_of_the_formula(trained: LightDXML, data: Any) -> None:
    candidates = find_candidates(trained.model_, data[0][:20])
    assert candidates.margins is not None
    scores = blend_views(candidates, 0.3, 0.6)
    there = candidates.labels >= 0
    assert (scores[there] >= 0).all()
    assert (scores[there] <= 1 + 1e-6).all()
    s, z, c = (part[there].astype(np.float64) for part in (candidates.margins, candidates.logits, candidates.cosines))
    dense = 0.3 * np.log(1 / (1 + np.exp(-z))) + 0.7 * (c - 1)
    np.testing.assert_allclose(scores[there], np.exp(0.4 * dense - 0.6 * np.maximum(0, 1 - s) ** 2), rtol=1e-4)


def check_alone_as_among_others(trained: LightDXML, X: csr_matrix) -> None:
    labels, scores = trained.rank(X, 5)
    for i in range(X.shape[0]):
        one, score = trained.rank(X[i], 5)
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_a_document_alone_gets_what_it_gets_among_others(trained: LightDXML, data: Any) -> None:
    check_alone_as_among_others(trained, data[0][:30])


def test_words_and_base_add_up_to_the_score(trained: LightDXML, data: Any) -> None:
    for explanations in trained.explain(data[0][:5], 3):
        for one in explanations:
            assert one.base + sum(part for _, part in one.parts) == pytest.approx(one.score, abs=1e-5)


def test_a_stored_model_answers_the_same(tmp_path: Path, trained: LightDXML, data: Any) -> None:
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for before, after in zip(trained.rank(data[0], 5), again.rank(data[0], 5), strict=True):
        np.testing.assert_array_equal(before, after)


def forged(folder: Path, change: Any) -> None:
    """Change a model's arrays, and its checksums with them."""
    content = {name: np.array(array) for name, array in arrays.read(folder / "arrays.safetensors").items()}
    change(content)
    arrays.write(folder / "arrays.safetensors", content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("sha256")
    path = folder / "arrays.safetensors"
    manifest["files"][path.name] = {"bytes": path.stat().st_size, "sha256": storage.sha256(path)}
    manifest["sha256"] = storage._checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def drop_labels(content: dict[str, Any]) -> None:
    del content["sparse_labels"]


def beyond(content: dict[str, Any]) -> None:
    content["sparse_labels"][0] = 10**6


def backwards(content: dict[str, Any]) -> None:
    content["sparse_pointers"][1] = 10**9


def short(content: dict[str, Any]) -> None:
    content["sparse_pointers"] = content["sparse_pointers"][:-1].copy()


def nowhere(content: dict[str, Any]) -> None:
    content["sparse_everywhere"] = np.array([-5], dtype=np.int32)


def many_times(content: dict[str, Any]) -> None:
    # Once led compiled code out of bounds.
    content["sparse_everywhere"] = np.repeat(content["sparse_labels"][:1], 3_000_000)


@pytest.mark.parametrize("change", [drop_labels, beyond, backwards, short, nowhere, many_times])
def test_a_forged_sparse_view_is_refused(tmp_path: Path, trained: LightDXML, change: Any) -> None:
    trained.save(tmp_path / "model")
    forged(tmp_path / "model", change)
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "model")


def test_models_of_the_format_before_have_none() -> None:
    folder = Path(__file__).parent.parent / "models" / "format-2-features"
    model = load(folder).model_
    assert model.sparse is None
    assert model.config.sparse is False


def test_a_training_that_was_done_gets_the_same_view_when_it_is_resumed(
    tmp_path: Path, data: tuple[csr_matrix, csr_matrix]
) -> None:
    settings = {**SMALL, "sparse": True}
    first = LightDXML(**settings).fit(*data, checkpoint=tmp_path / "c", checkpoint_every=0)
    again = LightDXML(**settings).fit(*data, checkpoint=tmp_path / "c", resume=True)
    one, other = (storage.arrays_of(estimator.model_) for estimator in (first, again))
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in other.items()}
    assert replace(first.model_.config) == again.model_.config


def test_whoever_asks_to_stop_while_it_is_trained_is_heard_and_can_go_on(
    tmp_path: Path, data: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**SMALL, "sparse": True}
    whole = LightDXML(**settings).fit(*data)
    train = sparse_view.train

    def stopped(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return train(*arguments)

    fitted = LightDXML(**settings)
    with monkeypatch.context() as patch:
        # Compiling trains a toy first.
        patch.setattr(fit, "_compile", lambda *_: 0.0)
        patch.setattr(sparse_view, "train", stopped)
        with pytest.raises(Interrupted):
            fitted.fit(*data, checkpoint=tmp_path / "c")
    again = LightDXML(**settings).fit(*data, checkpoint=tmp_path / "c", resume=True)
    one, other = (storage.arrays_of(estimator.model_) for estimator in (whole, again))
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in other.items()}
