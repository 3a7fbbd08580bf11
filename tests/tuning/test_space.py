"""Which settings trials vary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from scipy.sparse import csr_matrix

from lightdxml.config import full_name
from lightdxml.data import Dataset, Split, Texts
from lightdxml.presets import TEXT_NAMES, Preset
from lightdxml.tuning.documents import Documents
from lightdxml.tuning.space import Dimension, Space, default_space, read_space
from tests.support.data import topics, words


def names_of(space: Space) -> list[str]:
    return [one.name for one in space]


def matrices(n: int = 100, **more: Any) -> Documents:
    X, Y = topics(n)
    return Documents.of(Dataset("made-up", Split(Y, X), **more))


def of_texts(titles: bool, label_names: list[str]) -> Documents:
    bodies = ["a purring cat", "a barking dog"] * 50
    Y = csr_matrix(np.tile(np.eye(2, dtype=np.float32), (50, 1)))
    texts = Texts(bodies, ["cat", "dog"] * 50 if titles else None)
    return Documents.of(Dataset("pets", Split(Y, texts=texts), label_names=label_names))


def test_few_documents_without_names_vary_the_dense_views() -> None:
    found = names_of(default_space(matrices(), Preset()))
    assert found[0] == "dense.train"
    assert {"dense.dim", "dense.epochs", "linear.costs", "linear.prior"} <= set(found)
    assert not {"ngrams", "tree.max_trees", "names.documents"} & set(found)


def test_texts_vary_their_features_and_names_of_labels_their_weight() -> None:
    found = names_of(default_space(of_texts(titles=True, label_names=["cat", "dog"]), Preset()))
    assert found[:3] == ["ngrams", "min_df", "title_weight"]
    assert "names.documents" in found
    assert "dense.train" not in found
    found = names_of(default_space(of_texts(titles=False, label_names=["l1", "l2"]), Preset()))
    assert not {"title_weight", "names.documents"} & set(found)


def test_trees_are_varied_where_they_are_grown() -> None:
    assert "tree.max_trees" in names_of(default_space(matrices(), Preset(settings={"linear.work": 10})))


def test_the_paper_has_no_linear_view_to_vary() -> None:
    found = names_of(default_space(matrices(), Preset("paper/EURLex-4K")))
    assert not {"dense.train", "linear.costs"} & set(found)
    assert "dense.dim" in found


def test_all_names_are_settings() -> None:
    data = matrices(label_names=words(12), feature_names=words(42))
    preset = Preset(settings={"linear.work": 10, "dense.train": "always"})
    spaces = default_space(data, preset), default_space(of_texts(titles=True, label_names=["a", "b"]), Preset())
    for name in {name for space in spaces for name in names_of(space)} - set(TEXT_NAMES):
        assert full_name(name) == name


def test_the_closest_point_to_the_defaults_can_be_sampled() -> None:
    data = matrices()
    space = default_space(data, Preset())
    near = space.near(Preset(), len(data.train))
    assert (near["dense.train"], near["linear.costs"], near["dense.epochs"]) == ("always", 0.5, 6)
    study = optuna.create_study()
    study.enqueue_trial(near)
    assert space.suggest(study.ask()) == space.settings(near)


def test_dense_settings_are_varied_only_with_dense_views() -> None:
    space = default_space(matrices(), Preset())
    trial = optuna.trial.FixedTrial({"dense.train": "never", "linear.costs": 0.123456, "linear.prior": 1.0})
    assert space.suggest(trial) == {"dense.train": "never", "linear.costs": (0.123,), "linear.prior": 1.0}  # type: ignore[arg-type]


def test_a_file_says_what_to_vary(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"dim": [16, 32], "epochs": {"low": 1, "high": 4}, "dense": ["always"]}')
    assert read_space(path) == Space(
        [
            Dimension("dense.train", ("always",)),
            Dimension("dense.dim", (16, 32)),
            Dimension("dense.epochs", low=1, high=4),
        ]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "varies no setting"),
        ('{"epoch": [1]}', "there is no setting 'epoch'"),
        ('{"epochs": []}', r"epochs is \[\]: give values"),
        ('{"epochs": [0]}', "dense.epochs is 0"),
        ('{"epochs": {"low": 1}}', "give values, such as"),
        ('{"epochs": {"low": 4, "high": 1}}', "epochs has no range from 4 to 1"),
        ('{"linear.prior": {"low": 0, "high": 1, "log": true}}', "above 0 with log"),
        ('{"linear.prior": {"low": true, "high": 2}}', "has no range"),
        ('{"linear.prior": {"low": 1, "high": 2000}}', "linear.prior is 2000"),
        ('{"ngrams": [1, 3]}', "ngrams is 3"),
        ('{"ngrams": [[1]]}', r"ngrams has the value \[1\]"),
        ('{"dim": [1], "dense.dim": [2]}', "dense.dim is there twice"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "space.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_space(path)
