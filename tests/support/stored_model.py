"""Make the stored model of the tests again: `python -m tests.support.stored_model`.

Only before a release, and only if settings have changed. After a release the stored model stays as it is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lightdxml import LightDXML
from tests.support.configs import FOUR_VIEWS

FOLDER = Path(__file__).parents[1] / "models" / "format-3"
EXPECTED = FOLDER.with_suffix(".json")
ANIMALS = ["cat", "dog", "bird", "fish", "horse", "cow"]
SOUNDS = ["purring", "barking", "singing", "swimming", "neighing", "mooing"]
QUERIES = ["a purring cat", "a fish and a horse", "the barking cow", "nothing known", ""]


def main() -> None:
    """Train a model of all four views, save it, and write its predictions."""
    pairs = [(i % 6, i // 6 % 6) for i in range(120)]
    texts = [f"a {SOUNDS[i]} {ANIMALS[i]} and a {ANIMALS[j]}" for i, j in pairs]
    labels = [sorted({ANIMALS[i], ANIMALS[j]}) for i, j in pairs]
    settings = FOUR_VIEWS | {"dim": 8, "validation_fraction": 0.2, "tree.max_leaf": 1}
    model = LightDXML(options=settings).fit(texts, labels)
    # Times differ from run to run.
    model.history_ = [{"phase": "compile", "seconds": 1.0}]
    model.model_ = replace(model.model_, machines=())
    model.save(FOLDER)
    ids, scores = model.rank(QUERIES, 3)
    expected = {"texts": QUERIES, "labels": ids.tolist(), "scores": scores.round(6).tolist()}
    EXPECTED.write_text(json.dumps(expected | {"best": model.predict(QUERIES, k=1)}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
