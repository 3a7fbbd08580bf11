"""Plots: written, whole, and nothing in them cut off or on top of another."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from lightdxml.experiments.bench import plots
from tests.bench.test_tables import cell, ended

FILES = ["accuracy-time.png", "head-tail.png", "size.png", "latency.png"]
LONG = "One versus all with $L_2$ and an explanation that does not end"


@pytest.fixture(autouse=True)
def _own_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save at the resolution that a figure has of itself: then its texts stay where they were drawn."""
    monkeypatch.setattr(plots, "_DPI", 100)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collect the figures that are saved."""
    figures: list[Figure] = []
    save = plots._save

    def keep(figure: Figure, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(plots, "_save", keep)
    return figures


def check_picture(path: Path) -> None:
    """A picture has a white edge, which means that nothing is cut off, and something within."""
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 100
    edges = (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1])
    assert all(np.all(edge == 1.0) for edge in edges), f"{path.name} is cut off"
    assert np.mean(pixels < 0.9) > 0.001


def check_words(figure: Figure) -> None:
    """No two texts of a figure lie on each other, and all lie within it."""
    hidden = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in _beyond(axis)}
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible() and text not in hidden]
    assert boxes
    page = figure.bbox.padded(1)
    for words, box in boxes:
        assert page.contains(box.x0, box.y0), words
        assert page.contains(box.x1, box.y1), words
    for (words, box), (other, its) in combinations(boxes, 2):
        common = Bbox.intersection(box, its)
        assert common is None or min(common.width, common.height) < 2, (words, other)


def _beyond(axis: Axis) -> list[Text]:
    """Return the labels of ticks beyond the ends of an axis: they are not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]


def many(data: int, methods: list[str]) -> list[dict[str, Any]]:
    """Return cells of some data sets that differ a little."""
    return [
        cell(f"set-{i}", method, P=60.0 + j * 1.5 - i, train_seconds=0.7 * 3.0**j, size_mb=0.4 * 2.0 ** (j + i))
        for i in range(data)
        for j, method in enumerate(methods)
    ]


def test_all_plots_are_written_and_readable(tmp_path: Path, drawn: list[Figure]) -> None:
    cells = [
        *many(5, ["lightdxml", "astec", "parabel", "bonsai", LONG, LONG.lower()]),
        ended("timeout", "", method="x", data="set-1"),
    ]
    assert [path.name for path in plots.write_all(cells, tmp_path)] == FILES
    assert [path.name for path in sorted(tmp_path.iterdir())] == sorted(FILES)
    for name, figure in zip(FILES, drawn, strict=True):
        check_picture(tmp_path / name)
        assert [axes.get_title() for axes in figure.axes] == [f"set-{i}" for i in range(5)]
        check_words(figure)


@pytest.mark.parametrize(
    "cells",
    [
        [cell()],
        [cell(), cell(repeat=1, P=61.0, train_seconds=14.0)],
        [cell(), ended("failed", "bad luck", method="sleec")],
        [ended("skipped", "too large")],
        [cell(train_seconds=0.0, size_mb=0.0, batch_ms=0.0, single_ms={"p50": None}), cell(method="knn", peak_mb=None)],
        [cell(metrics={}), cell(method="knn")],
        [cell(), cell("wordnet", method="knn")],
        [cell(size_mb=25_000.0, batch_ms=900.0), cell(method=LONG * 2, size_mb=0.002, batch_ms=0.0003)],
    ],
    ids=("one", "repeats", "failed", "nothing", "zeros", "no metrics", "gaps", "wide"),
)
def test_odd_cells_are_drawn_too(tmp_path: Path, drawn: list[Figure], cells: list[dict[str, Any]]) -> None:
    for path in plots.write_all(cells, tmp_path):
        check_picture(path)
    for figure in drawn:
        check_words(figure)


def test_what_has_no_result_is_named(tmp_path: Path, drawn: list[Figure]) -> None:
    plots.write_all([cell(), ended("timeout", "", method="sleec"), cell(method="popular", P=11.0)], tmp_path)
    scatter, bars = drawn[0].axes[0], drawn[2].axes[0]
    assert "without: sleec (timeout)" in scatter.get_xlabel()
    assert "far below: popular (P@1 10.0)" in scatter.get_xlabel()
    assert "timeout" in [text.get_text() for text in bars.texts]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["parabel", "popular", "sleec"]


def test_each_method_has_a_look_of_its_own_in_any_order() -> None:
    methods = [f"method {i}" for i in range(40)]
    look = plots.looks([*methods, "lightdxml"])
    assert len(set(look.values())) == 41
    assert look == plots.looks(reversed([*methods, "lightdxml"]))
    assert look["lightdxml"] == plots.looks(["lightdxml", "astec"])["lightdxml"]


def test_mixed_cells_and_no_cells_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--out"):
        plots.write_all([cell(), cell(method="knn", versions={"numpy": "1"})], tmp_path)
    with pytest.raises(ValueError, match="no cells"):
        plots.write_all([], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_same_cells_give_the_same_bytes(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in plots.write_all(many(1, ["a", "b"]), tmp_path / "1")]
    assert first == [path.read_bytes() for path in plots.write_all(many(1, ["a", "b"]), tmp_path / "2")]


CURVES: dict[str, list[plots.Point]] = {
    "β": [(i / 10, {"P@1": 80 + i / 10, "PSP@1": 45 - i / 5}) for i in range(11)],
    "e_model": [(i, {"P@1": 70 + i / 3, "PSP@1": 40 + i / 9}) for i in (2, 4, 8, 16, 24)],
    "k": [(i, {"P@1": 80.0, "PSP@1": 44.0}) for i in (25, 50, 100, 200, 400)],
    "ê_label": [(1, {"P@1": 80.0, "PSP@1": 44.0}), (2, {"P@1": 80.5})],
    "re-ranker": [("without", {"P@1": 80.0, "PSP@1": 44.0}), ("with", {"P@1": 80.2, "PSP@1": 44.1})],
}


def test_an_ablation_has_a_pair_of_panels_for_each_parameter(tmp_path: Path, drawn: list[Figure]) -> None:
    path = tmp_path / "ablation.png"
    plots.ablation(CURVES, path, {"β": 0.7, "e_model": 12, "re-ranker": "without"}, "eurlex57k")
    check_picture(path)
    (figure,) = drawn
    check_words(figure)
    assert len(figure.axes) == 10
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == list(CURVES)


def test_the_default_is_marked_even_where_it_was_not_tried(tmp_path: Path, drawn: list[Figure]) -> None:
    some = {name: CURVES[name] for name in ("β", "e_model", "k")}
    plots.ablation(some, tmp_path / "ablation.png", {"β": 0.7, "e_model": 12})
    marked = [
        [float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_linestyle() == ":"]
        for axes in drawn[0].axes
    ]
    assert marked == [[0.7], [0.7], [12.0], [12.0], [], []]


def test_a_difference_that_is_nothing_does_not_fill_the_panel(tmp_path: Path, drawn: list[Figure]) -> None:
    curve: list[plots.Point] = [(1, {"P@1": 80.0, "PSP@1": 44.0}), (2, {"P@1": 80.01, "PSP@1": 44.01})]
    plots.ablation({"k": curve}, tmp_path / "ablation.png")
    for axes in drawn[0].axes:
        low, high = axes.get_ylim()
        assert high - low == pytest.approx(1.0)


def test_an_ablation_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no parameter"):
        plots.ablation({}, tmp_path / "ablation.png")
