"""Learning against training on everything: `python benchmarks/learn.py [SET ...] [--data FOLDER]`.

The first 80% of the training documents of each set are trained, and the rest is learned in ten steps: with the
training data kept, and without. Labels are given as names, so that a label exists from its first document on. Prints P
and PSP on the test part, recall@5 of labels that are new in the steps, P on documents of the first 80% (what is
forgotten), and seconds: of the full training, of 1% of the documents, and of one document, in memory and on disk.
`--seeds` repeats trainings and takes means. `--only` measures accuracy or times alone. `--plot` draws P@1 and PSP@5
over the steps. FOLDER holds one folder per data set.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed
from numpy.typing import NDArray

from lightdxml import LightDXML, ModelFolder
from lightdxml.cli.measure import inputs_of
from lightdxml.data import Dataset, load
from lightdxml.data.dataset import Split, Texts
from lightdxml.metrics import evaluate, inverse_propensity

SETS = ("bibtex", "delicious", "citeulike-t", "debian-relations", "wordnet", "eurlex57k")
STEPS, SHARE, CUTS = 10, 0.8, (1, 3, 5)
# Documents of the first 80% on which forgetting is measured.
EARLIER = 3000


@dataclass
class Set:
    """A data set with labels as names."""

    data: Dataset
    names: list[str]

    @staticmethod
    def load(name: str, folder: Path) -> Set:
        """Load a data set."""
        data = load(folder / name)
        numbers = [str(j) for j in range(data.train.Y.shape[1])]
        return Set(data, numbers if data.label_names is None else list(data.label_names))

    @property
    def cut(self) -> int:
        """The number of documents that are trained first."""
        return int(SHARE * len(self.data.train))

    def part(self, start: int, stop: int) -> tuple[Any, list[list[str]], list[str] | None]:
        """Return documents, labels and ids of some training documents."""
        train = self.data.train
        texts, X = inputs_of(train), train.X
        some = texts[start:stop] if isinstance(texts, Texts) else X[start:stop]  # type: ignore[index]
        return some, self.labels(train, start, stop), None if train.ids is None else list(train.ids[start:stop])

    def labels(self, split: Split, start: int = 0, stop: int | None = None) -> list[list[str]]:
        """Return the names of the labels of documents."""
        Y = split.Y[start:stop]
        return [[self.names[j] for j in Y[i].indices] for i in range(Y.shape[0])]

    @property
    def dev(self) -> tuple[Any, ...] | None:
        """Validation documents of the data set, if it has some."""
        dev = self.data.dev
        return None if dev is None else (inputs_of(dev), self.labels(dev), dev.ids)

    def train(self, stop: int, keep: bool, seed: int = 0) -> tuple[LightDXML, float]:
        """Return a model of the first documents, and the seconds that its training took, without compilation."""
        X, labels, ids = self.part(0, stop)
        options: dict[str, Any] = {"dev": self.dev, "ids": ids, "feature_names": self.data.feature_names}
        estimator = LightDXML(random_state=seed)
        model, seconds = timed(lambda: estimator.fit(X, labels, keep_training_data=keep, **options))
        return model, seconds - sum(one["seconds"] for one in model.history_ if one["phase"] == "compile")

    def ranked(self, model: LightDXML, split: Split) -> NDArray[np.int32]:
        """Return the five best labels of documents as columns of the data set."""
        column = {name: j for j, name in enumerate(self.names)}
        of_model = np.array([*(column[name] for name in model.model_.label_names or []), -1], dtype=np.int32)
        return of_model[model.rank(inputs_of(split), max(CUTS), ids=split.ids)[0]]


def measured(data: Set, model: LightDXML) -> dict[str, float]:
    """Return P and PSP on the test part, recall of labels that are new in the steps, and P of the first documents."""
    train, test = data.data.train, data.data.test
    assert test is not None
    ranked = data.ranked(model, test)
    found = evaluate(test.Y, ranked, k=CUTS, inv_propensity=inverse_propensity(train.Y))
    before, after = (np.asarray(Y.sum(axis=0)).ravel() for Y in (train.Y[: data.cut], train.Y))
    is_new = (before == 0) & (after > 0)
    pairs = [(i, j) for i in range(test.Y.shape[0]) for j in test.Y[i].indices if is_new[j]]
    found["new"] = 100 * sum(j in ranked[i] for i, j in pairs) / len(pairs) if pairs else float("nan")
    rows = np.linspace(0, data.cut - 1, min(EARLIER, data.cut)).astype(np.int64)
    texts = None if train.texts is None else train.texts.take(rows)
    X, ids = None if train.X is None else train.X[rows], None if train.ids is None else [train.ids[i] for i in rows]
    earlier = Split(Y=train.Y[rows], X=X, texts=texts, ids=ids)
    seen = evaluate(earlier.Y, data.ranked(model, earlier), k=CUTS)
    return found | {f"seen P@{k}": seen[f"P@{k}"] for k in CUTS}


def lessons(data: Set, steps: int = STEPS) -> Iterator[tuple[Any, list[list[str]], list[str] | None]]:
    """Return the documents that are learned, step by step."""
    cuts = np.linspace(data.cut, len(data.data.train), steps + 1).astype(int)
    for start, stop in pairwise(cuts.tolist()):
        yield data.part(start, stop)


def full(name: str, folder: Path, seed: int) -> dict[str, float]:
    """Train on all documents."""
    data = Set.load(name, folder)
    return measured(data, data.train(len(data.data.train), False, seed)[0])


def learned(name: str, folder: Path, keep: bool, seed: int) -> list[dict[str, float]]:
    """Train on the first documents and learn the rest; return what is measured before, and after each step."""
    data = Set.load(name, folder)
    model, _ = data.train(data.cut, keep, seed)
    curve = [measured(data, model)]
    for X, labels, ids in lessons(data):
        model.learn(X, labels, ids=ids)
        curve.append(measured(data, model))
    return curve


def mean(found: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each measure."""
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def timings(name: str, folder: Path) -> dict[str, float]:
    """Return seconds of the full training, of 1% of the documents, and of one document in memory and on disk.

    Medians, once compiled.
    """
    data = Set.load(name, folder)
    whole = data.train(len(data.data.train), keep=False)[1]
    model, _ = data.train(data.cut, keep=True)
    n = len(data.data.train) // 100
    found: dict[str, list[float]] = {"1%": [], "one": [], "one, on disk": []}
    at = data.cut
    for _ in range(4):
        for key, size in (("1%", n), ("one", 1)):
            X, labels, ids = data.part(at, at + size)
            at += size
            _, seconds = timed(lambda X=X, labels=labels, ids=ids: model.learn(X, labels, ids=ids))
            found[key].append(seconds)
    with tempfile.TemporaryDirectory() as place:
        model.save(Path(place) / "model")
        on_disk = ModelFolder(Path(place) / "model")
        for _ in range(4):
            X, labels, ids = data.part(at, at + 1)
            at += 1
            known = [[label for label in row if label in on_disk.model.label_ids] for row in labels]
            _, seconds = timed(lambda X=X, labels=known, ids=ids: on_disk.learn(X, labels, ids=ids))
            found["one, on disk"].append(seconds)
    return {"full": whole, **{key: float(np.median(seconds[1:])) for key, seconds in found.items()}}


def row(title: str, found: dict[str, float]) -> str:
    cells = [" / ".join(f"{found[f'{one}@{k}']:.2f}" for k in CUTS) for one in ("P", "PSP")]
    new = "–" if np.isnan(found["new"]) else f"{found['new']:.1f}"
    seen = " / ".join(f"{found[f'seen P@{k}']:.2f}" for k in CUTS)
    return f"| {title} | {' | '.join(cells)} | {new} | {seen} |"


def plot(curves: dict[str, dict[str, list[dict[str, float]]]], ends: dict[str, dict[str, float]], file: Path) -> None:
    """Draw P@1 and PSP@5 over the steps, with lines for the full training."""
    from matplotlib.figure import Figure

    from lightdxml.plotting import BLUE, GRAY, ORANGE, style

    with style({}):
        figure = Figure(figsize=(2.6 * len(curves), 4.6))
        axes = figure.subplots(2, len(curves), squeeze=False, sharex=True)
        for column, (name, by_kind) in enumerate(curves.items()):
            for line, measure in enumerate(("P@1", "PSP@5")):
                axis = axes[line][column]
                for color, (kind, curve) in zip((BLUE, ORANGE), by_kind.items(), strict=True):
                    axis.plot(range(len(curve)), [one[measure] for one in curve], ".-", color=color, label=kind)
                axis.axhline(ends[name][measure], color=GRAY, linestyle="--", label="trained on all")
                axis.set_xticks(range(0, STEPS + 1, 2))
                axis.set_title(f"{name}, {measure}", fontsize=9)
        axes[0][0].legend(fontsize=7)
        figure.supxlabel("steps of 2% of the documents", fontsize=9)
        figure.tight_layout()
        figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=("accuracy", "times"))
    given = parser.parse_args()
    if given.only != "times":
        accuracy(given.sets, given.data, range(given.seeds), given.plot)
    if given.only != "accuracy":
        times(given.sets, given.data)


def accuracy(names: list[str], folder: Path, seeds: range, file: Path | None) -> None:
    """Print what is measured on each data set, and draw it."""
    curves: dict[str, dict[str, list[dict[str, float]]]] = {}
    ends: dict[str, dict[str, float]] = {}
    print("| Data set | P@1 / 3 / 5 | PSP@1 / 3 / 5 | R@5 of new labels | P@1 / 3 / 5 of documents seen |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for name in names:
        ends[name] = mean([alone(full, name, folder, seed) for seed in seeds])
        curves[name] = {}
        for kind, keep in {"training data kept": True, "from the weights": False}.items():
            runs = [alone(learned, name, folder, keep, seed) for seed in seeds]
            curves[name][kind] = [mean(list(step)) for step in zip(*runs, strict=True)]
        print(row(f"{name}, 80%", next(iter(curves[name].values()))[0]))
        for kind, curve in curves[name].items():
            print(row(f"{name}, learned, {kind}", curve[-1]))
        print(row(f"{name}, trained on all", ends[name]), flush=True)
    if file is not None:
        plot(curves, ends, file)


def times(names: list[str], folder: Path) -> None:
    """Print seconds and shares of the full training."""
    print("\n| Data set | Full training | 1% of the documents | Share | One document | One document, on disk |")
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    for name in names:
        found = alone(timings, name, folder)
        cells = [f"{found['full']:.1f} s", f"{found['1%']:.2f} s", f"{100 * found['1%'] / found['full']:.1f}%"]
        print(f"| {name} | {' | '.join(cells)} | {found['one']:.2f} s | {found['one, on disk']:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
