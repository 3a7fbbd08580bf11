"""Synthetic data: it has the sizes of its recipe, is reproducible, and can be learned, but not trivially."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags
from typer.testing import CliRunner

from lightdxml.cli import app
from lightdxml.data import load
from lightdxml.data.errors import DataError
from lightdxml.data.generator import Recipe, like, make
from lightdxml.metrics import evaluate

RECIPE = Recipe(20_000, 500, 5_000, 8_000, labels_per_document=5.4, words_per_document=7)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(RECIPE, tmp_path_factory.mktemp("made"))


def test_sizes_are_those_of_the_recipe(made: Path) -> None:
    data = load(made)
    assert data.train.X is not None
    assert data.train.X.shape == (20_000, 8_000)
    assert data.train.Y.shape == (20_000, 5_000)
    assert data.test is not None
    assert data.test.Y.shape == (500, 5_000)
    assert data.train.Y.nnz / 20_000 == pytest.approx(5.4, rel=0.01)
    assert data.test.Y.nnz / 500 == pytest.approx(5.4, rel=0.1)
    # Some words repeat.
    assert 6 < data.train.X.nnz / 20_000 < 7


def test_every_label_has_a_training_document_and_few_labels_have_many(made: Path) -> None:
    frequency = np.sort(np.bincount(load(made).train.Y.indices, minlength=5_000))[::-1]
    assert frequency[-1] >= 1
    assert frequency[0] > 10 * np.median(frequency)


def test_features_have_unit_rows(made: Path) -> None:
    X = load(made).train.X
    assert X is not None
    np.testing.assert_allclose(np.asarray(X.multiply(X).sum(axis=1)).ravel(), 1, atol=1e-4)


def test_nearest_centroid_is_right_for_some_documents_but_not_most(made: Path) -> None:
    data = load(made)
    assert data.test is not None
    sums = csr_matrix(data.train.Y.T @ data.train.X)
    lengths = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
    scores = (data.test.X @ (diags(1 / lengths) @ sums).T).toarray()
    labels = np.argsort(-scores, axis=1, kind="stable")[:, :5].astype(np.int32)
    assert 15 < evaluate(data.test.Y, labels, k=1)["P@1"] < 60


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    small = Recipe(300, 50, 40, 200)
    one, two = make(small, tmp_path / "a"), make(small, tmp_path / "b")
    other = make(Recipe(300, 50, 40, 200, seed=1), tmp_path / "c")
    for name in ("train.txt", "test.txt"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
        assert (one / name).read_bytes() != (other / name).read_bytes()


@pytest.mark.parametrize("recipe", [Recipe(1, 0, 1, 1, 1.0, 1.0), Recipe(3, 2, 7, 2), Recipe(9000, 1, 60, 5, 1.0, 2.0)])
def test_smallest_data_sets_can_be_made(tmp_path: Path, recipe: Recipe) -> None:
    data = load(make(recipe, tmp_path / "made"))
    assert data.train.Y.shape == (recipe.documents, recipe.labels)
    assert len(np.unique(data.train.Y.indices)) == recipe.labels


def test_folder_that_is_not_empty_needs_overwrite_and_keeps_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty"):
        make(Recipe(10, 0, 5, 5), tmp_path)
    (tmp_path / "dev.txt").write_text("from another data set")
    make(Recipe(10, 0, 5, 5), tmp_path, overwrite=True)
    assert not (tmp_path / "dev.txt").exists()
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_recipe_can_have_the_sizes_of_a_known_data_set() -> None:
    recipe = like("EURLex-4K")
    assert (recipe.documents, recipe.labels) == (15539, 3993)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "0"], "labels is 0"),
        (
            ["--docs", "10", "--labels", "1000"],
            "--labels is 1000: 10 documents have at most 50 labels, so give more",
        ),
        (
            ["--labels", "30", "--labels-per-doc", "40"],
            "--labels-per-doc is 40: it must be at most the number of labels",
        ),
        (["--noise", "2"], "noise is 2.0"),
        (["--like", "AmazonTitles-671K"], "AmazonTitles-670K"),
    ],
)
def test_impossible_recipe_is_rejected_with_the_name_of_the_option(
    tmp_path: Path, options: list[str], message: str
) -> None:
    result = CliRunner().invoke(app, ["data", "make", str(tmp_path / "made"), *options])
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output


def test_command_reports_what_it_wrote(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["data", "make", str(tmp_path / "made"), "--docs", "100", "--test", "10", "--labels", "20", "--words", "50"],
    )
    assert result.exit_code == 0, result.output
    assert "100 training and 10 test documents with 20 labels and 50 words" in " ".join(result.output.split())


@pytest.mark.parametrize("wanted", [1.0, 2.5, 5.39, 18.64, 36.0])
def test_documents_have_the_wanted_number_of_labels(tmp_path: Path, wanted: float) -> None:
    data = load(make(Recipe(9_000, 500, 3_000, 2_000, labels_per_document=wanted), tmp_path / "made"))
    assert data.train.Y.nnz / 9_000 == pytest.approx(wanted, rel=0.02)
