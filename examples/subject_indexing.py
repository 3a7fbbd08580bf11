"""Subject indexing as in a library catalog: `python examples/subject_indexing.py [CATALOG]`.

A catalog is a folder with two files. `train.jsonl` has one record per line: `id`, `title`, `text` (the abstract) and
`labels` (concepts of a thesaurus). `label_names.json` gives the preferred term of each concept. Words in titles count
twice. The result is a CSV file with suggestions for new records and their scores, for a librarian to review. Low scores
are omitted.

Without an argument, the example writes a small catalog first.
"""

from __future__ import annotations

import csv
import json
import sys
from itertools import combinations
from pathlib import Path

from lightdxml import LightDXML
from lightdxml.data import load as load_data

THESAURUS = {
    "c01": ("Beekeeping", "bees and honey", "hives, swarms and honey through the year"),
    "c02": ("Orchards", "apple orchards", "pruning fruit trees and grafting old varieties"),
    "c03": ("Local history", "a village chronicle", "parish registers, mills and families of the valley"),
    "c04": ("Railways", "the branch line", "steam engines, stations and timetables"),
    "c05": ("Bird watching", "birds of the marsh", "ringing, migration and nests of waders"),
    "c06": ("Water supply", "wells and pipes", "pumps, reservoirs and clean drinking water"),
}
NEW = [
    {"id": "n1", "title": "Honey from old orchards", "text": "How bees and fruit trees need each other."},
    {"id": "n2", "title": "Steam to the reservoir", "text": "The line that carried pipes and pumps up the valley."},
]
MIN_SCORE = 0.5


def write_sample(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    names = {concept: entry[0] for concept, entry in THESAURUS.items()}
    (folder / "label_names.json").write_text(json.dumps(names), encoding="utf-8")
    with (folder / "train.jsonl").open("w", encoding="utf-8") as stream:
        for number, concepts in enumerate([*[(c,) for c in THESAURUS], *combinations(THESAURUS, 2)] * 6):
            title = " and ".join(THESAURUS[concept][1] for concept in concepts)
            text = "; ".join(THESAURUS[concept][2] for concept in concepts)
            record = {"id": f"r{number}", "title": title, "text": text, "labels": concepts}
            stream.write(json.dumps(record) + "\n")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("catalog")
    if len(sys.argv) == 1:
        write_sample(folder)
    data = load_data(folder)
    trained = LightDXML(title_weight=2.0, random_state=1).fit(
        data.train.texts, data.train.Y, label_names=data.label_names
    )
    trained.save("catalog-model")

    scores = trained.scores([f"{record['title']}\n{record['text']}" for record in NEW], k=5)
    with Path("suggestions.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["record", "subject", "score"])
        for record, row in zip(NEW, scores, strict=True):
            found = sorted(zip(row.data, row.indices, strict=True), reverse=True)
            for score, concept in found:
                if score >= MIN_SCORE:
                    writer.writerow([record["id"], (data.label_names or [])[concept], f"{score:.2f}"])
    print(Path("suggestions.csv").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
