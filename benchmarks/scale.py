"""The paper's largest size on this machine, and how cost grows up to it.

`python benchmarks/scale.py goals DATA MODEL [NAME=VALUE …]` trains on made-up data like AmazonTitles-670K with the
paper's settings, predicts all test documents, and prints each goal beside what was measured. Data and a model that
are in their folders already are used again: what the training took is in MODEL.json. `python benchmarks/scale.py
growth OUT` measures one cycle (label encoder, index, shortlists, an epoch of the classifier) and prediction, each
point in a process of its own, fits exponents and plots them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from classifier_step import roofs
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml import load as stored_model
from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.data import load
from lightdxml.data.generator import Recipe, like, make
from lightdxml.encoder import Encoder, encode, unit_rows
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate
from lightdxml.model import Model, check_features, predict
from lightdxml.progress import Progress, peak_memory
from lightdxml.training.plan import validation_size

LIKE, PRESET = "AmazonTitles-670K", "paper/AmazonTitles-670K"
SINGLE, SAMPLE = 1000, 500
# Seconds until a process that has loaded a model gives its first answer.
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
# One cycle of these, unless a point says otherwise.
SETTINGS: dict[str, Any] = {"D": 128, "k": 100, "e_model": 1, "e_label": 1, "e_hat_label": 1, "sparse": False}
SETTINGS |= {"random_negatives": 0, "frequent_labels": 0, "batch_size": 256}
DOCUMENTS, LABELS, WORDS = 100_000, 100_000, 60_000
# A label of AmazonTitles-670K has so many documents of its own.
DOCUMENTS_PER_LABEL = 485_176 / 670_091
MOST_LABELS = 3_000_000
PHASES = ("label encoder", "index", "shortlist", "classifier", "prediction")
Point = dict[str, Any]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def disk(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def made(folder: Path, recipe: Recipe) -> None:
    """Make data in a process of its own, whose memory is not the training's; under another name until it is whole."""
    if not folder.exists():
        alone("make", json.dumps(asdict(recipe)), str(folder.with_suffix(".part")))
        folder.with_suffix(".part").rename(folder)


def alone(*arguments: str) -> str:
    """Return what this script prints for these arguments in a process of its own."""
    return subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def singles(model: LightDXML, X: csr_matrix) -> tuple[float, float]:
    """Return the median and the 99th percentile of milliseconds of a document alone."""
    rows = [X[i] for i in range(min(SINGLE, X.shape[0]))]
    for row in rows[:20]:
        model.rank(row, 5)
    found = []
    for row in rows:
        start = time.perf_counter()
        model.rank(row, 5)
        found.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(found, 50)), float(np.percentile(found, 99))


def phases_of(model: LightDXML, cycle: int | None = None) -> dict[str, float]:
    """Return the seconds of each phase, of all cycles or of one."""
    phases: dict[str, float] = {}
    for entry in model.history_:
        if cycle in (None, entry["cycle"]):
            phases[entry["phase"]] = phases.get(entry["phase"], 0) + entry["seconds"]
    return phases


def first_answer(folder: Path, how: str) -> tuple[float, float, float]:
    """Return seconds in which a new process gives its first answer, loads the model, and answers when it has it."""
    command = [sys.executable, "-c", FIRST_ANSWER, str(folder), how]
    subprocess.run(command, check=True, capture_output=True)
    done, whole = timed(lambda: subprocess.run(command, check=True, capture_output=True, text=True))
    loading, answer = done.stdout.split()
    return whole, float(loading), float(answer)


def goals(data: Path, folder: Path, settings: dict[str, Any]) -> None:
    made(data, like(LIKE))
    noted = folder.with_suffix(".json")
    if not (folder.exists() and noted.exists()):
        alone("train", str(data), str(folder), str(noted), json.dumps(settings))
    training = json.loads(noted.read_text("utf-8"))
    if training.get("settings", settings) != settings:
        raise SystemExit(f"{folder} was trained with {training['settings']}: give another folder")
    copied = float(alone("copy"))
    model = stored_model(folder)
    config, phases = model.model_.config, training["phases"]
    print({name: round(value, 1) for name, value in phases.items()})
    documents = training["documents"] - validation_size(training["documents"], config)
    pairs = config.e_model * (config.k + config.random_negatives) * documents
    print(f"classifier: {pairs / phases['classifier'] / 1e6:.2f} M pairs/s")
    # If each pair had a label of its own that is moved: weights in float32 and means in bfloat16, read and written.
    moved = 2 * (4 + 2) * (config.D + 1) * pairs / phases["classifier"] / 1e9
    print(f"at most {moved:.1f} GB/s of label rows; a copy reaches {copied:.1f} GB/s", flush=True)
    predicted(model, folder, load(data).test, training["seconds"], training["peak_gb"])


def train(data: Path, folder: Path, noted: Path, settings: dict[str, Any]) -> None:
    """Train and save a model, and note what it took."""
    parts, reading = timed(lambda: load(data))
    X, Y = parts.train.X, parts.train.Y
    print(f"data read in {reading:,.0f} s: X {X.shape}, {Y.nnz:,} labels of documents", file=sys.stderr, flush=True)
    model = LightDXML(preset=PRESET, verbose=True, **settings)
    _, seconds = timed(lambda: model.fit(X, Y))
    peak = peak_memory()["peak_mb"] / 1000
    model.save(folder)
    figures = {"seconds": seconds, "peak_gb": peak, "documents": X.shape[0], "phases": phases_of(model)}
    figures["settings"] = settings
    noted.write_text(json.dumps({**figures, "history": model.history_}), "utf-8")


def predicted(model: LightDXML, folder: Path, test: Any, train: float, peak: float) -> None:
    """Predict the test documents and print the table of goals."""
    X = check_features(test.X)
    model.rank(X[:1000], 5)
    (labels, _), predict = timed(lambda: model.rank(X, 5))
    figures = evaluate(test.Y, labels, k=(1, 3, 5))
    p50, p99 = singles(model, X)
    sample = unit_rows(encode(model.model_.encoder, X[:: X.shape[0] // SAMPLE][:SAMPLE]))
    recall = shortlists.recall_of_exact(model.model_.shortlist, sample, model.model_.config.k)
    whole, loading, answer = first_answer(folder, "trust")
    _, verifying, _ = first_answer(folder, "verify")
    rows = [
        ("training, s", train, 3535, "≤"),
        ("peak memory, GB", peak, 10, "≤"),
        ("model on disk, GB", disk(folder), 1.4, "≤"),
        ("batch, ms a document", 1000 * predict / X.shape[0], 0.66, "≤"),
        ("alone, ms, p50", p50, 3, "≤"),
        ("alone, ms, p99", p99, 10, "≤"),
        ("share of exact shortlists", recall, 0.95, "≥"),
        ("loading and first answer, s", loading + answer, 1, "≤"),
        ("… checksums compared, s", verifying + answer, 1, "≤"),
        ("… with Python and its imports, s", whole, 1, "≤"),
    ]
    print(f"{'':34} {'measured':>10} {'goal':>8}")
    for name, value, goal, sign in rows:
        reached = value <= goal if sign == "≤" else value >= goal
        print(f"{name:34} {value:10.3f} {sign} {goal:6g} {'' if reached else '  not reached'}")
    print(", ".join(f"P@{k} {figures[f'P@{k}']:.2f}" for k in (1, 3, 5)), f"on {X.shape[0]:,} test documents")
    print(f"{os.cpu_count()} cores")


def points() -> Iterator[Point]:
    """Yield what to measure: one size at a time is varied, then documents and labels together as in the paper's set."""
    fixed = {"documents": DOCUMENTS, "labels": LABELS}
    for labels in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000):
        yield {**fixed, "labels": labels, "varied": "L"}
    for documents in (20_000, 50_000, 100_000, 200_000, 485_176):
        yield {**fixed, "documents": documents, "varied": "N"}
    for k in (25, 50, 100, 200, 400, 800):
        yield {**fixed, "k": k, "varied": "k"}
    for D in (32, 64, 128, 256, 512):
        yield {**fixed, "D": D, "varied": "D"}
    for labels in (1_000, 10_000, 100_000, 300_000, 670_091):
        yield {"documents": round(labels * DOCUMENTS_PER_LABEL), "labels": labels, "varied": "N and L"}


def measure(point: Point, folder: Path) -> Point:
    """Run one cycle on made-up data of these sizes, and predict."""
    sizes = point["documents"], point["labels"]
    data = folder / "data-{}-{}".format(*sizes)
    made(data, Recipe(sizes[0], 5000, sizes[1], WORDS, 5.39))
    parts = load(data)
    settings = SETTINGS | {name: point[name] for name in ("k", "D") if name in point}
    model = LightDXML(**settings).fit(parts.train.X, parts.train.Y)
    seconds = phases_of(model, cycle=1)
    assert parts.test is not None
    X = check_features(parts.test.X)
    model.rank(X[:1000], 5)
    _, seconds["prediction"] = timed(lambda: model.rank(X, 5))
    kinds = [entry["kind"] for entry in model.history_ if "kind" in entry]
    return {**point, "seconds": seconds, "kinds": kinds, "test_documents": X.shape[0], **peak_memory()}


def measure_most(D: int = 128, k: int = 100) -> Point:
    """Predict with a made-up model of three million labels: training is not needed to see what answers take."""
    rng = np.random.default_rng(0)
    n, topics, words = MOST_LABELS, 60_000, WORDS
    centres = rng.normal(size=(topics, D)).astype(np.float32)
    vectors = np.empty((n, D), dtype=np.float16)
    for first, last in parallel.fixed_chunks(n, 100_000):
        near = centres[rng.integers(0, topics, last - first)] + 0.7 * rng.normal(size=(last - first, D))
        vectors[first:last] = near / np.linalg.norm(near, axis=1, keepdims=True)
    classifier = np.concatenate([vectors, np.zeros((n, 1), dtype=np.float16)], axis=1)
    labels = np.arange(n, dtype=np.int32)
    X = csr_matrix((np.ones(5000, np.float32), rng.integers(0, words, 5000), np.arange(5001)), (5000, words))
    word_vectors = centres[rng.integers(0, topics, words)] + 0.5 * rng.normal(size=(words, D)).astype(np.float32)
    queries = unit_rows(word_vectors[:256])
    index, build = timed(lambda: shortlists.build(labels, vectors, "auto", queries=queries, k=k))
    nowhere = np.empty(0, dtype=np.int32)
    frequency = np.ones(n, dtype=np.int32)
    model = Model(
        Encoder(word_vectors.astype(np.float16)), classifier, index, nowhere, 0.5, Config(D=D, k=k, sparse=False),
        label_frequency=frequency, n_documents=n,
    )  # fmt: skip
    predict(model, X[:1000], 5)
    _, seconds_of_all = timed(lambda: predict(model, X, 5))
    alone = [timed(lambda row=X[i]: predict(model, row, 5))[1] for i in range(200)]  # type: ignore[misc]
    recall = shortlists.recall_of_exact(index, unit_rows(encode(model.encoder, X[:SAMPLE])), k)
    seconds = {"index": build, "prediction": seconds_of_all, "alone": float(np.median(alone))}
    point = {"documents": 0, "labels": n, "varied": "prediction", "kinds": [index.kind], "recall": recall}
    return {**point, "seconds": seconds, "test_documents": X.shape[0], **peak_memory()}


def growth(folder: Path) -> None:
    """Measure all points, each in its own process and only once; then say by what power costs grow, and plot it."""
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for i, point in enumerate([*points(), {"varied": "prediction"}]):
        kept = folder / f"point-{i}.json"
        if not kept.exists():
            print(point, flush=True)
            alone("point", json.dumps(point), str(folder), str(kept))
        results.append(json.loads(kept.read_text("utf-8")))
    print(table(results))
    plot(results, folder / "growth.png")


def exponent(sizes: list[float], costs: list[float]) -> float:
    """Return by what power of the size the cost grows, over the larger half of the sizes."""
    half = len(sizes) // 2
    slope: float = np.polyfit(np.log(sizes[half:]), np.log(costs[half:]), 1)[0]
    return slope


def size_of(point: Point) -> float:
    name = {"L": "labels", "N": "documents", "N and L": "labels", "prediction": "labels"}.get(point["varied"])
    size: float = point[name] if name else point[point["varied"]]
    return size


def cost_of(point: Point, phase: str) -> float:
    """Return seconds of training, or milliseconds of a document."""
    seconds: float = point["seconds"].get(phase, 0.0)
    return 1000 * seconds / point["test_documents"] if phase == "prediction" else seconds


def table(results: list[Point]) -> str:
    """Return all measurements and the exponents as Markdown."""
    names = [
        "varied",
        "N",
        "L",
        "k",
        "D",
        "label encoder s",
        "index s",
        "shortlists s",
        "classifier s",
        "prediction ms",
    ]
    lines = ["| " + " | ".join([*names, "peak MB"]) + " |"]
    lines.append("|---|" + "--:|" * 10)
    for varied in ("L", "N", "k", "D", "N and L", "prediction"):
        those = [point for point in results if point["varied"] == varied]
        for point in those:
            settings = SETTINGS | point
            costs = [cost_of(point, phase) for phase in PHASES]
            cells = [f"{point['documents']:,}", f"{point['labels']:,}", settings["k"], settings["D"]]
            cells += [f"{cost:.3g}" for cost in costs] + [f"{point['peak_mb']:,.0f}"]
            lines.append("| " + " | ".join(map(str, [varied, *cells])) + " |")
        if len(those) > 2:
            sizes = [size_of(point) for point in those]
            powers = [exponent(sizes, [cost_of(point, phase) or 1e-9 for point in those]) for phase in PHASES]
            powers.append(exponent(sizes, [point["peak_mb"] for point in those]))
            cells = [f"**{power:.2f}**" for power in powers]
            lines.append("| " + " | ".join([f"grows with {varied} by the power", "", "", "", "", *cells]) + " |")
    return "\n".join(lines)


def plot(results: list[Point], path: Path) -> None:
    """Draw time and memory against each size, with the powers fitted at the end of each line."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, grid = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axes, varied in zip(grid.flat, ("L", "N", "k", "D", "N and L"), strict=False):
        those = [point for point in results if point["varied"] == varied]
        sizes = [size_of(point) for point in those]
        most = [point for point in results if point["varied"] == "prediction" and varied == "N and L"]
        for phase in PHASES:
            costs = [cost_of(point, phase) for point in those]
            further = most if phase == "prediction" else []
            label = f"{phase}, {'ms a document' if phase == 'prediction' else 's'}"
            places = sizes + [size_of(point) for point in further], costs + [cost_of(point, phase) for point in further]
            (line,) = axes.plot(*places, marker="o", markersize=4, label=label)
            at_end(axes, places, exponent(sizes, costs), line.get_color())
        memory = [point["peak_mb"] / 1000 for point in those]
        axes.plot(sizes, memory, "--", color="#888888", label="peak memory, GB")
        at_end(axes, (sizes, memory), exponent(sizes, memory), "#888888")
        axes.set(xscale="log", yscale="log", title=f"{varied} varied")
        axes.set_xticks(apart([*sizes, *[size_of(point) for point in most]]))
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.12)
        axes.grid(alpha=0.25)
    last = grid.flat[5]
    last.axis("off")
    last.legend(*grid.flat[0].get_legend_handles_labels(), loc="upper left", frameon=False, fontsize=11)
    fixed = f"N {DOCUMENTS:,}, L {LABELS:,}, k {SETTINGS['k']}, D {SETTINGS['D']} where not varied"
    said = (fixed, f"One cycle, one epoch, {os.cpu_count()} cores")
    last.text(
        0, 0.1, "\n".join([*said, "At the end of a line: by what power it grows,", "over the larger half of the sizes"])
    )
    figure.savefig(path, dpi=110)


def at_end(axes: Any, places: tuple[list[float], list[float]], power: float, color: str) -> None:
    axes.annotate(
        f"{power:.2f}", (places[0][-1], places[1][-1]), (5, -3), textcoords="offset points", color=color, size=8
    )


def apart(sizes: list[float]) -> list[float]:
    """Return the sizes that are far enough apart to be written below an axis, the largest among them."""
    kept: list[float] = []
    for size in reversed(sizes):
        if not kept or kept[-1] / size > 2.3:
            kept.append(size)
    return kept


def short(value: float) -> str:
    """Return a size as 3M, 670K or 25."""
    for unit, letter in ((1_000_000, "M"), (1000, "K")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("goals", help="train, predict and evaluate at the paper's largest size")
    run.add_argument("data", type=Path)
    run.add_argument("model", type=Path)
    run.add_argument("settings", nargs="*", help="settings as name=value")
    grow = commands.add_parser("growth", help="time and memory against N, L, k and D")
    grow.add_argument("out", type=Path)
    trains = commands.add_parser("train", help="the training of `goals`, for its own use")
    for name in ("data", "model", "noted"):
        trains.add_argument(name, type=Path)
    trains.add_argument("settings", type=json.loads)
    commands.add_parser("copy", help="GB/s of a large copy")
    makes = commands.add_parser("make", help="data, for its own use")
    makes.add_argument("recipe", type=json.loads)
    makes.add_argument("folder", type=Path)
    one = commands.add_parser("point", help="one point of `growth`, for its own use")
    one.add_argument("point", type=json.loads)
    one.add_argument("folder", type=Path)
    one.add_argument("kept", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "goals":
        goals(arguments.data, arguments.model, dict(one.split("=", 1) for one in arguments.settings))
    elif arguments.command == "growth":
        growth(arguments.out)
    elif arguments.command == "train":
        train(arguments.data, arguments.model, arguments.noted, arguments.settings)
    elif arguments.command == "copy":
        print(roofs()[1])
    elif arguments.command == "make":
        make(Recipe(**arguments.recipe), arguments.folder, Progress(show=True), overwrite=True)
    else:
        point = arguments.point
        found = measure_most() if point["varied"] == "prediction" else measure(point, arguments.folder)
        arguments.kept.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
