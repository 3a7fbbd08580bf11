"""LightDXML beside Annif's MLLM, Bonsai (omikuji) and their ensemble, where labels are concepts of a vocabulary.

`LIGHTDXML_ANNIF=annif-env/bin/annif NLTK_DATA=nltk python benchmarks/annif.py DATA OUT [--again lightdxml]`

DATA has two folders of JSON Lines (`id`, `title`, `text`, `labels`), compressed by gzip: `kirjastonhoitaja` with
`train`, `test` and `vocabulary.tsv`, and `eurlex57k` with `train` and `label_names.json`. 18,000 documents of the
latter are drawn at random, 3,000 of them to test on. OUT receives the data as the systems read them, the models, the
suggestions and what they took. What is in OUT is not computed again, unless `--again` names the system. `--table`
only prints.

Annif has an environment of its own: `python3 -m venv annif-env && annif-env/bin/pip install "annif[omikuji]"`. It
needs NLTK's data `punkt_tab` in the folder `tokenizers` of NLTK_DATA.

All systems run from their command lines on one thread, with the same documents and the preferred labels of the same
vocabulary. Seconds are CPU time of whole commands. Annif reads the vocabulary before, LightDXML while it trains.
LightDXML runs twice, and the second time counts: the first one compiles. Annif's systems have no seed: their figures
vary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import timed
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate

ANNIF = os.environ.get("LIGHTDXML_ANNIF", "annif")
LIGHTDXML = [sys.executable, "-m", "lightdxml"]
SUGGESTIONS = 100
# The settings of Bonsai in Annif's documentation; what is not named here is Annif's default.
PROJECTS = """
[DEFAULT]
language={language}
analyzer={analyzer}
vocab=vocabulary
[mllm]
backend=mllm
[bonsai]
backend=omikuji
cluster_balanced=False
cluster_k=100
max_depth=3
[ensemble]
backend=ensemble
sources=mllm,bonsai
[tuned-ensemble]
backend=ensemble
sources=mllm:{mllm},bonsai:{bonsai:.2f}
"""
# Labels by their number of training documents: the first and last number of each group.
GROUPS = {"0": (0, 0), "1–5": (1, 5), ">5": (6, sys.maxsize)}
COLUMNS = ("F1@5", "P@1/3/5", "nDCG@10", *(f"R@10[{group}]" for group in GROUPS), "train CPU s", "predict CPU s", "MB")
Document = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A data set: its language, Annif's analyzer, options of LightDXML, how URIs begin, and sizes if it is drawn.

    `mllm` is the weight of MLLM in the tuned ensemble: the best F1@5 in steps of 0.05, on a fifth of the training
    documents (of models without them) or on 1,000 documents of the dev part. Tuning does not count as training time.
    """

    name: str
    language: str
    analyzer: str
    mllm: float
    options: tuple[str, ...] = ()
    prefix: str = ""
    drawn: tuple[int, int] | None = None


@dataclass(frozen=True)
class System:
    """How to train a system and get suggestions as JSON Lines; of several rounds the last one counts.

    `models` are the folders of its models, `parts` the systems that are trained for it.
    """

    train: Sequence[str]
    suggest: Sequence[str]
    models: tuple[Path, ...]
    parts: tuple[str, ...] = ()
    rounds: int = 1


TASKS = (
    Task("kirjastonhoitaja", "fi", "simplemma(fi)", 0.3, options=("--language", "fi")),
    Task("eurlex57k", "en", "snowball(english)", 0.15, prefix="http://eurovoc.europa.eu/", drawn=(15_000, 3_000)),
)


def systems(task: Task, folder: Path) -> dict[str, System]:
    """Return all systems, with the files of a folder in their commands."""
    train, test, model = folder / "train", folder / "test", folder / "model"
    index = [ANNIF, "index", "--no-include-doc", "--limit", str(SUGGESTIONS), "--output", "-"]
    learn = [
        *LIGHTDXML,
        "train",
        f"{train}.jsonl",
        "--model",
        f"{model}",
        "--force",
        "--vocabulary",
        f"{folder}/vocabulary.tsv",
    ]
    predict = [*LIGHTDXML, "predict", f"{model}", f"{test}.jsonl", "--json", "-k", str(SUGGESTIONS), "--n-jobs", "1"]
    parts = {name: folder / "data" / "projects" / name for name in ("mllm", "bonsai")}
    annif = {
        name: System([ANNIF, "train", "--jobs", "1", name, f"{train}.tsv"], [*index, name, f"{test}.tsv"], (part,))
        for name, part in parts.items()
    }
    ensembles = {
        name: System((), [*index, name, f"{test}.tsv"], tuple(parts.values()), tuple(parts))
        for name in ("ensemble", "tuned-ensemble")
    }
    own = {
        "lightdxml": System([*learn, *task.options, "--n-jobs", "1"], predict, (model,), rounds=2),
        "lightdxml --tail 0.5": System((), [*predict, "--tail", "0.5"], (model,), ("lightdxml",)),
    }
    return annif | ensembles | own


def read(path: Path) -> list[Document]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def prepare(task: Task, source: Path, folder: Path) -> None:
    """Write documents, vocabulary and projects as LightDXML and Annif read them."""
    parts = {"train": read(source / "train.jsonl.gz")}
    if task.drawn is None:
        parts["test"] = read(source / "test.jsonl.gz")
        vocabulary = gzip.decompress((source / "vocabulary.tsv.gz").read_bytes()).decode("utf-8")
    else:
        chosen = random.Random(0).sample(parts["train"], sum(task.drawn))
        parts = {"train": chosen[: task.drawn[0]], "test": chosen[task.drawn[0] :]}
        names = json.loads(gzip.decompress((source / "label_names.json.gz").read_bytes()))
        vocabulary = "".join(f"<{task.prefix}{label}>\t{name}\n" for label, name in names.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocabulary.tsv").write_text(vocabulary, "utf-8")
    projects = PROJECTS.format(language=task.language, analyzer=task.analyzer, mllm=task.mllm, bonsai=1 - task.mllm)
    (folder / "projects.cfg").write_text(projects, "utf-8")
    for name, documents in parts.items():
        found = [{**one, "labels": [task.prefix + label for label in one["labels"]]} for one in documents]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(document) + "\n" for document in found), "utf-8")
        (folder / f"{name}.tsv").write_text("".join(map(as_tsv, found)), "utf-8")
    run([ANNIF, "load-vocab", "--language", task.language, "vocabulary", f"{folder}/vocabulary.tsv"], folder)


def as_tsv(document: Document) -> str:
    text = " ".join(f"{document['title']}\n{document['text']}".split())
    return f"{text}\t{' '.join(f'<{uri}>' for uri in document['labels'])}\n"


def run(command: Sequence[str], folder: Path, output: Path | None = None) -> float:
    """Run a command and return its CPU seconds; what it prints is in a file, and its messages in a log."""
    annif = {"ANNIF_PROJECTS": f"{folder}/projects.cfg", "ANNIF_DATADIR": f"{folder}/data"}
    # One thread for the matrix products of all libraries, too.
    environment = {**os.environ, **annif, "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (output or Path(os.devnull)).open("wb") as stream, (folder / "log.txt").open("ab") as log:
        subprocess.run(command, stdout=stream, stderr=log, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, system: System, folder: Path) -> None:
    """Train a system, write its suggestions, and write down what it took."""
    part = folder / f"{name}.part"
    for _ in range(system.rounds):
        train = run(system.train, folder) if system.train else 0.0
        suggest, wall = timed(run, system.suggest, folder, part)
    files = (path for model in system.models for path in model.rglob("*") if path.is_file())
    # Annif keeps its training data beside its models, for the next training.
    size = sum(path.stat().st_size for path in files if "-train." not in path.name)
    took = {"train CPU s": train, "predict CPU s": suggest, "predict wall s": wall, "MB": size / 1e6}
    (folder / f"{name}.json").write_text(json.dumps(took), "utf-8")
    part.rename(folder / f"{name}.jsonl")


def read_lines(path: Path) -> list[Document]:
    """Return the objects of a file of JSON Lines; other lines are messages of omikuji."""
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream if line.startswith("{")]


def suggestions(path: Path) -> list[list[str]]:
    """Return the URIs that a system suggests for each document, best first."""
    lines = read_lines(path)
    key = "results" if "results" in lines[0] else "labels"
    return [[one["uri"] for one in line[key]] for line in lines]


def score(truth: list[list[str]], ranked: list[list[str]], frequency: Counter[str]) -> dict[str, float]:
    """Return the accuracy of ranked labels in percent.

    F1@5 is the mean over documents, as in Annif. R@10 of a group of labels is the share of their occurrences that are
    among the first ten.
    """
    number = {uri: j for j, uri in enumerate(sorted({uri for row in [*truth, *ranked] for uri in row}))}
    cells = [(i, number[uri]) for i, true in enumerate(truth) for uri in true]
    Y = csr_matrix(([1.0] * len(cells), tuple(zip(*cells, strict=True))), (len(truth), len(number)))
    result = evaluate(Y, [[number[uri] for uri in row] for row in ranked], (1, 3, 5, 10))
    f1 = [2 * len({*true} & {*row[:5]}) / (len(true) + len(row[:5])) for true, row in zip(truth, ranked, strict=True)]
    result["F1@5"] = 100 * sum(f1) / len(f1)
    pairs = [(frequency[uri], uri in row[:10]) for true, row in zip(truth, ranked, strict=True) for uri in true]
    for group, (first, last) in GROUPS.items():
        hits = [hit for documents, hit in pairs if first <= documents <= last]
        result[f"R@10[{group}]"] = 100 * sum(hits) / max(1, len(hits))
    return result


def table(task: Task, folder: Path) -> str:
    """Return a Markdown table of the systems whose suggestions are in the folder."""
    truth = [document["labels"] for document in read_lines(folder / "test.jsonl")]
    frequency = Counter(uri for document in read_lines(folder / "train.jsonl") for uri in document["labels"])
    lines = [f"| {task.name} | {' | '.join(COLUMNS)} |", "|---|" + "--:|" * len(COLUMNS)]
    for name, system in systems(task, folder).items():
        if (folder / f"{name}.jsonl").exists():
            took = [json.loads((folder / f"{one}.json").read_text("utf-8")) for one in (name, *system.parts)]
            found = {**took[0], **score(truth, suggestions(folder / f"{name}.jsonl"), frequency)}
            found["train CPU s"] = sum(one["train CPU s"] for one in took)
            figures = {column: f"{found[column]:.1f}" for column in COLUMNS if column in found}
            figures["P@1/3/5"] = "/".join(f"{found[f'P@{k}']:.1f}" for k in (1, 3, 5))
            lines.append(f"| {name} | {' | '.join(figures[column] for column in COLUMNS)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("out", type=Path, help="the folder for data, models and suggestions")
    parser.add_argument("--only", choices=[task.name for task in TASKS], help="one data set")
    parser.add_argument("--again", action="append", default=[], help="a system to run again; may be repeated")
    parser.add_argument("--table", action="store_true", help="only print the tables of what is in OUT")
    arguments = parser.parse_args()
    if not arguments.table and shutil.which(ANNIF) is None:
        parser.error(f"{ANNIF} does not run: set LIGHTDXML_ANNIF to the annif of its environment, see --help")
    for task in TASKS:
        folder = arguments.out / task.name
        if arguments.only not in (None, task.name):
            continue
        if not (folder / "data").exists():
            prepare(task, arguments.data / task.name, folder)
        for name, system in systems(task, folder).items():
            again = {name, *system.parts} & {*arguments.again}
            if not arguments.table and (again or not (folder / f"{name}.jsonl").exists()):
                print(f"{task.name}: {name} …", file=sys.stderr)
                measure(name, system, folder)
        print(table(task, folder), flush=True)


if __name__ == "__main__":
    main()
