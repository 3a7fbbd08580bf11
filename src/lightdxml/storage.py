"""A model on disk: a folder with arrays (safetensors), a manifest and names (JSON). Loading it runs no code.

A model that replaces another is written beside it, synced, and exchanged with it at once where the system can do that.
Elsewhere the old one is renamed first: a process that is killed right then leaves it as `.NAME.HEX.old`, from where it
is read as if it were in its place.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence import arrays as stored
from lightdxml import shortlist as shortlists
from lightdxml import sketches
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import BIAS, SCALE
from lightdxml.label_tree import LabelTree
from lightdxml.model import USUAL_STRENGTH, USUAL_STRENGTH_OF_THREE, Model
from lightdxml.sparse_view import SparseView
from lightdxml.text.tfidf import TextOptions, Vectorizer

FORMAT = 6
# Format 2 had no sparse view, format 3 no label tree, and no settings for them; format 4 no int8, format 5 no sketches.
_READ = (2, 3, 4, 5, 6)
_BEFORE_INT8, _BEFORE_SKETCHES = 4, 5
_SINCE_3 = {"sparse", "sparse_negatives", "sparse_work", "sparse_cost", "sparse_negative_cost", "gamma"}
_SINCE_4 = {"label_tree", "learn_validation"}
_MANIFEST, _ARRAYS, _LABELS, _WORDS, _HISTORY = (
    "manifest.json",
    "arrays.safetensors",
    "label_names.json",
    "vocabulary.json",
    "history.json",
)
_BLOCK = 1 << 22
_MOST_DOCUMENTS = 1 << 53
_MOST_STRENGTH = 100.0
# No manifest or history is longer; names are as long as people make them, but not all of them longer than a page.
_MOST_JSON, _MOST_NAME, _SPARE_NAMES = 1 << 28, 1 << 12, 1 << 8
# What a system or a file system answers that cannot exchange two folders, or sync one.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM, errno.EACCES)
_HERE, _EXCHANGE = -100, 2
_NUMBERS = (
    "labels", "everywhere", "label_frequency", "graph_levels", "graph_neighbours", "graph_entry",
    "cluster_of", "cluster_probes", "sketch_places", "sketch_code_shifts", "sketch_candidates",
    "sparse_labels", "sparse_everywhere", "tree_nodes", "tree_paths",
)  # fmt: skip
MAY_BE_NARROW = ("word_vectors", "classifier", "label_embeddings")
_LARGE_NUMBERS = ("sparse_pointers", "tree_pointers")
_KEPT_AS_THEY_ARE = (
    "residual", "residual_bias", "idf", "sparse_biases", "tree_biases", "cluster_centres", "sketch_scales",
    "sketch_code_scales",
)  # fmt: skip
_BYTES = {"sketch_signs": np.dtype(np.uint8), "sketch_codes": np.dtype(np.int8)}


def check_target(folder: Path, *rooms: Path | None) -> None:
    """Raise where a model must not be written: over something that is no model, or that holds more than one.

    Nor may rooms that training needs, for checkpoints or scratch, lie within it.
    """
    for room in rooms:
        if room is not None and room.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{room} lies in {folder}, where the model goes: choose another folder for it")
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
        manifest = read_json(folder / _MANIFEST)
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and type(manifest.get("format")) is int and "lightdxml" in manifest


def save(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    """Write a model; the folder appears, or replaces an older model, only when all of it is on the disk."""
    folder = folder.resolve()
    check_target(folder)
    left = _found(folder)
    if left != folder:
        left.rename(folder)
    there = next(place for place in folder.parents if place.exists())
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    fresh.mkdir(parents=True)
    try:
        _write(model, fresh, version, history)
        for path in (*fresh.iterdir(), fresh):
            sync(path)
        old = _put_in_place(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    for place in folder.parents:
        sync(place)
        if place == there:
            break
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _put_in_place(fresh: Path, folder: Path) -> Path | None:
    """Give a model its name; return where the one before it is now."""
    if not folder.exists():
        fresh.rename(folder)
        return None
    if _exchange(fresh, folder):
        return fresh
    old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at once; return whether this system and this file system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _found(folder: Path) -> Path:
    """Return where a model is: in its folder, or where a process left it that was killed while replacing it."""
    try:
        place = folder.resolve()
        if place.exists():
            return folder
        pattern = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{8}}\.old")
        left = [path for path in place.parent.iterdir() if pattern.fullmatch(path.name) and _is_model(path)]
    except OSError:
        return folder
    return left[0] if len(left) == 1 else folder


def sync(path: Path) -> None:
    """Return when a file, or a folder's list of files, is on the disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows has no such thing for folders
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems have none for folders either, and some folders may be written in but not opened.
        if not is_folder or error.errno not in _CANNOT:
            raise


def _write(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    stored.write(folder / _ARRAYS, arrays_of(model))
    if model.vectorizer is not None:
        _write_json(folder / _WORDS, model.vectorizer.vocabulary)
    if model.label_names is not None:
        _write_json(folder / _LABELS, list(model.label_names))
    _write_json(folder / _HISTORY, history)
    manifest = {
        "format": _format_of(model),
        "lightdxml": version,
        "config": asdict(model.config),
        "text": None if model.vectorizer is None else asdict(model.vectorizer.settings),
        "beta": model.beta,
        "gamma": model.gamma,
        "tree_share": model.tree_share,
        "tail_strength": model.tail_strength,
        "index": model.shortlist.kind,
        "relu": model.encoder.relu,
        "n_documents": model.n_documents,
        "vectors": model.vectors,
        "metrics": model.metrics,
        "files": {path.name: _fingerprint(path) for path in sorted(folder.iterdir())},
    }
    _write_json(folder / _MANIFEST, manifest | {"sha256": _checksum(manifest)})


def _format_of(model: Model) -> int:
    """Return the lowest format that has all of a model, so that earlier versions read what they can."""
    if "sketch" in (model.shortlist.kind, model.config.index):
        return FORMAT
    return _BEFORE_SKETCHES if model.classifier.dtype == np.int8 else _BEFORE_INT8


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
    if model.vectorizer is not None:
        arrays["idf"] = model.vectorizer.idf
    arrays |= shortlists.structure_of(model.shortlist)
    if model.sparse is not None:
        arrays |= {f"sparse_{field.name}": getattr(model.sparse, field.name) for field in fields(SparseView)}
    if model.tree is not None:
        arrays |= {f"tree_{field.name}": getattr(model.tree, field.name) for field in fields(LabelTree)}
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
    folder = _found(folder)
    manifest = read_manifest(folder)
    try:
        checked = manifest.pop("sha256", None)
        if checked != _checksum(manifest):
            raise ValueError(f"{_MANIFEST} was altered after the model was written")
        _check_files(folder, manifest["files"])
        if verify:
            # At once, as each reads all of a model. Of both errors that of the checksums is told.
            sums, numbers = partial(_check_sums, folder, manifest["files"]), partial(_check_numbers, folder / _ARRAYS)
            parallel.run(lambda check: check(), (sums, numbers))
        return _assemble(folder, manifest, stored.read(folder / _ARRAYS))
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {error.filename}: ask its owner for it") from error
    except (
        OSError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError, ValueError,
    ) as error:  # fmt: skip
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a model says of itself, or say why it is none that this version reads."""
    folder = _found(folder)
    path = folder / _MANIFEST
    try:
        if not path.is_file():
            what = "there is no such folder" if not folder.exists() else f"there is no {_MANIFEST} in it"
            raise ValueError(f"{folder} is no model: {what}")
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {folder}: ask its owner for it") from error
    manifest = _read_json(path)
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{folder} is no model: its {_MANIFEST} names no format")
    if found not in _READ:
        remedy = "update lightdxml" if found > FORMAT else "train the model again"
        raise ValueError(f"{folder} has format {found} and this version reads {FORMAT}: {remedy}")
    content: dict[str, Any] = manifest
    return content


def _check_files(folder: Path, files: dict[str, Any]) -> None:
    """Raise where a file is missing, or is longer or shorter than the one that was written."""
    known = (_ARRAYS, _LABELS, _WORDS, _HISTORY)
    for name, expected in files.items():
        if name not in known:
            raise ValueError(f"its manifest names a file {name!r}")
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
        if (folder / name).stat().st_size != expected["bytes"]:
            raise ValueError(f"{name} has {(folder / name).stat().st_size} bytes and should have {expected['bytes']}")
    for name in (_ARRAYS, _HISTORY):
        if name not in files:
            raise ValueError(f"its manifest names no {name}")


def _check_sums(folder: Path, files: dict[str, Any]) -> None:
    """Raise where a file is not the one that was written."""
    for name, expected in files.items():
        if sha256(folder / name) != expected["sha256"]:
            raise ValueError(f"{name} was altered after the model was written")


def _assemble(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    config = _config(manifest["config"], manifest["format"])
    residual = Residual(np.array(arrays["residual"]), arrays["residual_bias"]) if "residual" in arrays else None
    # Models without a sparse view were once written without a share for it.
    shares = manifest["beta"], manifest.get("gamma", 0.0), manifest.get("tree_share", 0.0)
    kind = manifest["index"]
    if not all(isinstance(s, int | float) and 0 <= s <= 1 for s in shares) or kind not in shortlists.KINDS:
        raise ValueError(f"its manifest says beta, gamma and tree_share {shares!r:.60} and index {kind!r}")
    check_arrays(arrays, config)
    n_labels = len(arrays["classifier"])
    structure = shortlists.structure_in(arrays, kind)
    names = _read_names(folder / _LABELS, n_labels) if _LABELS in manifest["files"] else None
    if names is not None and len(names) != n_labels:
        raise ValueError(f"{len(names)} label names for {n_labels} labels")
    return Model(
        encoder=Encoder(arrays["word_vectors"], bool(manifest["relu"]), residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], kind, structure),
        everywhere=arrays["everywhere"],
        beta=float(shares[0]),
        config=config,
        label_names=names,
        vectorizer=_vectorizer(folder, manifest, arrays),
        label_frequency=arrays["label_frequency"],
        n_documents=_count(manifest["n_documents"]),
        vectors=manifest["vectors"],
        metrics={str(name): float(value) for name, value in manifest["metrics"].items()},
        sparse=_sparse_in(arrays),
        gamma=float(shares[1]),
        tree=_tree_in(arrays),
        tree_share=float(shares[2]),
        tail_strength=_strength(manifest, three_views="sparse_pointers" in arrays),
    )


def _strength(manifest: dict[str, Any], *, three_views: bool) -> float:
    """Return how far `tail` shifts scores; the usual for a model that was written before there was such a thing."""
    usual = USUAL_STRENGTH_OF_THREE if three_views else USUAL_STRENGTH
    value = manifest.get("tail_strength", usual)
    if type(value) not in (int, float) or not 0 <= value <= _MOST_STRENGTH:
        raise ValueError(f"its manifest says tail_strength {value!r:.30}")
    return float(value)


def _sparse_in(arrays: dict[str, NDArray[Any]]) -> SparseView | None:
    if "sparse_pointers" not in arrays:
        return None
    return SparseView(**{field.name: arrays[f"sparse_{field.name}"] for field in fields(SparseView)})


def _tree_in(arrays: dict[str, NDArray[Any]]) -> LabelTree | None:
    if "tree_pointers" not in arrays:
        return None
    return LabelTree(**{field.name: arrays[f"tree_{field.name}"] for field in fields(LabelTree)})


def _config(settings: dict[str, Any], found: int) -> Config:
    known = {field.name for field in fields(Config)} - _settings_after(found)
    if set(settings) != known:
        odd = ", ".join(sorted(set(settings) ^ known))
        raise ValueError(f"its settings are not those of this format: {odd}")
    without: dict[str, Any] = ({"label_tree": False} if found < 4 else {}) | ({"sparse": False} if found < 3 else {})
    return Config(**settings, **without)


def _settings_after(found: int) -> set[str]:
    """Return the settings that a format did not have yet."""
    return (_SINCE_3 if found < 3 else set()) | (_SINCE_4 if found < 4 else set())


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_DOCUMENTS:
        raise ValueError(f"its manifest says it has {value!r:.60} documents")
    return value


def _vectorizer(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectorizer | None:
    if "idf" not in arrays:
        return None
    if _WORDS not in manifest["files"]:
        raise ValueError(f"its manifest names no {_WORDS}")
    vocabulary = _read_names(folder / _WORDS, len(arrays["idf"]))
    if not len(vocabulary) == len(arrays["idf"]) == len(arrays["word_vectors"]):
        raise ValueError("its vocabulary and its word vectors do not fit together")
    return Vectorizer(vocabulary, arrays["idf"], TextOptions(**manifest["text"]))


def check_arrays(arrays: dict[str, NDArray[Any]], config: Config) -> None:
    """Raise where shapes, types or label numbers do not fit: compiled code trusts them."""
    D = config.D
    n_labels, n_indexed = len(arrays["classifier"]), len(arrays["labels"])
    shapes = {
        "word_vectors": (len(arrays["word_vectors"]), D + _behind(arrays["word_vectors"], SCALE)),
        "classifier": (n_labels, D + (_behind(arrays["classifier"], SCALE + BIAS) or 1)),
        "label_embeddings": (n_indexed, D + _behind(arrays["label_embeddings"], SCALE)),
        "labels": (n_indexed,),
        "everywhere": (len(arrays["everywhere"]),),
        "label_frequency": (n_labels,),
        "residual": (D, D),
        "residual_bias": (D,),
        "idf": (len(arrays["word_vectors"]),),
        "graph_levels": (n_indexed,),
        "graph_neighbours": (len(arrays.get("graph_neighbours", ())),),
        "graph_entry": (1,),
        "cluster_centres": (len(arrays.get("cluster_centres", ())), D),
        "cluster_of": (n_indexed,),
        "cluster_probes": (1,),
        "sparse_pointers": (len(arrays["word_vectors"]) + 1,),
        "sparse_labels": (len(arrays.get("sparse_labels", ())),),
        "sparse_weights": (len(arrays.get("sparse_labels", ())),),
        "sparse_biases": (n_labels,),
        "sparse_everywhere": (len(arrays.get("sparse_everywhere", ())),),
        "tree_pointers": (len(arrays["word_vectors"]) + 1,),
        "tree_nodes": (len(arrays.get("tree_nodes", ())),),
        "tree_weights": (len(arrays.get("tree_nodes", ())),),
        "tree_biases": (len(arrays.get("tree_biases", ())),),
        "tree_paths": (n_labels, arrays["tree_paths"].shape[-1] if "tree_paths" in arrays else 0),
        **{f"sketch_{name}": shape for name, shape in sketches.shapes(n_indexed, D).items()},
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
    _check_sparse(arrays)
    _check_tree(arrays)


def _check_sparse(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise where a part of the sparse view is missing, or leads to words or labels that are not there."""
    names = {f"sparse_{field.name}" for field in fields(SparseView)}
    if not names & set(arrays):
        return
    if not names <= set(arrays):
        raise ValueError("a part of its sparse view is missing")
    labels = arrays["sparse_labels"]
    if not _leads_on(arrays["sparse_pointers"], len(labels)):
        raise ValueError("its sparse view has words that lead nowhere")
    if not np.isin(labels, arrays["labels"]).all() or not np.isin(arrays["sparse_everywhere"], arrays["labels"]).all():
        raise ValueError("its sparse view has labels that are not in its index")
    if not _ascending(arrays["sparse_everywhere"]):
        raise ValueError("its sparse view has frequent labels twice or in no order")


def _check_tree(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise where a part of the label tree is missing, or leads to nodes that are not there."""
    names = {f"tree_{field.name}" for field in fields(LabelTree)}
    if not names & set(arrays):
        return
    if not names <= set(arrays) or "sparse_pointers" not in arrays:
        raise ValueError("a part of its label tree is missing, or the sparse view that it belongs to")
    nodes, paths, n_nodes = arrays["tree_nodes"], arrays["tree_paths"], len(arrays["tree_biases"])
    if not _leads_on(arrays["tree_pointers"], len(nodes)):
        raise ValueError("its label tree has words that lead nowhere")
    lowest = min(nodes.min(initial=0), paths.min(initial=-1) + 1)
    if lowest < 0 or max(nodes.max(initial=-1), paths.max(initial=-1)) >= n_nodes:
        raise ValueError("its label tree has nodes that are not there")


def _leads_on(pointers: NDArray[np.int64], n: int) -> bool:
    """Return whether pointers part n entries."""
    return bool(pointers[0] == 0 and pointers[-1] == n and (pointers[1:] >= pointers[:-1]).all())


def _ascending(numbers: NDArray[np.int32]) -> bool:
    # Compared, not subtracted: differences of large numbers wrap around.
    return bool((numbers[1:] > numbers[:-1]).all())


def _behind(array: NDArray[Any], size: int) -> int:
    """Return how many bytes follow the numbers of a row of int8; none for other types."""
    return size if array.dtype == np.int8 else 0


def _types_of(name: str) -> tuple[Any, ...]:
    if name in _BYTES:
        return (_BYTES[name],)
    if name in _NUMBERS:
        return (np.dtype(np.int32),)
    if name in _LARGE_NUMBERS:
        return (np.dtype(np.int64),)
    if name in _KEPT_AS_THEY_ARE:
        return (np.dtype(np.float32),)
    floats = (np.dtype(np.float16), np.dtype(np.float32))
    return (*floats, np.dtype(np.int8)) if name in MAY_BE_NARROW else floats


def _check_numbers(path: Path) -> None:
    arrays = stored.read(path)
    check_finite(arrays)
    if (arrays["label_frequency"] < 0).any():
        raise ValueError("a label has a negative number of documents")


def _floats_of(array: NDArray[Any], behind: int) -> NDArray[Any]:
    """Return the numbers of an array that may be none: of one of int8, what follows each row."""
    if array.dtype != np.int8:
        return array
    return np.ascontiguousarray(array[:, -behind:]).view(np.float32)


def check_finite(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise where an array holds NaN or infinite values."""
    for name, array in arrays.items():
        if array.dtype.kind in "iu" and name not in MAY_BE_NARROW:
            continue
        flat = _floats_of(array, SCALE + BIAS if name == "classifier" else SCALE).reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            if not _all_finite(flat[start : start + _BLOCK]):
                raise ValueError(f"its array {name} holds NaN or infinite values")


def _all_finite(numbers: NDArray[Any]) -> bool:
    """Return whether none is NaN or infinite: those of 16 bits have the highest exponent, which NumPy sees faster."""
    if numbers.dtype == np.float16:
        return bool((numbers.view(np.uint16) & 0x7FFF).max(initial=0) < 0x7C00)
    return bool(np.isfinite(numbers).all())


def _read_names(path: Path, count: int) -> list[str]:
    """Return about so many names; a file made to fill memory is not read."""
    names = read_json(path, _MOST_NAME * (count + _SPARE_NAMES))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path.name} is no list of names")
    return names


def read_json(path: Path, most: int = _MOST_JSON) -> Any:
    """Return what a regular file of at most so many bytes says; a pipe or a device might never end."""
    if not path.is_file():
        raise ValueError(f"{path.name} is missing or no file")
    size = path.stat().st_size
    if size > most:
        raise ValueError(f"{path.name} has more than {most} bytes")
    with path.open("rb") as stream:
        content = stream.read(size)
    try:
        return json.loads(content.decode())
    except RecursionError as error:
        raise ValueError(f"{path.name} is nested too deeply") from error


def _read_json(path: Path) -> Any:
    try:
        return read_json(path)
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {path.parent}: ask its owner for it") from error
    except (OSError, ValueError, MemoryError) as error:
        raise ValueError(f"{path} is damaged ({error}): copy or train the model again") from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return how the model came about, one entry a phase."""
    path = _found(folder) / _HISTORY
    history = _read_json(path)
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise ValueError(f"{path} is no list of phases: copy or train the model again")
    return history
