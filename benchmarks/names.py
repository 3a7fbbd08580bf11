"""What names of labels are worth: `python benchmarks/names.py [SET ...] [--data FOLDER] [--ngrams 1]`.

Every data set is trained twice with the same features of documents, without and with names, each time in a process of
its own. A document is never its own label in both. Prints P, PSP and the recall of labels with 0, 1 to 5 and more
training documents on the test part, seconds of training, and the size of the model. FOLDER holds one folder per data
set. A set with a file `vocabulary.tsv.gz` is trained with that vocabulary.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from measure import alone, timed

from lightdxml.cli.measure import inputs_of, measure
from lightdxml.data import load
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.estimator import LightDXML

SETS = ("wordnet", "see-also", "debian-relations", "eurlex57k", "citeulike-t", "kirjastonhoitaja")
LANGUAGES = {"kirjastonhoitaja": "fi"}
VOCABULARY = "vocabulary.tsv.gz"


def trained_and_measured(
    name: str, folder: Path, names: bool, ngrams: int, tail: float, options: dict[str, str]
) -> list[str]:
    """Return the cells of a row of the table."""
    path = folder / name
    data = load(path if path.exists() else name)
    concepts = Vocabulary.load(path / VOCABULARY) if (path / VOCABULARY).exists() else None
    train, dev = data.train, data.dev
    estimator = LightDXML(names=names, ngrams=ngrams, language=LANGUAGES.get(name, ""), options=options)
    held = None if dev is None else (inputs_of(dev), dev.Y, dev.ids)
    given: dict[str, Any] = {"label_names": data.label_names, "feature_names": data.feature_names, "ids": train.ids}
    _, seconds = timed(lambda: estimator.fit(inputs_of(train), train.Y, dev=held, vocabulary=concepts, **given))
    # Kernels that were compiled for the first time do not count.
    seconds -= sum(entry["seconds"] for entry in estimator.history_ if entry["phase"] == "compile")
    with tempfile.TemporaryDirectory() as saved:
        estimator.save(Path(saved) / "model")
        size = sum(one.stat().st_size for one in (Path(saved) / "model").iterdir()) / 1e6
    found = measure(estimator, data, tail)
    groups = " / ".join(f"{one.recall['R@10']:.1f}" if one.pairs else "–" for one in found.groups)
    cells = [" / ".join(f"{found.metrics[f'{one}@{k}']:.2f}" for k in (1, 3, 5)) for one in ("P", "PSP")]
    return [*cells, groups, f"{seconds:.1f} s", f"{size:.1f} MB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--ngrams", type=int, default=1)
    parser.add_argument("--tail", type=float, default=0.0)
    parser.add_argument("--only", choices=("without", "with"))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    options = dict(one.split("=", 1) for one in given.set)
    recall = "R@10 of labels with 0 / 1 to 5 / more documents"
    print(f"| Data set | Names | P@1 / 3 / 5 | PSP@1 / 3 / 5 | {recall} | Training | Model |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for name in given.sets:
        for label, names in (("without", False), ("with", True)):
            if given.only in (None, label):
                cells = alone(trained_and_measured, name, given.data, names, given.ngrams, given.tail, options)
                print(f"| {name} | {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
