"""`lightdxml report`."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.report.analysis import Measured, Outcome, by_frequency, measure, outcome
from lightdxml.report.page import _shares
from tests.cli.test_data import run

HOSTILE = '<script>alert("x")</script> & $\\frac{ \' 😀\n\x00</svg>'
FAST: dict[str, Any] = {"D": 8, "e_model": 4, "e_hat_label": 2, "k": 3, "seed": 1}
HEADINGS = (
    "Accuracy",
    "Training",
    "How much each view counts",
    "Precision or rare labels",
    "From rare to frequent",
    "Most confused",
    "Time",
    "Memory",
    "A few documents",
)


class Reader(HTMLParser):
    """Follows what is open, and collects text and attributes."""

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


def read(page: str) -> Reader:
    """Read a page, which must be well formed, safe and complete in itself."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids), "an id stands twice"
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
    estimator = LightDXML(**FAST).fit(list(data.train.texts), data.train.Y, label_names=data.label_names)
    estimator.save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The report of that model, under the name that it has unless told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert "model-report.html" in run("report", folder / "model", "--data", folder / "tiny")
    return (folder / "model-report.html").read_text(encoding="utf-8")


def test_the_page_has_every_section_and_the_text_of_its_figures(page: str) -> None:
    reader = read(page)
    words = " ".join(reader.words)
    for heading in HEADINGS:
        assert heading in words
    for drawn in ("nDCG@k", "loss per document", "classifier epochs", "seconds", "precision @5"):
        assert drawn in reader.words
    assert "γ is 0.4; no other was tried in training." in words
    assert "Document 0" in reader.words


def test_the_figures_are_those_of_evaluate(folder: Path, page: str) -> None:
    figures = json.loads(run("evaluate", folder / "model", folder / "tiny", "--json"))
    for name in ("P", "nDCG", "PSP", "PSnDCG", "R", "coverage", "macro-F1"):
        cells = "".join(f'<td class="number">{figures[f"{name}@{k}"]:.2f}</td>' for k in (1, 3, 5))
        assert f"<td>{name}</td>{cells}" in page


def test_hostile_names_and_texts_are_shown_and_not_obeyed(page: str) -> None:
    assert "<script" not in page
    assert "\x00" not in page
    shown = '<script>alert("x")</script> & $\\frac{ \' 😀 </svg>'
    assert shown in read(page).words
    assert "<b>bold</b> nothing" in read(page).words


def test_the_same_report_has_the_same_bytes_at_any_number_of_threads(
    folder: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    run("report", folder / "model", "--data", folder / "tiny", "--out", "model-report.html", "--threads", "1")
    assert (folder / "model-report.html").read_text(encoding="utf-8") == page
    assert sorted(path.name for path in folder.iterdir()) == ["model", "model-report.html", "tiny"]


def test_a_model_of_features_without_names_and_history_on_a_file_of_documents(tmp_path: Path) -> None:
    X = csr_matrix(np.tile(np.eye(4, dtype=np.float32), (10, 1)))
    Y = csr_matrix(np.tile(np.eye(4, dtype=np.float32)[[0, 1, 1, 2]], (10, 1)))
    estimator = LightDXML(**FAST, beta=0.5).fit(X, Y)
    estimator.history_ = []
    estimator.save(tmp_path / "model")
    saved = save(Dataset("bare", Split(Y=Y, X=X)), tmp_path / "bare", "xc")
    run("report", tmp_path / "model", "--data", saved / "train.txt", "--out", tmp_path / "page.html")
    words = " ".join(read((tmp_path / "page.html").read_text(encoding="utf-8")).words)
    assert "label 2" in words
    assert "no record of its training" in words
    assert "TRAINING-DATA" in words


def test_what_is_no_report_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    report = ("report", folder / "model", "--data", folder / "tiny", "--out")
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work", encoding="utf-8")
    for out, says in ((thesis, "no report"), (tmp_path, "is a folder"), (thesis / "page.html", "cannot be")):
        with pytest.raises(ValueError, match=says):
            run(*report, out)
    assert thesis.read_text(encoding="utf-8") == "years of work"


def test_ignored_pairs_leave_the_ranking_and_the_truth(folder: Path, data: Dataset) -> None:
    from lightdxml import load

    estimator = load(folder / "model")
    assert data.test is not None
    plain = measure(estimator, data.test.texts, data.test.Y)
    rows = np.flatnonzero(plain.ranked[:, 0] >= 0)
    first = plain.ranked[rows, 0]
    ignore = csr_matrix((np.ones(len(first)), (rows, first)), shape=data.test.Y.shape)
    left = measure(estimator, data.test.texts, data.test.Y, ignore)
    np.testing.assert_array_equal(left.ranked[rows, :-1], plain.ranked[rows, 1:])
    assert left.Y[rows, first].sum() == 0


def test_labels_are_counted_as_by_hand() -> None:
    Y = csr_matrix([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    ranked = np.array([[0, 2], [2, 1], [2, -1]], dtype=np.int32)
    counted = outcome(Measured(Y, ranked, np.zeros(ranked.shape, dtype=np.float32), 0.0))
    assert counted.wrong.tolist() == [0, 0, 3, 0]
    assert counted.missed.tolist() == [0, 1, 0, 1]
    assert [(one.missed, one.given, one.documents) for one in counted.confusions] == [(1, 2, 1), (3, 2, 1)]


def test_bins_reach_from_labels_never_seen_to_the_most_frequent() -> None:
    frequency = np.array([0, 1, 3, 10, 11, 1000, 1001])
    ones = np.ones(len(frequency), dtype=np.int64)
    bins = by_frequency(Outcome(ones, ones, ones, [], 1), frequency)
    assert [part.name for part in bins] == ["0", "1", "2–3", "4–10", "11–30", "301–1,000", "1,001–3,000"]
    assert all(part.labels == 1 and part.recall == part.precision == 100 for part in bins)


def measured(value: float) -> dict[str, float]:
    return {f"{name}@{k}": value for name in ("P", "PSP") for k in (1, 3, 5)}


def test_shares_that_were_tried_are_drawn_with_the_one_that_was_chosen() -> None:
    surface = [((beta, gamma), measured(60 + beta + gamma)) for beta in (0.1, 0.2) for gamma in (0.3, 0.4, 0.5)]
    history = [{"phase": "blend", "surface": surface}]
    model = SimpleNamespace(sparse=object(), tree=None, beta=0.2, gamma=0.4)
    subject: Any = SimpleNamespace(estimator=SimpleNamespace(model_=model, history_=history))
    shown = _shares(subject)
    assert "γ: 0 the dense views alone, 1 the sparse view alone" in shown
    assert "<b>0.4 ✓</b>" in shown
    assert "60.60" in shown, "with the β that was chosen"
