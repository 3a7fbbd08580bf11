"""A model on disk: a folder with arrays (safetensors), a manifest and names (JSON). Loading it runs no code."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import arrays as stored
from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.kernels import parallel
from lightdxml.model import Model
from lightdxml.shortlist import Graph
from lightdxml.text.tfidf import TextSettings, Vectoriser

FORMAT = 2
_MANIFEST, _ARRAYS, _LABELS, _WORDS, _HISTORY = (
    "manifest.json",
    "arrays.safetensors",
    "label_names.json",
    "vocabulary.json",
    "history.json",
)
_BLOCK = 1 << 22
_NUMBERS = ("labels", "everywhere", "label_frequency", "graph_levels", "graph_neighbours", "graph_entry")
_KEPT_AS_THEY_ARE = ("residual", "residual_bias", "idf")


def check_target(folder: Path) -> None:
    """Raise where a model must not be written: over something that is no model, or that holds more than one."""
    try:
        inside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: choose another folder")
    except PermissionError as error:
        raise ValueError(f"there is no permission to look into {folder}: choose another folder") from error
    # It is written beside the folder and then put in its place.
    above = next(place for place in folder.absolute().parents if place.exists())
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{folder} cannot be written ({above} takes no new files): choose another folder")
    others = [name for name in inside if name not in (_MANIFEST, _ARRAYS, _LABELS, _WORDS, _HISTORY)]
    if inside and (others or not _is_model(folder)):
        found = f" ({', '.join(others[:3])})" if others else ""
        raise ValueError(f"{folder} holds something that is no model{found}: choose another folder")


def _is_model(folder: Path) -> bool:
    """Return whether a folder's manifest is that of a model, of this format or another."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and type(manifest.get("format")) is int and "lightdxml" in manifest


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
    stored.write(folder / _ARRAYS, arrays_of(model))
    if model.vectoriser is not None:
        _write_json(folder / _WORDS, model.vectoriser.vocabulary)
    if model.label_names is not None:
        _write_json(folder / _LABELS, list(model.label_names))
    _write_json(folder / _HISTORY, history)
    manifest = {
        "format": FORMAT,
        "lightdxml": version,
        "config": asdict(model.config),
        "text": None if model.vectoriser is None else asdict(model.vectoriser.settings),
        "beta": model.beta,
        "index": model.shortlist.kind,
        "relu": model.encoder.relu,
        "n_documents": model.n_documents,
        "vectors": model.vectors,
        "metrics": model.metrics,
        "files": {path.name: _fingerprint(path) for path in sorted(folder.iterdir())},
    }
    _write_json(folder / _MANIFEST, manifest | {"sha256": _checksum(manifest)})


def _checksum(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest's own content."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def arrays_of(model: Model) -> dict[str, NDArray[Any]]:
    """Return the arrays that make up a model, by the names that they have on disk."""
    arrays = {
        "word_vectors": model.encoder.vectors,
        "classifier": model.classifier,
        "labels": model.shortlist.labels,
        "label_embeddings": model.shortlist.vectors,
        "everywhere": model.everywhere,
        "label_frequency": model.label_frequency,
    }
    if model.encoder.residual is not None:
        arrays["residual"], arrays["residual_bias"] = model.encoder.residual.R, model.encoder.residual.bias
    if model.vectoriser is not None:
        arrays["idf"] = model.vectoriser.idf
    if model.shortlist.kind == "hnsw":
        graph = shortlists.graph_of(model.shortlist)
        arrays["graph_levels"], arrays["graph_neighbours"] = graph.levels, graph.neighbours
        arrays["graph_entry"] = np.array([graph.entry], dtype=np.int32)
    return arrays


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _fingerprint(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def sha256(path: Path) -> str:
    """Return a file's checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def load(folder: Path, *, verify: bool = True) -> Model:
    """Read a model that `save` wrote.

    Parameters
    ----------
    folder
        Where it lies.
    verify
        Whether to compare every byte with the checksums in the manifest; without, large arrays are read only as they
        are used.
    """
    manifest = read_manifest(folder)
    try:
        checked = manifest.pop("sha256", None)
        if checked != _checksum(manifest):
            raise ValueError(f"{_MANIFEST} was altered after the model was written")
        _check_files(folder, manifest["files"], verify)
        return _assemble(folder, manifest, stored.read(folder / _ARRAYS), verify)
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {error.filename}: ask its owner for it") from error
    except (OSError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, ValueError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a model says of itself, or say why it is none that this version reads."""
    path = folder / _MANIFEST
    try:
        if not path.is_file():
            what = "there is no such folder" if not folder.exists() else f"there is no {_MANIFEST} in it"
            raise ValueError(f"{folder} is no model: {what}")
        manifest = _read_json(path)
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {folder}: ask its owner for it") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{folder} is no model: its {_MANIFEST} names no format")
    if found != FORMAT:
        remedy = "update lightdxml" if found > FORMAT else "train the model again"
        raise ValueError(f"{folder} has format {found} and this version reads {FORMAT}: {remedy}")
    content: dict[str, Any] = manifest
    return content


def _check_files(folder: Path, files: dict[str, Any], verify: bool) -> None:
    """Raise where a file is missing, or is not the one that was written."""
    known = (_ARRAYS, _LABELS, _WORDS, _HISTORY)
    for name, expected in files.items():
        if name not in known:
            raise ValueError(f"its manifest names a file {name!r}")
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
        if (folder / name).stat().st_size != expected["bytes"]:
            raise ValueError(f"{name} has {(folder / name).stat().st_size} bytes and should have {expected['bytes']}")
    if _ARRAYS not in files:
        raise ValueError(f"its manifest names no {_ARRAYS}")
    if verify:
        found = parallel.run(lambda name: _fingerprint(folder / name), list(files))
        for name, fingerprint in zip(files, found, strict=True):
            if fingerprint["sha256"] != files[name]["sha256"]:
                raise ValueError(f"{name} was altered after the model was written")


def _assemble(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]], verify: bool) -> Model:
    config = _config(manifest["config"])
    names = _read_names(folder / _LABELS) if _LABELS in manifest["files"] else None
    residual = Residual(np.array(arrays["residual"]), arrays["residual_bias"]) if "residual" in arrays else None
    beta, kind = manifest["beta"], manifest["index"]
    if not isinstance(beta, int | float) or not 0 <= beta <= 1 or kind not in ("exact", "hnsw"):
        raise ValueError(f"its manifest says beta {beta!r} and index {kind!r}")
    check_arrays(arrays, config)
    if verify:
        _check_numbers(arrays)
    if names is not None and len(names) != len(arrays["classifier"]):
        raise ValueError(f"{len(names)} label names for {len(arrays['classifier'])} labels")
    return Model(
        encoder=Encoder(arrays["word_vectors"], bool(manifest["relu"]), residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], kind, graph_in(arrays, kind)),
        everywhere=arrays["everywhere"],
        beta=float(beta),
        config=config,
        label_names=names,
        vectoriser=_vectoriser(folder, manifest, arrays),
        label_frequency=arrays["label_frequency"],
        n_documents=_count(manifest["n_documents"]),
        vectors=manifest["vectors"],
        metrics={str(name): float(value) for name, value in manifest["metrics"].items()},
    )


def _config(settings: dict[str, Any]) -> Config:
    known = {field.name for field in fields(Config)}
    if set(settings) != known:
        odd = ", ".join(sorted(set(settings) ^ known))
        raise ValueError(f"its settings are not those of this format: {odd}")
    return Config(**settings)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"its manifest says it has {value!r} documents")
    return value


def _vectoriser(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectoriser | None:
    if "idf" not in arrays:
        return None
    vocabulary = _read_names(folder / _WORDS)
    if not len(vocabulary) == len(arrays["idf"]) == len(arrays["word_vectors"]):
        raise ValueError("its vocabulary and its word vectors do not fit together")
    return Vectoriser(vocabulary, arrays["idf"], TextSettings(**manifest["text"]))


def graph_in(arrays: dict[str, NDArray[Any]], kind: str) -> Graph | None:
    """Return the graph among a model's arrays; None for an exact index, which has none."""
    if kind == "exact":
        return None
    return Graph(
        np.array(arrays["graph_levels"]), np.array(arrays["graph_neighbours"]), int(arrays["graph_entry"].item())
    )


def check_arrays(arrays: dict[str, NDArray[Any]], config: Config) -> None:
    """Raise where shapes, types or label numbers do not fit: compiled code trusts them."""
    D = config.D
    n_labels, n_indexed = len(arrays["classifier"]), len(arrays["labels"])
    shapes = {
        "word_vectors": (len(arrays["word_vectors"]), D),
        "classifier": (n_labels, D + 1),
        "label_embeddings": (n_indexed, D),
        "labels": (n_indexed,),
        "everywhere": (len(arrays["everywhere"]),),
        "label_frequency": (n_labels,),
        "residual": (D, D),
        "residual_bias": (D,),
        "idf": (len(arrays["word_vectors"]),),
        "graph_levels": (n_indexed,),
        "graph_neighbours": (len(arrays.get("graph_neighbours", ())),),
        "graph_entry": (1,),
    }
    for name, array in arrays.items():
        if name not in shapes or array.shape != shapes[name] or array.dtype not in _types_of(name):
            raise ValueError(f"its array {name} has shape {array.shape} and type {array.dtype}")
    labels, everywhere = arrays["labels"], arrays["everywhere"]
    in_range = n_indexed > 0 and labels.min() >= 0 and labels.max() < n_labels
    if not in_range or not _ascending(labels) or not _ascending(everywhere):
        raise ValueError("its label numbers are not ascending numbers of labels")
    if not np.isin(everywhere, labels).all():
        raise ValueError("a label that is a candidate everywhere is not in its index")


def _ascending(numbers: NDArray[np.int32]) -> bool:
    # Compared, not subtracted: differences of large numbers wrap around.
    return bool((numbers[1:] > numbers[:-1]).all())


def _types_of(name: str) -> tuple[Any, ...]:
    if name in _NUMBERS:
        return (np.dtype(np.int32),)
    return (np.dtype(np.float32),) if name in _KEPT_AS_THEY_ARE else (np.dtype(np.float16), np.dtype(np.float32))


def _check_numbers(arrays: dict[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        flat = array.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            if not np.isfinite(flat[start : start + _BLOCK]).all():
                raise ValueError(f"its array {name} holds NaN or infinite values")
    if (arrays["label_frequency"] < 0).any():
        raise ValueError("a label has a negative number of documents")


def _read_names(path: Path) -> list[str]:
    names = _read_json(path)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path.name} is no list of names")
    return names


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except PermissionError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): copy or train the model again") from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return how the model came about, one entry a phase."""
    history = _read_json(folder / _HISTORY)
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise ValueError(f"{folder / _HISTORY} is no list of phases: copy or train the model again")
    return history
