"""Subject indexing as in a library catalog: `python examples/subject_indexing.py [CATALOG]`.

A catalog is a folder with two files. `train.jsonl` has one record per line: `id`, `title`, `text` (the abstract) and
`labels` (URIs of concepts). `thesaurus.csv` says what the concepts are called: `uri,label_en,notation`. Words in titles
count twice. Concepts without a single record are suggested by their names. The result is a CSV file with suggestions
for new records and their scores, for a librarian to review. Low scores are omitted.

Without an argument, the example writes a small catalog first.
"""

from __future__ import annotations

import csv
import json
import sys
from itertools import combinations
from pathlib import Path

from lightdxml import LightDXML, Vocabulary
from lightdxml.data import load as load_data

# What concepts are called, and what records about them contain. Nothing was written about windmills yet.
THESAURUS = {
    "urn:c01": ("Beekeeping", "bees and honey", "hives, swarms and honey through the year"),
    "urn:c02": ("Orchards", "apple orchards", "pruning fruit trees and grafting old varieties"),
    "urn:c03": ("Local history", "a village chronicle", "parish registers, mills and families of the valley"),
    "urn:c04": ("Railways", "the branch line", "steam engines, stations and timetables"),
    "urn:c05": ("Bird watching", "birds of the marsh", "ringing, migration and nests of waders"),
    "urn:c06": ("Water supply", "wells and pipes", "pumps, reservoirs and clean drinking water"),
    "urn:c07": ("Windmills", "", ""),
}
NEW = [
    {"id": "n1", "title": "Honey from old orchards", "text": "How bees and fruit trees need each other."},
    {"id": "n2", "title": "Steam to the reservoir", "text": "The line that carried pipes and pumps up the valley."},
    {"id": "n3", "title": "Windmills of the marsh", "text": "Windmills and the nests of birds in them."},
]
MIN_SCORE = 0.2


def write_sample(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "thesaurus.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["uri", "label_en", "notation"])
        writer.writerows([uri, entry[0], uri[-2:]] for uri, entry in THESAURUS.items())
    used = [uri for uri, entry in THESAURUS.items() if entry[2]]
    with (folder / "train.jsonl").open("w", encoding="utf-8") as stream:
        for number, concepts in enumerate([*[(c,) for c in used], *combinations(used, 2)] * 6):
            title = " and ".join(THESAURUS[concept][1] for concept in concepts)
            text = "; ".join(THESAURUS[concept][2] for concept in concepts)
            record = {"id": f"r{number}", "title": title, "text": text, "labels": concepts}
            stream.write(json.dumps(record) + "\n")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("catalog")
    if len(sys.argv) == 1:
        write_sample(folder)
    data = load_data(folder / "train.jsonl")
    thesaurus = Vocabulary.load(folder / "thesaurus.csv")
    trained = LightDXML(title_weight=2.0, random_state=1).fit(
        data.train.texts, data.train.Y, label_names=data.label_names, vocabulary=thesaurus
    )
    trained.save("catalog-model")

    labels, scores = trained.rank([f"{record['title']}\n{record['text']}" for record in NEW], k=5)
    with Path("suggestions.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["record", "uri", "subject", "notation", "score"])
        for record, row, values in zip(NEW, labels.tolist(), scores.tolist(), strict=True):
            for label, score in zip(row, values, strict=True):
                if label >= 0 and score >= MIN_SCORE:
                    writer.writerow([record["id"], *trained.model_.label(label), f"{score:.2f}"])
    print(Path("suggestions.csv").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
