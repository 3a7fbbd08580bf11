"""The page that `lightdxml report` writes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.model.blend import GROUP_NAMES, LogisticBlend
from lightdxml.report import analysis, training
from tests.support.commands import run

HOSTILE = '<script>alert("x")</script> & $\\frac{ \' 😀\n\x00</svg>'
FAST: dict[str, Any] = {"dim": 8, "epochs": 4, "dense.refresh_every": 2, "shortlist_size": 3, "random_state": 1}
HEADINGS = (
    "Accuracy",
    "Probabilities",
    "Rare and frequent labels",
    "Precision or rare labels",
    "Confused labels",
    "Examples",
    "Training",
    "Weights of the views",
    "Time and memory",
    "Size of the model",
    "Reproduce",
)


class Reader(HTMLParser):
    """Follows open tags, and collects text and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


TRIED = {"view": "tree", "gain": 1.25, "error": 0.5}


def read(page: str) -> Reader:
    """Read a page, which must be well formed, safe and self-contained."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids), "ids are not unique"
    assert all(link.startswith("#") for link in reader.links)
    assert reader.tags.isdisjoint({"script", "link", "img", "iframe"})
    namespaces = r'xmlns(:xlink)?="http://www\.w3\.org/[^"]*"'
    assert "http" not in re.sub(namespaces, "", page).replace("http-equiv", "")
    assert not re.search(r"url\((?!#)|@import", page)
    return reader


@pytest.fixture(scope="module")
def data() -> Dataset:
    texts = ["a purring cat", "a barking dog", "a cat and a dog", "nothing at all"] * 10
    Y = csr_matrix([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]] * 10, dtype=np.float32)
    test_texts = ["the purring", "some barking", "<b>bold</b> nothing", "a cat, a dog", "unlabelled"]
    test_Y = csr_matrix([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.float32)
    test = Split(Y=test_Y, texts=Texts(test_texts))
    return Dataset("tiny", Split(Y=Y, texts=Texts(texts)), test, label_names=[HOSTILE, "dog", "none"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    """A folder with a model and its data."""
    folder = tmp_path_factory.mktemp("report")
    save(data, folder / "tiny", "jsonl")
    assert data.train.texts is not None
    estimator = LightDXML(options=FAST).fit(list(data.train.texts), data.train.Y, label_names=data.label_names)
    estimator.save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The report about that model, in the default file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert "model-report.html" in run("report", folder / "model", "--data", folder / "tiny")
    return (folder / "model-report.html").read_text(encoding="utf-8")


def test_the_page_has_every_section_and_the_text_of_its_figures(page: str) -> None:
    reader = read(page)
    words = " ".join(reader.words)
    for heading in HEADINGS:
        assert heading in words
    for drawn in ("nDCG@k", "loss per document", "classifier epochs", "precision @5", "threshold", "highest F1"):
        assert drawn in reader.words
    assert "bias" in reader.words
    assert "gain in mean P" in reader.words
    assert "Document 0" in reader.words


def test_the_figures_are_those_of_evaluate(folder: Path, page: str) -> None:
    figures = json.loads(run("evaluate", folder / "model", folder / "tiny", "--json"))
    for name in ("P", "nDCG", "PSP", "PSnDCG", "R", "RP", "coverage", "macro-F1"):
        cells = "".join(f'<td class="number">{figures[f"{name}@{k}"]:.2f}</td>' for k in (1, 3, 5))
        assert f"<td>{name}</td>{cells}" in page


def test_the_calibration_error_is_that_of_evaluate(folder: Path, page: str) -> None:
    error = json.loads(run("evaluate", folder / "model", folder / "tiny", "--json"))["ECE@5"]
    assert f"the mean distance from the line, is {error:.3f}." in page


def test_k_sets_how_many_labels_the_tables_are_about(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    run("report", folder / "model", "--data", folder / "tiny", "--out", out, "-k", 12)
    words = read(out.read_text(encoding="utf-8")).words
    assert {"@1", "@3", "@5", "@10", "@12", "P@12", "recall @12", "R@12"} <= set(words)
    assert any(f"--out {out} -k 12" in line for line in words)


def test_recall_of_rare_labels_is_that_of_evaluate(folder: Path, page: str) -> None:
    figures = json.loads(run("evaluate", folder / "model", folder / "tiny", "--json"))
    (group,) = [one for one in figures["recall_by_training_documents"] if one["labels"]]
    cells = "".join(f'<td class="number">{group[f"R@{k}"]:.2f}</td>' for k in (5, 10))
    assert re.search(rf'<td>{group["training_documents"]}</td><td class="number">2</td>.*{cells}', page)


def test_concepts_have_name_notation_and_uri_on_the_page(tmp_path: Path) -> None:
    texts, labels = ["a purring cat", "a barking dog"] * 10, [["urn:1"], ["urn:2"]] * 10
    animals = [Concept("urn:1", {"en": ("pet",)}, "P1"), Concept("urn:2", {"en": ("pet",)})]
    more = [Concept('urn:"<b>', {"en": ("bird",)}), Concept("urn:4", {"en": ("fish",)})]
    trained = LightDXML(dim=8, epochs=2).fit(texts, labels, vocabulary=Vocabulary([*animals, *more]))
    trained.save(tmp_path / "model")
    lines = [{"text": "a cat", "labels": ["urn:1"]}, {"text": "an unknown animal", "labels": ["fish", 'urn:"<b>']}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    run("report", tmp_path / "model", "--data", tmp_path / "data.jsonl", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert {"P1", "urn:1", "urn:4", "fish"} <= set(read(page).words)
    assert "--vocabulary FILE" in page, "without its vocabulary, the model would be another one"
    chips = re.findall(r"<li class.*?</li>", page, re.DOTALL)
    assert any("<bdi>urn:2</bdi>" in chip for chip in chips), "two concepts of one name cannot be told apart"
    assert not any("<bdi>urn:4</bdi>" in chip for chip in chips)
    assert 'title="urn:&quot;&lt;b&gt;"' in page


def test_hostile_names_and_texts_are_escaped(page: str) -> None:
    assert "<script" not in page
    assert "\x00" not in page
    shown = '<script>alert("x")</script> & $\\frac{ \' 😀 </svg>'
    assert shown in read(page).words
    assert "<b>bold</b> nothing" in read(page).words


def test_the_report_has_the_same_bytes_at_any_number_of_threads(
    folder: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    run("report", folder / "model", "--data", folder / "tiny", "--out", "model-report.html", "--n-jobs", "1")
    assert (folder / "model-report.html").read_text(encoding="utf-8") == page
    assert sorted(path.name for path in folder.iterdir()) == ["model", "model-report.html", "tiny"]


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{}],
        [{"phase": "tail", "curve": 5}],
        [{"phase": "tail", "curve": [[0, {"P@1": 1}]]}],
        [{"phase": "index", "seconds": 10**400}],
    ],
)
def test_a_model_of_features_without_names_and_history_has_a_report(
    tmp_path: Path, history: list[dict[str, Any]]
) -> None:
    X = csr_matrix(np.tile(np.eye(4, dtype=np.float32), (10, 1)))
    Y = csr_matrix(np.tile(np.eye(4, dtype=np.float32)[[0, 1, 1, 2]], (10, 1)))
    estimator = LightDXML(options=FAST | {"beta": 0.5}).fit(X, Y)
    estimator.history_ = history
    estimator.save(tmp_path / "model")
    saved = save(Dataset("bare", Split(Y=Y, X=X)), tmp_path / "bare", "xc")
    run("report", tmp_path / "model", "--data", saved / "train.txt", "--out", tmp_path / "page.html")
    words = " ".join(read((tmp_path / "page.html").read_text(encoding="utf-8")).words)
    assert "label 2" in words
    assert "no record of its training" in words
    assert "TRAINING-DATA" in words


def test_confusions_of_few_documents_are_marked(folder: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Counted on one in" not in page
    monkeypatch.setattr(analysis, "_MAX_PAIRS", 0.1)
    monkeypatch.chdir(folder)
    run("report", folder / "model", "--data", folder / "tiny", "--out", "few.html", "-k", 1)  # the first 5 miss none
    assert re.search(r"Counted on one in \d+ documents\.", (folder / "few.html").read_text(encoding="utf-8"))
    (folder / "few.html").unlink()


def test_other_files_are_not_overwritten(folder: Path, tmp_path: Path) -> None:
    report = ("report", folder / "model", "--data", folder / "tiny", "--out")
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work", encoding="utf-8")
    for out, says in ((thesis, "not a report"), (tmp_path, "is a folder"), (thesis / "page.html", "cannot be")):
        with pytest.raises(ValueError, match=says):
            run(*report, out)
    assert thesis.read_text(encoding="utf-8") == "years of work"


def measured(value: float) -> dict[str, float]:
    return {f"{name}@{k}": value for name in ("P", "PSP") for k in (1, 3, 5)}


def test_the_chart_of_beta_shows_the_validation_that_was_kept(paper_model: LightDXML) -> None:
    shown = training.weights(paper_model.model_, paper_model.history_)
    assert "β: 0 label embeddings only, 1 classifier only" in shown
    assert f"<b>{paper_model.model_.blend.weights['classifier']:g} ✓</b>" in shown


def test_every_view_has_its_weights_on_the_page(four_views: LightDXML) -> None:
    blend = four_views.model_.blend
    assert isinstance(blend, LogisticBlend)
    shown = training.weights(four_views.model_, [*four_views.history_, {"phase": "view", **TRIED}])
    for name, slopes in blend.slopes.items():
        assert f"<td>{name}, log p</td>" in shown
        assert f'<td class="number">{slopes.low[0]:.2f}</td>' in shown
    for group in GROUP_NAMES:
        assert f">{group}</th>" in shown
    assert '<td class="number">+1.25</td>' in shown, "what the tree adds"


def test_every_array_of_the_views_is_listed(four_views: LightDXML) -> None:
    shown = training.sizes(four_views.model_)
    for view in four_views.model_.views.values():
        for name, array in view.arrays().items():
            assert (f"<td>{name}</td>" in shown) == (array.nbytes > 0), name


def test_the_effect_of_tail_is_shown(paper_model: LightDXML) -> None:
    points = [[tail / 10, measured(60 - tail)] for tail in range(11)]
    shown = training.tail([{"phase": "tail", "curve": points}])
    assert "tail: 0 for precision, 1 for rare labels" in shown
    for name in ("P@1", "P@5", "PSP@1", "PSP@5"):
        assert f">{name}<" in shown
    assert "50.00" in shown
    assert "changed nothing" in training.tail([{"phase": "tail", "curve": [[0, measured(1)], [1, measured(1)]]}])
