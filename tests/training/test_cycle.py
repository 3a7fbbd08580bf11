"""The whole training: its schedule, its repeatability, its edges, and that it learns what can be learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, shortlist
from lightdxml.config import PRESETS, Config, configure
from lightdxml.kernels import parallel
from lightdxml.kernels import sketches as kernels
from lightdxml.metrics import evaluate
from lightdxml.model import predict
from lightdxml.progress import Progress
from lightdxml.training.fit import fit
from tests.processor import kept, needs_sketches

# The paper's two views: the third has tests of its own.
SMALL: dict[str, Any] = {
    "D": 16,
    "k": 8,
    "batch_size": 32,
    "e_model": 6,
    "e_hat_label": 2,
    "random_negatives": 4,
    "sparse": False,
}


def topics(n: int = 300, labels: int = 12, seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Documents whose labels are given away by words of their own, among noise."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, labels), dtype=np.float32)
    X = (rng.random((n, labels + 30)) < 0.1).astype(np.float32)
    for i in range(n):
        chosen = rng.choice(labels, rng.integers(1, 4), replace=False)
        Y[i, chosen] = 1
        X[i, chosen] = 3
    return csr_matrix(X), csr_matrix(Y)


def arrays(X: csr_matrix, Y: csr_matrix, **settings: Any) -> list[NDArray[Any]]:
    model = fit(X, Y, Config(**(SMALL | settings))).model
    return [
        model.encoder.vectors,
        model.classifier,
        model.shortlist.vectors,
        np.array(model.beta),
        *predict(model, X, 3),
    ]


def test_learns_data_with_a_known_answer() -> None:
    X, Y = topics()
    model = fit(X, Y, Config(**(SMALL | {"e_model": 30}))).model
    X_test, Y_test = topics(seed=1)
    ranked, scores = predict(model, X_test, 3)
    assert evaluate(Y_test, ranked, k=1)["P@1"] > 97
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"relu": True, "residual": True},
        {"frequent_labels": 3, "random_negatives": 0},
        {"index": "hnsw"},
        {"index": "ivf"},
        pytest.param({"index": "sketch"}, marks=needs_sketches),
    ],
    ids=str,
)
def test_same_seed_same_bits_at_any_number_of_threads(settings: dict[str, Any]) -> None:
    X, Y = topics()
    runs = []
    for threads in (1, 2, 4, 2):
        with parallel.use_threads(threads):
            runs.append(arrays(X, Y, **settings))
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_another_seed_gives_another_model() -> None:
    X, Y = topics()
    assert not np.array_equal(arrays(X, Y, seed=1)[0], arrays(X, Y, seed=2)[0])


@pytest.mark.parametrize(
    ("e_model", "e_label", "e_hat_label"), [(16, 8, 8), (21, 6, 9), (5, 2, 2), (3, 1, 7), (4, 0, 2)]
)
def test_epochs_are_as_many_as_the_papers_formula_says(e_model: int, e_label: int, e_hat_label: int) -> None:
    X, Y = topics(60)
    config = Config(**(SMALL | {"e_model": e_model, "e_label": e_label, "e_hat_label": e_hat_label}))
    history = fit(X, Y, config).history
    phases = [entry["phase"] for entry in history]
    assert phases.count("classifier") == e_model
    assert phases.count("label encoder") == e_label * (e_model // e_hat_label + 1)
    assert phases.count("classifier") + phases.count("label encoder") == config.total_epochs
    # The index is refreshed before the first epoch, every ê_label epochs, and after the last one.
    assert phases.count("index") == 1 + -(-e_model // e_hat_label)
    # After the last refresh nobody asks for shortlists of training documents.
    assert phases.count("shortlist") == phases.count("index") - 1
    assert phases[-3:] == ["validation", "rounding", "tail"]


def test_the_epoch_of_the_best_validation_is_kept() -> None:
    X, Y = topics()
    result = fit(X, Y, Config(**(SMALL | {"learning_rate": 5.0, "e_model": 4, "e_hat_label": 1})))
    validations = [entry for entry in result.history if entry["phase"] == "validation"]
    accuracies = [max(sum(f[f"P@{k}"] for k in (1, 3, 5)) for _, f in entry["curve"]) for entry in validations]
    best = validations[int(np.argmax(accuracies))]
    assert result.model.metrics["P@1"] == best["P@1"]
    assert result.model.beta == best["beta"]


def test_beta_is_the_presets_where_it_has_one() -> None:
    X, Y = topics(100)
    assert fit(X, Y, Config(**(SMALL | {"beta": 0.35}))).model.beta == 0.35


def test_labels_without_documents_never_enter_the_index() -> None:
    X, Y = topics()
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], 40))
    model = fit(X, wide, Config(**SMALL)).model
    assert model.shortlist.labels.max() < 12
    assert predict(model, X, 40)[0].max() < 12


EDGES: dict[str, tuple[Any, Any]] = {
    "one document": ([[1, 0]], [[1, 0]]),
    "one label": ([[1, 0], [0, 1], [1, 1]], [[1], [1], [0]]),
    "documents without words": ([[0, 0], [0, 0], [1, 0]], [[1, 0], [0, 1], [1, 0]]),
    "documents without labels": ([[1, 0], [0, 1], [1, 1]], [[0, 0], [0, 0], [1, 0]]),
    "duplicate documents": ([[1, 2]] * 30, [[1, 0]] * 15 + [[0, 1]] * 15),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"residual": True, "relu": True},
        {"k": 1},
        {"index": "hnsw"},
        {"index": "ivf"},
        pytest.param({"index": "sketch"}, marks=needs_sketches),
    ],
    ids=str,
)
def test_edges_are_trained_and_predicted(name: str, settings: dict[str, Any]) -> None:
    X, Y = EDGES[name]
    model = fit(np.array(X), np.array(Y), Config(**(SMALL | settings))).model
    labels, scores = predict(model, csr_matrix(np.array(X)), k=5)
    assert labels.shape == (len(X), 5)
    assert np.isfinite(scores).all()
    assert ((labels >= 0) == (scores > 0)).all()
    assert labels.max() < len(Y[0])
    # A document without words gets no label rather than a guess.
    assert ((labels[:, 0] >= 0) == np.array(X).any(axis=1)).all()


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan, 1]], [[1]], "X holds NaN or infinite"),
        ([[np.inf, 1]], [[1]], "X holds NaN or infinite"),
        ([[-1.0, 1]], [[1]], "Negative values in data"),
        ([[1.0], [2.0]], [[1]], "2 and 1 rows"),
        ([[1.0]], [[np.nan]], "Y holds NaN"),
        ([[1.0]], [[-1]], "Y holds NaN, infinite or negative"),
        ([[1.0]], [[0]], "Y has no labels at all"),
        (np.empty((0, 2)), np.empty((0, 2)), "no rows"),
    ],
)
def test_bad_input_is_refused_before_any_training(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(np.array(X), np.array(Y), Config(**SMALL))


def test_features_of_another_width_are_refused() -> None:
    X, Y = topics(60)
    model = fit(X, Y, Config(**SMALL)).model
    with pytest.raises(ValueError, match="X has 5 features, but LightDXML is expecting 42"):
        predict(model, csr_matrix((1, 5)))


def test_names_numbers_and_matrices_train_the_same_model() -> None:
    X, Y = topics(80)
    rows = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(80)]
    ranked = LightDXML(**SMALL).fit(X, Y).predict(X, k=3)
    assert LightDXML(**SMALL).fit(X, rows).predict(X, k=3) == ranked
    names = [f"n{j}" for j in range(12)]
    by_name = LightDXML(**SMALL).fit(X, [[names[j] for j in row] for row in rows], label_names=names).predict(X, k=3)
    assert by_name == [[names[j] for j in row] for row in ranked]


def test_given_word_vectors_are_where_training_begins() -> None:
    X, Y = topics(60)
    vectors = np.random.default_rng(0).normal(size=(42, 16)).astype(np.float32)
    model = fit(X, Y, Config(**(SMALL | {"learning_rate": 1e-9})), vectors=vectors).model
    np.testing.assert_allclose(model.encoder.vectors, vectors, rtol=1e-3)
    with pytest.raises(ValueError, match="features × D"):
        fit(X, Y, Config(**SMALL), vectors=vectors[:, :3])


def test_presets_carry_the_papers_table() -> None:
    table = {
        "EURLex-4K": (0.75, 500, 0.006, 16, 8, 8),
        "AmazonCat-13K": (1.0, 500, 0.007, 21, 4, 4),
        "Wiki10-31K": (0.60, 600, 0.009, 21, 8, 6),
        "WikiSeeAlsoTitles-350K": (0.1, 500, 0.008, 21, 6, 7),
        "AmazonTitles-670K": (1.0, 650, 0.007, 21, 6, 9),
    }
    for name, expected in table.items():
        config = PRESETS[f"paper/{name}"]
        got = (config.beta, config.k, config.learning_rate, config.e_model, config.e_label, config.e_hat_label)
        assert got == expected
        assert config.D == 300


def test_the_papers_preset_trains() -> None:
    X, Y = topics(100)
    model = fit(X, Y, configure("paper/EURLex-4K", e_model=2, e_hat_label=1, e_label=1, D=16)).model
    assert model.beta == 0.75
    assert model.encoder.residual is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": "many"}, "k is 'many'"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"beta": -0.1}, "beta is -0.1"),
        ({"index": "magic"}, "one of auto, exact, sketch, ivf, hnsw"),
        ({"D": True}, "D is True"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"relu": 1}, "relu is 1"),
        ({"nonsense": 1}, "there is no setting 'nonsense'"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configure("default", **settings)


def test_compile_time_is_in_the_history() -> None:
    X, Y = topics(60)
    first = fit(X, Y, Config(**SMALL)).history[0]
    assert first["phase"] == "compile"
    assert first["seconds"] > 0


def test_progress_shows_every_phase_and_what_validation_says(capfd: pytest.CaptureFixture[str]) -> None:
    X, Y = topics(60)
    fit(X, Y, Config(**SMALL), progress=Progress(show=True))
    shown = capfd.readouterr().err
    for words in (
        "cycle 1: label encoder",
        "cycle 2: classifier, epoch 3/6",
        "shortlists (exact)",
        "loss",
        "PSP@1",
        "100 %",
    ):
        assert words in shown


def test_progress_is_quiet_off_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    X, Y = topics(60)
    fit(X, Y, Config(**SMALL), progress=Progress())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("index", kept("hnsw", "ivf", "sketch"))
def test_other_indexes_find_most_of_what_exact_search_finds(index: str) -> None:
    X, Y = topics()
    history = fit(X, Y, Config(**(SMALL | {"index": index}))).history
    recalls = [entry["recall_of_exact"] for entry in history if entry["phase"] == "shortlist"]
    assert min(recalls) > 0.9


def test_training_finds_shortlists_by_an_inverted_file_where_that_is_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = topics(300, labels=60)
    monkeypatch.setattr(shortlist, "worth_trying", lambda *sizes: True)
    monkeypatch.setattr(kernels, "AVAILABLE", False)
    monkeypatch.setattr(shortlist, "_CLUSTER", 0)
    monkeypatch.setattr(shortlist, "_PRODUCT", 0)
    result = fit(X, Y, Config(**(SMALL | {"k": 5})))
    found = [entry for entry in result.history if entry["phase"] == "shortlist"]
    assert {entry["kind"] for entry in found} == {"ivf"}
    assert min(entry["recall_of_exact"] for entry in found) > 0.8
    # Predictions are exact all the same.
    assert result.model.shortlist.kind == "exact"
