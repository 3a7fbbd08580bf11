"""From a CSV file to predictions: `python examples/own_csv.py [my.csv [TEXT]]`.

The CSV has the columns `text` and `labels`; `title` and `id` are optional. A cell can hold several labels, separated
by |. Without an argument, the example writes a small CSV file first.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from lightdxml import LightDXML, load
from lightdxml.data import load as load_data

KITCHEN = {
    "knead the dough and bake it in the oven": ["baking", "bread"],
    "whisk eggs and sugar, then bake the cake": ["baking", "dessert"],
    "let the yeast dough rise overnight": ["bread"],
    "freeze the cream with berries and sugar": ["dessert", "fruit"],
    "slice the berries and the apples": ["fruit"],
}


def write_sample(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "labels"])
        for _ in range(12):
            writer.writerows([text, "|".join(labels)] for text, labels in KITCHEN.items())


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("kitchen.csv")
    if len(sys.argv) == 1:
        write_sample(path)
    data = load_data(path)
    trained = LightDXML(random_state=1).fit(data.train.texts, data.train.Y, label_names=data.label_names)
    trained.save("my-model")

    again = load("my-model")
    text = sys.argv[2] if len(sys.argv) > 2 else "bake a cake with apples"
    print(f"{text!r}: {', '.join(map(str, again.predict(text, k=3)))}")
    best = again.explain(text, k=1)[0]
    words = ", ".join(f"{word} {adds:+.3f}" for word, adds in best.parts)
    print(f"why {best.label} ({best.score:.3f}): {words}")


if __name__ == "__main__":
    main()
