"""`lightdxml info`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml.cli.changes import drift_as_json, drift_text, n_trained
from lightdxml.cli.output import Json, ModelFolder, print_json, print_table

if TYPE_CHECKING:
    from lightdxml.learning.drift import Drift
    from lightdxml.model.model import Model


def run(model: ModelFolder, json: Json = False) -> None:
    """Show the parts, size, settings and validation accuracy of a model.

    A view is one way to score labels, such as a linear classifier or label trees. The scores of all views are blended
    into one score. The weight of a view says how much it counts.

    Example: `lightdxml info my-model`
    """
    import numpy as np

    from lightdxml.cli.settings import nearest_preset
    from lightdxml.learning.drift import drift
    from lightdxml.learning.stored import at_one_moment, overview

    found = overview(model)
    stored, moved = found.stored, drift(found.stored.model, found.journal.entries)
    trained, manifest = stored.model, stored.manifest
    preset, settings = nearest_preset(trained.config, n_trained(trained, found.journal.entries))
    quantized = [entry for entry in stored.history if entry.get("phase") == "quantize"]
    content = {
        "format": manifest["format"],
        "lightdxml": manifest["lightdxml"],
        "documents": trained.n_documents,
        "labels": trained.n_labels,
        "labels_with_documents": int(np.count_nonzero(trained.label_frequency)),
        "labels_without_documents": int(np.count_nonzero(trained.label_frequency == 0)),
        "retired_labels": len(trained.retired),
        "concepts": None if trained.vocabulary is None else len(trained.vocabulary),
        "language": trained.language,
        "features": trained.n_features,
        "from": "features" if trained.vectorizer is None else "texts",
        **describe(trained),
        "preset": preset,
        "settings": settings,
        "quantized": quantized[-1] if quantized else None,
        "text": manifest["text"],
        "word_vectors": trained.word_vectors,
        "bytes": {name: entry["bytes"] for name, entry in sorted(manifest["files"].items())},
        "folder_bytes": at_one_moment(model, bytes_of),
        "training_data_bytes": found.kept_bytes or None,
        "steps_since_training": found.journal.step,
        "lessons": sum(entry.kind == "learn" for entry in found.journal.entries),
        "drift": drift_as_json(moved),
    }
    if json:
        print_json(content)
        return
    print_table(str(model), ("", "", ""), [*_rows(trained, content), *_learned(content, moved)])


def _learned(content: dict[str, Any], moved: Drift) -> list[tuple[str, str, str]]:
    """Return what a model needs to learn, and what it has learned since training."""
    from lightdxml.learning.summary import count

    kept, steps = content["training_data_bytes"], content["steps_since_training"]
    size = "not kept" if kept is None else f"{kept / 1e6:,.1f} MB"
    about = "`lightdxml learn` knows earlier documents only through weights" if kept is None else "kept for learning"
    rows = [("training data", size, about)]
    if steps:
        lessons, more = content["lessons"], "see lightdxml history"
        about = more if lessons == steps else f"of {count(steps, 'step')} since training: {more}"
        rows.append(("lessons", f"{lessons:,}", about))
        rows.append(("drift", "training is due" if moved.is_due else "", drift_text(moved)))
    return rows


def bytes_of(folder: Path) -> int:
    """Return the bytes of all files of a model; files that its versions share count once."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum({(one.st_dev, one.st_ino): one.st_size for one in found}.values())


def _parts(content: dict[str, Any]) -> str:
    """Return how much of a folder is for prediction, if it has something to learn from."""
    can_learn = content["training_data_bytes"] or content["steps_since_training"]
    return f"{sum(content['bytes'].values()) / 1e6:,.1f} MB of it for prediction" if can_learn else ""


def describe(model: Model) -> dict[str, Any]:
    """Return views, blend, accuracy and settings of a model for JSON."""
    weights = model.blend.weights
    return {
        "views": {name: {"weight": weights.get(name, 0.0), **view.facts()} for name, view in model.views.items()},
        "blend": model.blend.kind,
        "tail": asdict(model.shift),
        "metrics": model.metrics,
        "validation_documents": model.n_validation or None,
        "config": asdict(model.config),
    }


def _labels(content: dict[str, Any]) -> str:
    """Return how many labels have training documents, have none, and are retired."""
    parts = [f"{content['labels_with_documents']:,} with training documents"]
    if content["labels_without_documents"]:
        parts.append(f"{content['labels_without_documents']:,} without")
    if content["retired_labels"]:
        parts.append(f"{content['retired_labels']:,} retired: never suggested")
    return ", ".join(parts)


def _names(model: Model) -> list[tuple[str, str, str]]:
    """Return where the names of labels come from, if there is a vocabulary."""
    if model.vocabulary is None:
        return []
    from lightdxml.learning.summary import count

    used = "they are looked for in texts" if model.config.names.enabled else "they are only shown"
    language = f"names in {model.language}" if model.language else "names in all languages"
    return [("vocabulary", count(len(model.vocabulary), "concept"), f"{language}; {used}")]


def _rows(model: Model, content: dict[str, Any]) -> list[tuple[str, str, str]]:
    from lightdxml.cli.settings import plain

    validation = f"{model.n_validation:,} " if model.n_validation else ""
    rows = [
        ("written by", f"lightdxml {content['lightdxml']}", f"model format {content['format']}"),
        ("training documents", f"{content['documents']:,}", ""),
        ("labels", f"{content['labels']:,}", _labels(content)),
        *_names(model),
        ("features", f"{content['features']:,}", f"made from {content['from']}" if model.vectorizer else "given"),
        ("size on disk", f"{content['folder_bytes'] / 1e6:,.1f} MB", _parts(content)),
        ("views", f"{len(model.views)}", "ways to score labels, blended by their weights into one score"),
        *(
            (f"view: {name}", f"weight {content['views'][name]['weight']:.3g}", f"{view.about}: {view.summary()}")
            for name, view in model.views.items()
        ),
        ("tail", f"{model.shift.lowest:g} to {model.shift.highest:g}", "how strongly --tail 0 and 1 favor rare labels"),
        *(
            (
                f"{name}@1, 3, 5",
                ", ".join(f"{model.metrics[f'{name}@{k}']:.2f}" for k in (1, 3, 5)),
                f"on {validation}validation documents, in percent",
            )
            for name in ("P", "PSP")
            if f"{name}@5" in model.metrics
        ),
        ("preset", content["preset"], ", ".join(f"{name}={plain(one)}" for name, one in content["settings"].items())),
    ]
    if model.language is not None:
        rows.append(("language", model.language, "words in their base form"))
    if model.word_vectors is not None:
        rows.append(("word vectors", model.word_vectors, ""))
    if content["quantized"]:
        rows.append(("compressed", str(content["quantized"].get("precision")), "after P and PSP were measured"))
    return rows
