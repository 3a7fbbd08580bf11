"""Plots: complete, legible and reproducible."""

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

from lightdxml.experiments.bench import ablation, figures, plots
from lightdxml.experiments.bench.ablation import Curve
from tests.support.bench import done_cell, ended_cell

FILES = ["accuracy-time.png", "head-tail.png", "size.png", "latency.png"]
LONG = "One versus all with $L_2$ and an explanation that does not end"


@pytest.fixture(autouse=True)
def _figure_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save at the resolution of the figure, so that texts stay where they were drawn."""
    monkeypatch.setattr(figures, "_DPI", 100)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collect the figures that are saved."""
    collected: list[Figure] = []
    save = figures.save

    def collect(figure: Figure, path: Path) -> Path:
        collected.append(figure)
        return save(figure, path)

    monkeypatch.setattr(figures, "save", collect)
    return collected


def check_image(path: Path) -> None:
    """Check for content within a white border, which shows that nothing is cut off."""
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 100
    edges = (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1])
    assert all(np.all(edge == 1.0) for edge in edges), f"{path.name} is cut off"
    assert np.mean(pixels < 0.9) > 0.001


def check_texts(figure: Figure) -> None:
    """Check that no two texts overlap and that all are within the figure."""
    hidden = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in _outside(axis)}
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible() and text not in hidden]
    assert boxes
    page = figure.bbox.padded(1)
    for text, box in boxes:
        assert page.contains(box.x0, box.y0), text
        assert page.contains(box.x1, box.y1), text
    for (text, box), (other, its) in combinations(boxes, 2):
        common = Bbox.intersection(box, its)
        assert common is None or min(common.width, common.height) < 2, (text, other)


def _outside(axis: Axis) -> list[Text]:
    """Return the tick labels beyond the ends of an axis, which are not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]


def many(data: int, methods: list[str]) -> list[dict[str, Any]]:
    """Return cells of several data sets with different values."""
    return [
        done_cell(f"set-{i}", method, P=60.0 + j * 1.5 - i, train_seconds=0.7 * 3.0**j, size_mb=0.4 * 2.0 ** (j + i))
        for i in range(data)
        for j, method in enumerate(methods)
    ]


def test_all_plots_are_written_and_legible(tmp_path: Path, drawn: list[Figure]) -> None:
    cells = [
        *many(5, ["lightdxml", "astec", "parabel", "bonsai", LONG, LONG.lower()]),
        ended_cell("timeout", "", method="x", data="set-1"),
    ]
    assert [path.name for path in plots.write_all(cells, tmp_path)] == FILES
    assert [path.name for path in sorted(tmp_path.iterdir())] == sorted(FILES)
    for name, figure in zip(FILES, drawn, strict=True):
        check_image(tmp_path / name)
        assert [axes.get_title() for axes in figure.axes] == [f"set-{i}" for i in range(5)]
        check_texts(figure)


@pytest.mark.parametrize(
    "cells",
    [
        [done_cell()],
        [done_cell(), done_cell(repeat=1, P=61.0, train_seconds=14.0)],
        [done_cell(), ended_cell("failed", "bad luck", method="sleec")],
        [ended_cell("skipped", "too large")],
        [
            done_cell(train_seconds=0.0, size_mb=0.0, batch_ms=0.0, single_ms={"p50": None}),
            done_cell(method="knn", peak_mb=None),
        ],
        [done_cell(metrics={}), done_cell(method="knn")],
        [done_cell(), done_cell("wordnet", method="knn")],
        [done_cell("a", batch_ms=0.0029, single_ms={"p50": 0.79}), done_cell("b"), done_cell("c")],
        [done_cell(size_mb=25_000.0, batch_ms=900.0), done_cell(method=LONG * 2, size_mb=0.002, batch_ms=0.0003)],
    ],
    ids=("one", "repeats", "failed", "nothing", "zeros", "no metrics", "gaps", "decades", "extremes"),
)
def test_unusual_cells_are_drawn(tmp_path: Path, drawn: list[Figure], cells: list[dict[str, Any]]) -> None:
    for path in plots.write_all(cells, tmp_path):
        check_image(path)
    for figure in drawn:
        check_texts(figure)


def test_methods_that_are_not_drawn_are_named(tmp_path: Path, drawn: list[Figure]) -> None:
    cells = [done_cell(), ended_cell("timeout", "", method="sleec")]
    plots.write_all(cells, tmp_path)
    scatter, bars = drawn[0].axes[0], drawn[2].axes[0]
    assert "no result: sleec (timeout)" in scatter.get_xlabel()
    assert "timeout" in [text.get_text() for text in bars.texts]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["parabel", "sleec"]


def test_each_method_has_its_own_look_in_any_order() -> None:
    methods = [f"method {i}" for i in range(40)]
    look = plots.looks([*methods, "lightdxml"])
    assert len(set(look.values())) == 41
    assert look == plots.looks(reversed([*methods, "lightdxml"]))
    assert look["lightdxml"] == plots.looks(["lightdxml", "astec"])["lightdxml"]


def test_the_same_cells_give_the_same_bytes(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in plots.write_all(many(1, ["a", "b"]), tmp_path / "1")]
    assert first == [path.read_bytes() for path in plots.write_all(many(1, ["a", "b"]), tmp_path / "2")]


CURVES: dict[str, Curve] = {
    "β": [(i / 10, {"P@1": 80 + i / 10, "PSP@1": 45 - i / 5}) for i in range(11)],
    "epochs": [(i, {"P@1": 70 + i / 3, "PSP@1": 40 + i / 9}) for i in (2, 4, 8, 16, 24)],
    "shortlist size": [(i, {"P@1": 80.0, "PSP@1": 44.0}) for i in (25, 50, 100, 200, 400)],
    "epochs between refreshes": [(1, {"P@1": 80.0, "PSP@1": 44.0}), (2, {"P@1": 80.5, "PSP@1": 44.0})],
    "re-ranker": [("without", {"P@1": 80.0, "PSP@1": 44.0}), ("with", {"P@1": 80.2, "PSP@1": 44.1})],
}


def test_an_ablation_has_two_panels_per_setting(tmp_path: Path, drawn: list[Figure]) -> None:
    path = tmp_path / "ablation.png"
    ablation.plot(CURVES, path, {"β": 0.7, "epochs": 12, "re-ranker": "without"})
    check_image(path)
    (figure,) = drawn
    check_texts(figure)
    assert len(figure.axes) == 10
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == list(CURVES)


def test_the_default_is_marked_even_if_it_was_not_tried(tmp_path: Path, drawn: list[Figure]) -> None:
    some = {name: CURVES[name] for name in ("β", "epochs", "shortlist size")}
    ablation.plot(some, tmp_path / "ablation.png", {"β": 0.7, "epochs": 12})
    marked = [
        [float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_linestyle() == ":"]
        for axes in drawn[0].axes
    ]
    # 12 epochs lie halfway between 8, the third value, and 16, the fourth.
    assert marked == [[pytest.approx(7.0)], [pytest.approx(7.0)], [2.5], [2.5], [], []]


@pytest.mark.parametrize("second", [80.0, 80.01])
def test_a_negligible_difference_does_not_fill_the_panel(tmp_path: Path, drawn: list[Figure], second: float) -> None:
    curve: Curve = [(1, {"P@1": 80.0, "PSP@1": 80.0}), (2, {"P@1": second, "PSP@1": second})]
    ablation.plot({"epochs": curve}, tmp_path / "ablation.png", {})
    for axes in drawn[0].axes:
        low, high = axes.get_ylim()
        assert high - low == pytest.approx(1.0)
