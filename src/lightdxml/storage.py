"""A model on disk: a folder with arrays (safetensors), a manifest and names (JSON). Loading it runs no code."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.model import Model
from lightdxml.text.tfidf import Vectoriser

FORMAT = 1
_MANIFEST, _ARRAYS, _LABELS, _WORDS, _HISTORY = (
    "manifest.json",
    "arrays.safetensors",
    "label_names.json",
    "vocabulary.json",
    "history.json",
)


def check_target(folder: Path) -> None:
    """Raise where a model must not be written: over something that is no model."""
    if folder.exists() and not (folder / _MANIFEST).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} holds something that is no model: choose another folder")


def save(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    """Write a model; the folder appears, or replaces an older model, only when it is complete."""
    folder = folder.resolve()
    check_target(folder)
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    fresh.mkdir(parents=True)
    try:
        _write(model, fresh, version, history)
        _put_in_place(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _put_in_place(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old)


def _write(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    arrays = {
        "word_vectors": model.encoder.vectors,
        "classifier": model.classifier,
        "labels": model.shortlist.labels,
        "label_embeddings": model.shortlist.vectors,
        "everywhere": model.everywhere,
    }
    if model.encoder.residual is not None:
        arrays["residual"], arrays["residual_bias"] = model.encoder.residual.R, model.encoder.residual.bias
    if model.vectoriser is not None:
        arrays["idf"] = model.vectoriser.idf
        _write_json(folder / _WORDS, model.vectoriser.vocabulary)
    if model.label_names is not None:
        _write_json(folder / _LABELS, list(model.label_names))
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / _ARRAYS)
    _write_json(folder / _HISTORY, history)
    manifest = {
        "format": FORMAT,
        "lightdxml": version,
        "config": asdict(model.config),
        "beta": model.beta,
        "index": model.shortlist.kind,
        "relu": model.encoder.relu,
        "named": model.label_names is not None,
        "metrics": model.metrics,
    }
    _write_json(folder / _MANIFEST, manifest)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def load(folder: Path) -> Model:
    """Read a model that `save` wrote."""
    if not (folder / _MANIFEST).is_file():
        raise ValueError(f"{folder} is no model: there is no {_MANIFEST} in it")
    manifest = _read_json(folder / _MANIFEST)
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise ValueError(f"{folder} has format {found!r} and this version reads {FORMAT}: update lightdxml")
    try:
        return _assemble(folder, manifest, load_file(folder / _ARRAYS))
    except (SafetensorError, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error


def _assemble(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    config = Config(**manifest["config"])
    names = _read_names(folder / _LABELS) if manifest["named"] else None
    vectoriser = Vectoriser(_read_names(folder / _WORDS), arrays["idf"]) if "idf" in arrays else None
    residual = Residual(arrays["residual"], arrays["residual_bias"]) if "residual" in arrays else None
    beta, kind = manifest["beta"], manifest["index"]
    if not isinstance(beta, int | float) or not 0 <= beta <= 1 or kind not in ("exact", "hnsw"):
        raise ValueError(f"its manifest says beta {beta!r} and index {kind!r}")
    _check_arrays(arrays, config)
    if names is not None and len(names) != len(arrays["classifier"]):
        raise ValueError(f"{len(names)} label names for {len(arrays['classifier'])} labels")
    if vectoriser is not None and not len(vectoriser.vocabulary) == len(vectoriser.idf) == len(arrays["word_vectors"]):
        raise ValueError("its vocabulary and its word vectors do not fit together")
    return Model(
        encoder=Encoder(arrays["word_vectors"], bool(manifest["relu"]), residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], kind),
        everywhere=arrays["everywhere"],
        beta=float(beta),
        config=config,
        label_names=names,
        vectoriser=vectoriser,
        metrics={str(name): float(value) for name, value in manifest["metrics"].items()},
    )


def _check_arrays(arrays: dict[str, NDArray[Any]], config: Config) -> None:
    """Raise where shapes, types or ids do not fit: compiled code trusts them."""
    D = config.D
    n_labels, n_indexed = len(arrays["classifier"]), len(arrays["labels"])
    shapes = {
        "word_vectors": (len(arrays["word_vectors"]), D),
        "classifier": (n_labels, D + 1),
        "label_embeddings": (n_indexed, D),
        "labels": (n_indexed,),
        "everywhere": (len(arrays["everywhere"]),),
        "residual": (D, D),
        "residual_bias": (D,),
        "idf": (len(arrays["word_vectors"]),),
    }
    for name, array in arrays.items():
        is_ids = name in ("labels", "everywhere")
        wanted = np.int32 if is_ids else np.float32
        if name not in shapes or array.shape != shapes[name] or array.dtype != wanted:
            raise ValueError(f"its array {name} has shape {array.shape} and type {array.dtype}")
        if not is_ids and not np.all(np.isfinite(array)):
            raise ValueError(f"its array {name} holds NaN or infinite values")
    labels, everywhere = arrays["labels"], arrays["everywhere"]
    in_range = n_indexed > 0 and labels[0] >= 0 and labels[-1] < n_labels
    if not in_range or (np.diff(labels) <= 0).any() or (np.diff(everywhere) <= 0).any():
        raise ValueError("its label numbers are not ascending numbers of labels")
    if not np.isin(everywhere, labels).all():
        raise ValueError("a label that is a candidate everywhere is not in its index")


def _read_names(path: Path) -> list[str]:
    names = _read_json(path)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path.name} is no list of names")
    return names


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): copy or train the model again") from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return how the model came about, one entry a phase."""
    history: list[dict[str, Any]] = _read_json(folder / _HISTORY)
    return history
