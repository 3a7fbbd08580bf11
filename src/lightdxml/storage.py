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


def save(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    """Write a model; the folder appears, or replaces an older model, only when it is complete."""
    if folder.exists() and not (folder / _MANIFEST).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} holds something that is no model: choose another folder")
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    fresh.mkdir(parents=True)
    try:
        _write(model, fresh, version, history)
        if folder.exists():
            old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
            folder.rename(old)
            fresh.rename(folder)
            shutil.rmtree(old)
        else:
            fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


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
        "metrics": model.metrics,
    }
    _write_json(folder / _MANIFEST, manifest)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def load(folder: Path) -> Model:
    """Read a model that `save` wrote."""
    if not (folder / _MANIFEST).is_file():
        raise ValueError(f"{folder} is no model: there is no {_MANIFEST} in it")
    manifest = _read_json(folder / _MANIFEST)
    if manifest.get("format") != FORMAT:
        found = manifest.get("format")
        raise ValueError(f"{folder} has format {found!r} and this version reads {FORMAT}: update lightdxml")
    try:
        arrays = load_file(folder / _ARRAYS)
        return _assemble(folder, manifest, arrays)
    except (SafetensorError, OSError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error


def _assemble(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    config = Config(**manifest["config"])
    names = _read_json(folder / _LABELS) if (folder / _LABELS).exists() else None
    vectoriser = Vectoriser(_read_json(folder / _WORDS), arrays["idf"]) if "idf" in arrays else None
    residual = Residual(arrays["residual"], arrays["residual_bias"]) if "residual" in arrays else None
    _check_arrays(folder, arrays, names, vectoriser, config)
    return Model(
        encoder=Encoder(arrays["word_vectors"], bool(manifest["relu"]), residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], manifest["index"]),
        everywhere=arrays["everywhere"],
        beta=float(manifest["beta"]),
        config=config,
        label_names=names,
        vectoriser=vectoriser,
        metrics=dict(manifest["metrics"]),
    )


def _check_arrays(
    folder: Path,
    arrays: dict[str, NDArray[Any]],
    names: list[str] | None,
    vectoriser: Vectoriser | None,
    config: Config,
) -> None:
    """Raise where shapes or ids do not fit: compiled code trusts them."""
    D, labels = config.D, arrays["labels"]
    n_labels, n_features = len(arrays["classifier"]), len(arrays["word_vectors"])
    ids = np.concatenate([labels, arrays["everywhere"]])
    fits = (
        arrays["word_vectors"].shape == (n_features, D)
        and arrays["classifier"].shape == (n_labels, D + 1)
        and arrays["label_embeddings"].shape == (len(labels), D)
        and all(arrays[name].dtype == np.float32 for name in ("word_vectors", "classifier", "label_embeddings"))
        and ids.dtype == np.int32
        and bool(np.all((ids >= 0) & (ids < n_labels)))
        and bool(np.all(np.diff(labels) > 0))
        and ("residual" not in arrays or arrays["residual"].shape == (D, D))
        and (names is None or len(names) == n_labels)
        and (vectoriser is None or len(vectoriser.vocabulary) == len(vectoriser.idf) == n_features)
    )
    if not fits:
        raise ValueError(f"{folder} contradicts itself: its arrays do not fit together; copy or train it again")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): copy or train the model again") from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return how the model came about, one entry a phase."""
    history: list[dict[str, Any]] = _read_json(folder / _HISTORY)
    return history
