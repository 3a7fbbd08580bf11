"""`lightdxml info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from lightdxml.cli.output import Json, ModelFolder, print_json, print_table


def run(model: ModelFolder, json: Json = False) -> None:
    """Show what a model is: its labels, features, settings, size, and how good it was on validation documents.

    Example: `lightdxml info my-model`
    """
    from lightdxml import storage

    manifest = storage.read_manifest(model)
    trained = storage.load(model)
    sizes = {path.name: path.stat().st_size for path in sorted(model.iterdir()) if path.is_file()}
    content = {
        "format": manifest["format"],
        "lightdxml": manifest.get("lightdxml"),
        "labels": trained.n_labels,
        "labels_with_documents": len(trained.shortlist.labels),
        "features": trained.n_features,
        "documents": trained.n_documents,
        "from": "features" if trained.vectorizer is None else "texts",
        "beta": trained.beta,
        "gamma": None if trained.sparse is None else trained.gamma,
        "tail_strength": trained.tail_strength,
        "tree_share": None if trained.tree is None else trained.tree_share,
        "tree_weights": 0 if trained.tree is None else len(trained.tree.weights),
        "sparse_weights": 0 if trained.sparse is None else len(trained.sparse.weights),
        "index": trained.shortlist.kind,
        "precision": str(trained.classifier.dtype),
        "validation": trained.metrics,
        "rounding": _of_history(model, "rounding"),
        "compressed": _of_history(model, "compression"),
        "bytes": sizes,
        "config": manifest["config"],
        "text": manifest["text"],
        "vectors": manifest["vectors"],
    }
    if json:
        print_json(content)
        return
    print_table(escape(str(model)), ("", "", ""), [*_rows(content), *_settings(content)])


def _of_history(model: Path, phase: str) -> dict[str, Any] | None:
    """Return what a model's history says of a phase, as of rounding to the precision that is kept."""
    from lightdxml import storage

    return next((entry for entry in storage.read_history(model) if entry.get("phase") == phase), None)


def _rows(content: dict[str, Any]) -> list[tuple[str, str, str]]:
    figures = content["validation"]
    rows = [
        ("written by", f"lightdxml {content['lightdxml']}", f"format {content['format']}"),
        ("labels", f"{content['labels']:,}", f"{content['labels_with_documents']:,} with training documents"),
        ("features", f"{content['features']:,}", f"from {content['from']}"),
        ("trained on", f"{content['documents']:,}", "documents"),
        ("on disk", f"{sum(content['bytes'].values()) / 1e6:,.1f} MB", content["precision"]),
        ("index", content["index"], "how labels near a document are searched"),
        ("β", f"{content['beta']:g}", "the classifier's share in a score, against nearness"),
        *(
            []
            if content["gamma"] is None
            else [("γ", f"{content['gamma']:g}", f"the sparse view's share; {content['sparse_weights']:,} weights")]
        ),
        *(
            []
            if content["tree_share"] is None
            else [("tree", f"{content['tree_share']:g}", f"the label tree; {content['tree_weights']:,} weights")]
        ),
        ("tail", f"{content['tail_strength']:g}", "the power of 1/propensity at --tail 1"),
        *(
            (name, f"{figures[f'{name}@1']:.2f}", f"@3 {figures[f'{name}@3']:.2f}, @5 {figures[f'{name}@5']:.2f}")
            for name in ("P", "PSP")
            if all(f"{name}@{k}" in figures for k in (1, 3, 5))
        ),
    ]
    rounding = content["rounding"] or {}
    try:
        lost = float(rounding["before"]["P@1"]) - float(rounding["after"]["P@1"])
    except (KeyError, TypeError, ValueError):
        return rows  # the model does not say
    rows.append(
        (f"{rounding.get('precision', content['precision'])} costs", f"{lost:+.2f}", "points of P@1 on validation")
    )
    if content["compressed"]:
        rows.append(("compressed", content["precision"], "after these figures were measured"))
    return rows


def _settings(content: dict[str, Any]) -> list[tuple[str, str, str]]:
    settings = {**content["config"], **(content["text"] or {})}
    return [("settings", "", escape(", ".join(f"{name}={value}" for name, value in settings.items())))]
