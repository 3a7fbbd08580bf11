"""The size of the paper's largest data set on this machine, and how cost grows up to it.

`python benchmarks/scale.py goals OUT [NAME=VALUE …]` trains on synthetic data like AmazonTitles-670K with the paper's
settings, predicts the test documents, and prints each goal with what was measured. Data and a model that are already
in OUT are used. `model.json` holds what the training took.

`python benchmarks/scale.py labels OUT` trains the default preset on synthetic data of 20,000, 100,000 and 670,091
labels, and prints training time, peak memory, size, and the time of documents in a batch and of single ones.

`python benchmarks/scale.py growth OUT` measures one refresh, one classifier epoch and prediction at many sizes, each in
a new process, fits exponents, and plots them. Points that are already in OUT are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone, timed
from scipy.sparse import csr_matrix
from synthetic import Recipe, like, make

from lightdxml import LightDXML
from lightdxml import index as indexes
from lightdxml import load as load_model
from lightdxml.config import Config, changed
from lightdxml.data import Split, load
from lightdxml.metrics import evaluate
from lightdxml.model.blend import PaperBlend, TailShift
from lightdxml.model.model import Model, predict
from lightdxml.progress import peak_memory
from lightdxml.validation import check_features, validation_size
from lightdxml.views.base import Batch, View
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import Encoder, directions_of, normalized
from lightdxml.views.dense.nearness import NearnessView

LIKE, PRESET = "AmazonTitles-670K", "paper/AmazonTitles-670K"
SINGLE, SAMPLE = 1000, 500
# Prints the seconds of loading a model and of its first answer.
FIRST_ANSWER = """
import sys, time
import numpy as np
from scipy.sparse import csr_matrix
from lightdxml import load
start = time.perf_counter()
model = load(sys.argv[1], verify=sys.argv[2] == "verify")
loaded = time.perf_counter()
model.rank(csr_matrix(([1.0], [0], [0, 1]), (1, model.model_.n_features), dtype=np.float32), 5)
print(loaded - start, time.perf_counter() - loaded)
"""
# The points of `growth`: one refresh and one epoch with these settings.
SETTINGS: dict[str, Any] = {
    "dim": 128, "shortlist_size": 100, "epochs": 1, "linear": False, "tree": False, "dense.label_epochs": 1,
    "dense.refresh_every": 1, "dense.random_negatives": 0, "dense.batch_size": 256,
}  # fmt: skip
DOCUMENTS, LABELS, WORDS, MOST_LABELS = 100_000, 100_000, 60_000, 3_000_000
LABEL_COUNTS = (20_000, 100_000, 670_091)
# As in AmazonTitles-670K.
DOCUMENTS_PER_LABEL, LABELS_PER_DOCUMENT = 485_176 / 670_091, 5.39
PHASES = {"label encoder": "s", "index": "s", "shortlist": "s", "classifier": "s", "prediction": "ms"}
VARIED = ("L", "N", "shortlist size", "D", "N and L", "prediction")
Point = dict[str, Any]


def goals(out: Path, settings: dict[str, str]) -> None:
    """Train in a new process, unless that was done before; predict, and compare with the goals."""
    data, folder = out / "data", out / "model"
    out.mkdir(parents=True, exist_ok=True)
    if not data.exists():
        make(like(LIKE), data.with_suffix(".part")).rename(data)
    record = folder.with_suffix(".json")
    if not (folder.exists() and record.exists()):
        alone(train, data, folder, record, settings)
    training = json.loads(record.read_text("utf-8"))
    if training["settings"] != settings:
        raise SystemExit(f"{folder} was trained with {training['settings']}: choose another folder")
    phases, model, test = training["phases"], load_model(folder), load(data).test
    assert test is not None
    print(", ".join(f"{name} {seconds:,.1f} s" for name, seconds in phases.items()), file=sys.stderr)
    config, n = model.model_.config, training["documents"]
    negatives = config.dense.shortlist_size + config.dense.random_negatives
    pairs = config.dense.epochs * negatives * (n - validation_size(n, config))
    print(f"classifier: {pairs / phases['classifier'] / 1e6:.2f} M pairs/s", file=sys.stderr)
    report(model, folder, test, training)


def train(data: Path, folder: Path, record: Path, settings: dict[str, str]) -> None:
    """Train and save a model, and write down what it took."""
    documents = load(data).train
    model = LightDXML(PRESET, verbose=True, options=settings)
    _, seconds = timed(model.fit, documents.X, documents.Y)
    peak = peak_memory()["peak_mb"] / 1000
    model.save(folder)
    took = {"seconds": seconds, "peak_gb": peak, "documents": len(documents), "phases": phases_of(model)}
    record.write_text(json.dumps({**took, "settings": settings, "history": model.history_}), "utf-8")


def phases_of(model: LightDXML, refresh: int | None = None) -> dict[str, float]:
    """Return the seconds of each phase, of all refreshes or of one."""
    phases: dict[str, float] = {}
    for entry in model.history_:
        if refresh in (None, entry.get("refresh")):
            phases[entry["phase"]] = phases.get(entry["phase"], 0) + entry["seconds"]
    return phases


def report(model: LightDXML, folder: Path, test: Split, training: dict[str, Any]) -> None:
    """Predict the test documents, and print goals and measurements."""
    X = check_features(test.X)
    model.rank(X[:1000], 5)
    (labels, _), batch = timed(model.rank, X, 5)
    singles = single_documents(model, X)
    view = model.model_.views["nearness"]
    assert isinstance(view, NearnessView)
    sample = directions_of(view.encoder, Batch(X[:: max(1, X.shape[0] // SAMPLE)][:SAMPLE]))
    start, loading, answer = first_answer(folder, "trust")
    _, verified, _ = first_answer(folder, "verify")
    recall = indexes.recall_of_exact(view.index, sample, view.shortlist_size)
    rows: list[tuple[str, float, str, str, float]] = [
        ("training, s (goal: the paper's time)", training["seconds"], "{:,.0f}", "≤", 3535),
        ("peak memory, GB", training["peak_gb"], "{:.1f}", "≤", 10),
        ("model on disk, GB", sum(path.stat().st_size for path in folder.iterdir()) / 1e9, "{:.2f}", "≤", 1.4),
        ("prediction, ms per document (goal: the paper's time)", 1000 * batch / X.shape[0], "{:.2f}", "≤", 0.66),
        ("single document, median, ms", 1000 * statistics.median(singles), "{:.2f}", "≤", 3),
        ("single document, 99th percentile, ms", 1000 * float(np.percentile(singles, 99)), "{:.2f}", "≤", 10),
        ("recall of the exact shortlists (500 test documents)", recall, "{:.3f}", "≥", 0.95),
        ("load and first answer, program in memory, no checksums, s", loading + answer, "{:.2f}", "≤", 1),
        ("the same with all checksums (the default), s", verified + answer, "{:.2f}", "", 0),
        ("the same with Python's start and imports, no checksums, s", start, "{:.2f}", "", 0),
    ]
    print("| | Measured | Goal |\n|---|--:|--:|")
    for name, value, form, sign, goal in rows:
        missed = (sign == "≤" and value > goal) or (sign == "≥" and value < goal)
        wanted = f"{sign} {goal:,g}" + (", **missed**" if missed else "") if sign else ""
        print(f"| {name} | {form.format(value)} | {wanted} |")
    figures = evaluate(test.Y, labels, k=(1, 3, 5))
    print(f"| P@1 / 3 / 5 | {' / '.join(f'{figures[one]:.2f}' for one in ('P@1', 'P@3', 'P@5'))} | |")


def single_documents(model: LightDXML, X: csr_matrix) -> list[float]:
    """Return the seconds of each of some documents, one at a time."""
    rows = [X[i] for i in range(min(SINGLE, X.shape[0]))]
    times = [timed(model.rank, row, 5)[1] for row in [*rows[:20], *rows]]
    return times[20:]


def first_answer(folder: Path, how: str) -> tuple[float, float, float]:
    """Return the seconds of a new process from start to end, of loading the model, and of the first answer."""
    command = [sys.executable, "-c", FIRST_ANSWER, str(folder), how]
    subprocess.run(command, check=True, capture_output=True)  # Afterwards the files are in memory.
    done, seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True, text=True))
    loading, answer = map(float, done.stdout.split())
    return seconds, loading, answer


def labels(folder: Path) -> None:
    """Train the default preset at several numbers of labels, each in a new process, and print a table."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = "Labels | Training documents | Training | Peak memory | Model | ms per document, batch"
    columns += " | Single document, median | 99th percentile | P@1"
    print(f"| {columns} |\n|{'--:|' * 9}", flush=True)
    for n_labels in LABEL_COUNTS:
        recipe = Recipe(round(n_labels * DOCUMENTS_PER_LABEL), 5000, n_labels, WORDS, LABELS_PER_DOCUMENT)
        data = folder / f"data-{recipe.documents}-{n_labels}"
        if not data.exists():
            make(recipe, data.with_suffix(".part")).rename(data)
        cells = alone(measure_default, data, folder / f"model-{n_labels}")
        print(f"| {n_labels:,} | {recipe.documents:,} | {' | '.join(cells)} |", flush=True)


def measure_default(data: Path, folder: Path) -> list[str]:
    """Train the default preset, predict with the stored model, and return the cells of a row."""
    parts = load(data)
    assert parts.test is not None
    trained, seconds = timed(LightDXML().fit, parts.train.X, parts.train.Y)
    seconds -= phases_of(trained).get("compile", 0.0)
    peak = peak_memory()["peak_mb"] / 1000
    trained.save(folder)
    size, model, X = sum(path.stat().st_size for path in folder.iterdir()) / 1e6, load_model(folder), parts.test.X
    X = check_features(X)
    model.rank(X[:1000], 5)
    (found, _), batch = timed(model.rank, X, 5)
    singles = 1000 * np.array(single_documents(model, X))
    precision = evaluate(parts.test.Y, found, k=1)["P@1"]
    median, slow = np.percentile(singles, (50, 99))
    costs = [f"{seconds:.0f} s", f"{peak:.1f} GB", f"{size:.0f} MB", f"{1000 * batch / X.shape[0]:.2f}"]
    return [*costs, f"{median:.2f} ms", f"{slow:.2f} ms", f"{precision:.1f}"]


def points() -> Iterator[Point]:
    """Yield what to measure: one size is varied at a time, then documents and labels together."""

    def point(varied: str, n: float, labels: float, **settings: int) -> Point:
        return {"varied": varied, "documents": round(n), "labels": round(labels), "settings": SETTINGS | settings}

    for labels in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000):
        yield point("L", DOCUMENTS, labels)
    for documents in (20_000, 50_000, 100_000, 200_000, 485_176):
        yield point("N", documents, LABELS)
    for size in (25, 50, 100, 200, 400, 800):
        yield point("shortlist size", DOCUMENTS, LABELS, shortlist_size=size)
    for dim in (32, 64, 128, 256, 512):
        yield point("D", DOCUMENTS, LABELS, dim=dim)
    for labels in (1_000, 10_000, 100_000, 300_000, 670_091):
        yield point("N and L", labels * DOCUMENTS_PER_LABEL, labels)
    yield point("prediction", 0, MOST_LABELS)


def measure(point: Point, data: Path) -> Point:
    """Train one refresh and one epoch, and predict."""
    parts = load(data)
    assert parts.test is not None
    model = LightDXML(options=point["settings"]).fit(parts.train.X, parts.train.Y)
    seconds = phases_of(model, refresh=1)
    X = check_features(parts.test.X)
    model.rank(X[:1000], 5)
    _, seconds["prediction"] = timed(model.rank, X, 5)
    return {**point, "seconds": seconds, "test_documents": X.shape[0], **peak_memory()}


def measure_prediction(point: Point) -> Point:
    """Predict with a model of random label embeddings around topics: prediction needs no training."""
    rng, n, n_topics = np.random.default_rng(0), point["labels"], 60_000
    config = changed(Config(), point["settings"])
    D, k = config.dense.dim, config.dense.shortlist_size
    topics = rng.normal(size=(n_topics, D)).astype(np.float32)
    vectors = np.empty((n, D), dtype=np.float16)
    for first in range(0, n, 100_000):
        some = vectors[first : first + 100_000]
        noise = rng.normal(size=some.shape).astype(np.float32)
        some[:] = normalized(topics[rng.integers(0, n_topics, len(some))] + np.float32(0.7) * noise)
    words = topics[rng.integers(0, n_topics, WORDS)] + rng.normal(0, 0.5, (WORDS, D)).astype(np.float32)
    index, build = timed(lambda: indexes.build(vectors, queries=normalized(words[:256]), k=k))
    encoder, labels = Encoder(words.astype(np.float16)), np.arange(n, dtype=np.int32)
    views: dict[str, View] = {
        "nearness": NearnessView(encoder, labels, index, k),
        "classifier": ClassifierView(encoder, np.concatenate([vectors, np.zeros((n, 1), np.float16)], axis=1)),
    }
    model = Model(views, PaperBlend(0.5), config, WORDS, np.ones(n, dtype=np.int32), n, TailShift(0.0, 0.0))
    X = csr_matrix((np.ones(5000, np.float32), rng.integers(0, WORDS, 5000), np.arange(5001)), (5000, WORDS))
    predict(model, X[:1000], 5)
    _, batch = timed(predict, model, X, 5)
    singles = [timed(predict, model, X[i], 5)[1] for i in range(200)]
    recall = indexes.recall_of_exact(index, directions_of(encoder, Batch(X[:SAMPLE])), k)
    print(f"{n:,} labels: single document {1000 * statistics.median(singles):.1f} ms, recall {recall:.3f}")
    seconds = {"index": build, "prediction": batch}
    return {**point, "seconds": seconds, "test_documents": X.shape[0], **peak_memory()}


def growth(folder: Path) -> None:
    """Measure all points, print them with their exponents, and plot them."""
    folder.mkdir(parents=True, exist_ok=True)
    results: list[Point] = []
    for i, point in enumerate(points()):
        record = folder / f"point-{i}.json"
        if not record.exists():
            print(point, file=sys.stderr, flush=True)
            record.write_text(json.dumps(run_point(point, folder)), "utf-8")
        results.append(json.loads(record.read_text("utf-8")))
    print(table(results))
    plot(results, folder / "growth.png")


def run_point(point: Point, folder: Path) -> Point:
    if point["varied"] == "prediction":
        return alone(measure_prediction, point)
    data = folder / f"data-{point['documents']}-{point['labels']}"
    if not data.exists():
        recipe = Recipe(point["documents"], 5000, point["labels"], WORDS, LABELS_PER_DOCUMENT)
        make(recipe, data.with_suffix(".part")).rename(data)
    return alone(measure, point, data)


def size_of(point: Point) -> float:
    """Return the size that varies."""
    settings = point["settings"]
    sizes = {"N": point["documents"], "shortlist size": settings["shortlist_size"], "D": settings["dim"]}
    return float(sizes.get(point["varied"]) or point["labels"])


def cost_of(point: Point, phase: str) -> float:
    """Return seconds of training, milliseconds per document of prediction, or GB."""
    if phase == "memory":
        return float(point["peak_mb"]) / 1000
    seconds = float(point["seconds"].get(phase, 0))
    return 1000 * seconds / float(point["test_documents"]) if phase == "prediction" else seconds


def exponent(results: list[Point], phase: str) -> float:
    """Return the power of the size by which a cost grows, over the larger half of the sizes."""
    larger = results[len(results) // 2 :]
    costs = [max(1e-9, cost_of(point, phase)) for point in larger]
    power: float = np.polyfit(np.log([size_of(point) for point in larger]), np.log(costs), 1)[0]
    return power


def table(results: list[Point]) -> str:
    """Return all measurements and the exponents as Markdown."""
    columns = [f"{phase} {unit}" for phase, unit in PHASES.items()]
    lines = [" | ".join(["| varied | N | L | shortlist size | D", *columns, "peak MB |"]), "|---|" + "--:|" * 10]
    for varied in VARIED:
        group = [point for point in results if point["varied"] == varied]
        for point in group:
            settings = point["settings"]
            cells = [f"{point['documents']:,}", f"{point['labels']:,}", settings["shortlist_size"], settings["dim"]]
            cells += [f"{cost_of(point, phase):.3g}" for phase in PHASES]
            lines.append(f"| {varied} | {' | '.join(map(str, cells))} | {point['peak_mb']:,.0f} |")
        if len(group) > 2:
            powers = " | ".join(f"**{exponent(group, phase):.2f}**" for phase in [*PHASES, "memory"])
            lines.append(f"| exponent of {varied} |  |  |  |  | {powers} |")
    return "\n".join(lines)


def plot(results: list[Point], path: Path) -> None:
    """Draw time and memory against each size; the exponent is at the end of each line."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter, NullFormatter

    figure, grid = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axes, varied in zip(grid.flat, VARIED[:-1], strict=False):
        group = [point for point in results if point["varied"] == varied]
        for phase, unit in [*PHASES.items(), ("memory", "GB")]:
            further = [point for point in results if point["varied"] == "prediction"]
            shown = group + (further if phase == "prediction" and varied == "N and L" else [])
            x, y = [size_of(point) for point in shown], [cost_of(point, phase) for point in shown]
            style = "--" if phase == "memory" else "o-"
            label = f"{phase}, {'ms per document' if unit == 'ms' else unit}"
            (line,) = axes.plot(x, y, style, markersize=4, label=label)
            note = f" {exponent(group, phase):.2f}"
            axes.annotate(note, (x[-1], y[-1]), color=line.get_color(), size=8, va="center")
        axes.set(xscale="log", yscale="log", title=f"{varied} varied")
        axes.set_xticks([size_of(point) for point in group][::-2])
        axes.xaxis.set_major_formatter(EngFormatter(places=0, sep=""))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.12)
        axes.grid(alpha=0.25)
    last = grid.flat[-1]
    last.axis("off")
    last.legend(*grid.flat[0].get_legend_handles_labels(), loc="upper left", frameon=False)
    fixed = f"N {DOCUMENTS:,}, L {LABELS:,}, shortlist size {SETTINGS['shortlist_size']}, D {SETTINGS['dim']}"
    last.text(0, 0.1, f"Unless varied: {fixed}\nOne refresh, one epoch, {os.cpu_count()} cores\nAt the end: exponents")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("goals", help="train, predict and evaluate at the paper's largest size")
    run.add_argument("out", type=Path)
    run.add_argument("settings", nargs="*", help="settings as NAME=VALUE")
    default = commands.add_parser("labels", help="the default preset at 20,000, 100,000 and 670,091 labels")
    default.add_argument("out", type=Path)
    grow = commands.add_parser("growth", help="time and memory against N, L, shortlist size and D")
    grow.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "goals":
        goals(arguments.out, dict(one.split("=", 1) for one in arguments.settings))
    elif arguments.command == "labels":
        labels(arguments.out)
    else:
        growth(arguments.out)


if __name__ == "__main__":
    main()
