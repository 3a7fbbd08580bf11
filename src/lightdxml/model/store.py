"""A model on disk: a folder with arrays (safetensors), a manifest and names (JSON). Loading it runs no code.

Every view brings its own arrays and facts, and checks them when it is restored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.config import from_json
from lightdxml.data.options import REMEMBERED
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.kernels import parallel
from lightdxml.model import fingerprints
from lightdxml.model.blend import LogisticBlend, TailShift, restore_blend
from lightdxml.model.calibration import restore_calibration
from lightdxml.model.model import Model
from lightdxml.model.thresholds import ThresholdTable, check_threshold
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.arrays import Arrays
from lightdxml.persistence.atomic_dir import locate, replace_folder
from lightdxml.persistence.files import Content, map_file, map_files, release, sha256
from lightdxml.text.tfidf import TextOptions, Vectorizer
from lightdxml.views.base import ModelSizes, expect, in_range, is_ascending
from lightdxml.views.registry import VIEWS

FORMAT = 3
_MANIFEST, _ARRAYS, _HISTORY = "manifest.json", "arrays.safetensors", "history.json"
_LABELS, _WORDS, _CONCEPTS = "label_names.json", "vocabulary.json", "concepts.json"
FILES = (_MANIFEST, _ARRAYS, _LABELS, _WORDS, _CONCEPTS, _HISTORY)
# A folder within that of a model, which prediction does not need: see `lightdxml.learning.folder`.
LEARNING = "learning"
_MAX_DOCUMENTS, _MAX_STRENGTH = 1 << 53, 100.0
_OUTPUTS = ("lists", "dense", "sparse", "classes")
_INTEGER = re.compile(r"-?[0-9]{1,20}")
# Names are as long as people make them, but not all of them longer than a page.
_MAX_NAME, _SPARE_NAMES, _MAX_LANGUAGE = 1 << 14, 1 << 8, 20
# Digits of the largest id, and characters of the name of a column.
_MAX_OPTION = 1000


def check_target(folder: Path, *others: Path | None) -> None:
    """Raise a `ValueError` if a model must not be written: over something that is not only a model, or within a model.

    The other folders that training uses, for checkpoints and spilled arrays, may not lie within it.
    """
    for other in others:
        if other is not None and other.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{other} lies in {folder}, where the model goes: choose another folder for it")
    try:
        inside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: choose another folder")
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {folder}: choose another folder") from error
    if (outer := next(filter(is_model, folder.resolve().parents), None)) is not None:
        raise ValueError(
            f"{folder} is inside the folder of the model {outer}, which holds nothing else: choose another folder"
        )
    # A model is written next to the folder and then put in its place.
    parent = next(place for place in folder.absolute().parents if place.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"{folder} cannot be written ({parent} is read-only): choose another folder")
    foreign = [name for name in inside if name not in (*FILES, LEARNING)]
    if inside and (foreign or not is_model(folder)):
        found = f" ({', '.join(foreign[:3])})" if foreign else ""
        raise ValueError(f"{folder} holds something other than a model{found}: choose another folder")


def check_absent(folder: Path) -> None:
    """Raise a `ValueError` if there is a model in a folder already."""
    if is_model(folder):
        raise ValueError(f"{folder} holds a model already: choose another folder, or replace the model with --force")


def is_model(folder: Path) -> bool:
    """Return whether a folder's manifest is that of a model, of this format or another."""
    try:
        manifest = stored.read_json(folder / _MANIFEST)
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and type(manifest.get("format")) is int and "lightdxml" in manifest


def stamp(folder: Path) -> tuple[int, int]:
    """Return the inode and modification time of the manifest, which change when a model is replaced."""
    try:
        found = (locate(folder, is_model) / _MANIFEST).stat()
    except OSError as error:
        reasons = [(folder.is_dir(), f"it has no {_MANIFEST}"), (folder.is_file(), "it is a file")]
        what = next((reason for holds, reason in reasons if holds), "there is no such folder")
        raise ValueError(f"{folder} is not a model: {what}") from error
    return found.st_ino, found.st_mtime_ns


def checksum(folder: Path) -> str:
    """Return the checksum of a model's manifest, which has the checksums of its other files."""
    return sha256(map_file(locate(folder, is_model) / _MANIFEST))


def save(
    model: Model,
    folder: Path,
    version: str,
    history: list[dict[str, Any]],
    write_more: Callable[[Path], None] = lambda _: None,
) -> None:
    """Write a model; the folder appears, or replaces an older model, only when all of it is on the disk.

    `write_more` writes further files into the folder that will be that of the model.
    """
    check_target(folder)

    def write_all(place: Path) -> None:
        _write(model, place, version, history)
        _check_written(model, folder, place)
        write_more(place)

    replace_folder(folder, write_all, is_model)


def _write(model: Model, folder: Path, version: str, history: list[dict[str, Any]]) -> None:
    """Write the files of a model into an empty folder."""
    if model.vectorizer is not None:
        stored.write_json(folder / _WORDS, model.vectorizer.vocabulary)
    if model.label_names is not None:
        stored.write_json(folder / _LABELS, list(model.label_names))
    if model.vocabulary is not None:
        stored.write_json(folder / _CONCEPTS, model.vocabulary.to_json())
    stored.write(folder / _ARRAYS, model.arrays())
    stored.write_json(folder / _HISTORY, history)
    manifest = {
        "format": FORMAT,
        "lightdxml": version,
        "config": asdict(model.config),
        "text": None if model.vectorizer is None else asdict(model.vectorizer.settings),
        "views": {name: view.facts() for name, view in model.views.items()},
        "blend": model.blend.to_json(),
        "tail": asdict(model.shift),
        "calibration": model.calibration.to_json(),
        "n_features": model.n_features,
        "n_documents": model.n_documents,
        "word_vectors": model.word_vectors,
        "metrics": model.metrics,
        "n_validation": model.n_validation,
        "machines": list(model.machines),
        "never_own": model.never_own,
        "language": model.language,
        "integer_labels": model.integer_labels,
        "output": model.output,
        "threshold": model.threshold,
        "reading": dict(model.reading),
        "files": {path.name: _entry(path) for path in sorted(folder.iterdir())},
    }
    stored.write_json(folder / _MANIFEST, {**manifest, "sha256": stored.checksum(manifest)})


def _check_written(model: Model, folder: Path, place: Path) -> None:
    """Raise a `ValueError` if what was written could not be read: it must not replace a good model."""
    limits = {_LABELS: _limit(model.n_labels), _WORDS: _limit(model.n_features)}
    try:
        stored.check_finite(stored.read(place / _ARRAYS), stored.MAX_VALUE)
        for name in (_LABELS, _WORDS, _CONCEPTS, _HISTORY, _MANIFEST):
            if (place / name).exists():
                stored.check_size(map_file(place / name), name, limits.get(name, stored.MAX_JSON))
    except ValueError as error:
        raise ValueError(f"the model cannot be written to {folder}, as nobody could read it: {error}") from error


def _entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256(map_file(path))}


@dataclass(frozen=True)
class Stored:
    """A model as it was read from its folder.

    Attributes
    ----------
    model
        The model.
    manifest
        What it says about itself.
    history
        How it came about, one entry per phase.
    """

    model: Model
    manifest: dict[str, Any]
    history: list[dict[str, Any]]


def load(folder: Path, *, verify: bool = True) -> Stored:
    """Read a model that `save` wrote. If it is replaced meanwhile, the old or the new one is read, never a mixture.

    Parameters
    ----------
    folder
        Where it lies.
    verify
        Whether to compare every byte with the checksums in the manifest. Without, large arrays are read only as they
        are used.
    """
    parallel.thread_count()  # A wrong setting is reported before anything is read.
    files = _map_files(folder)
    manifest = _manifest(folder, files)
    try:
        if manifest.pop("sha256", None) != stored.checksum(manifest):
            raise ValueError(f"{_MANIFEST} was changed after the model was written")
        _check_files(files, manifest["files"])
        arrays = stored.parse(files[_ARRAYS], _ARRAYS)
        if verify:
            # At the same time, as each reads the whole model. If both fail, the error of the checksums is raised.
            checks = (
                partial(_check_sums, files, manifest["files"]),
                partial(stored.check_finite, arrays, stored.MAX_VALUE),
            )
            parallel.run(lambda check: check(), checks)
        found = Stored(_assemble(files, manifest, arrays, verify), manifest, _history(files))
        release(files[_ARRAYS])
        return found
    except MemoryError as error:
        raise MemoryError(f"there is not enough memory to load {folder}: close other programs") from error
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError, ValueError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error


def _map_files(folder: Path, names: Iterable[str] = FILES) -> dict[str, Content]:
    """Return the bytes of these files of a model; raise a `ValueError` if it has no manifest."""
    try:
        files = map_files(lambda: locate(folder, is_model), names)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "it is a file" if folder.is_file() else "there is no such folder"
        raise ValueError(f"{folder} is not a model: {what}") from error
    except PermissionError as error:
        raise ValueError(f"there is no permission to read {folder}: ask its owner for it") from error
    except OSError as error:
        raise OSError(f"{folder} cannot be read now ({error.strerror}): the model itself may be intact") from error
    except ValueError as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error
    if _MANIFEST not in files:
        raise ValueError(f"{folder} is not a model: it has no {_MANIFEST}")
    return files


def _manifest(folder: Path, files: dict[str, Content]) -> dict[str, Any]:
    """Return what a model says about itself; raise a `ValueError` if this version cannot read it."""
    try:
        manifest = stored.parse_json(files[_MANIFEST], _MANIFEST)
    except ValueError as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{folder} is not a model: its {_MANIFEST} names no format")
    if found != FORMAT:
        remedy = "update lightdxml" if found > FORMAT else "train the model again"
        raise ValueError(f"{folder} has format {found} and this version reads {FORMAT}: {remedy}")
    return dict(manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a model says about itself, although its other files may be missing: they are not read."""
    manifest = _manifest(folder, _map_files(folder, (_MANIFEST,)))
    try:
        if manifest.pop("sha256", None) != stored.checksum(manifest):
            raise ValueError(f"{_MANIFEST} was changed after the model was written")
        if not all(type(entry["bytes"]) is int for entry in manifest["files"].values()):
            raise ValueError(f"{_MANIFEST} gives no sizes of files")
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error
    return manifest


def _check_files(files: dict[str, Content], expected: dict[str, Any]) -> None:
    """Raise a `ValueError` if a file is missing or has another size than when it was written."""
    for name, entry in expected.items():
        if name not in FILES:
            raise ValueError(f"its manifest names a file {name!r}")
        if name not in files:
            raise ValueError(f"{name} is missing")
        if len(files[name]) != entry["bytes"]:
            raise ValueError(f"{name} has {len(files[name])} bytes and should have {entry['bytes']}")
    for name in (_ARRAYS, _HISTORY):
        if name not in expected:
            raise ValueError(f"its manifest names no {name}")


def _check_sums(files: dict[str, Content], expected: dict[str, Any]) -> None:
    """Raise a `ValueError` if a file has other content than when it was written."""
    for name, entry in expected.items():
        if sha256(files[name]) != entry["sha256"]:
            raise ValueError(f"{name} was changed after the model was written")


def _shift(content: dict[str, Any]) -> TailShift:
    strengths = content["lowest"], content["highest"]
    for strength in strengths:
        if type(strength) not in (int, float) or not 0 <= strength <= _MAX_STRENGTH:
            raise ValueError(f"its manifest has a tail of strength {strength!r:.30}")
    return TailShift(*map(float, strengths))


def _assemble(files: dict[str, Content], manifest: dict[str, Any], arrays: Arrays, verify: bool) -> Model:
    n_features = _integer(manifest["n_features"], 1, (1 << 31) - 1, "features")
    frequency = arrays["label_frequency"]
    n_labels = len(frequency)
    expect(frequency, "label_frequency", (n_labels,), np.int32)
    if verify and frequency.min(initial=0) < 0:
        raise ValueError("a label has a negative number of documents")
    sizes = ModelSizes(n_features, n_labels)
    if unknown := sorted(set(manifest["views"]) - set(VIEWS)):
        raise ValueError(f"it has a view {unknown[0]!r:.40} that this version of lightdxml does not know")
    views = {name: VIEWS[name].restore(arrays, facts, sizes) for name, facts in manifest["views"].items()}
    blend = restore_blend(manifest["blend"])
    named = blend.slopes if isinstance(blend, LogisticBlend) else [one for one, w in blend.weights.items() if w]
    if not views or not set(named) <= set(views):
        raise ValueError("its views are not those that its blend names")
    if verify:
        for view in views.values():
            view.check_values()
    names = _names(files, _LABELS, n_labels, "labels") if _LABELS in manifest["files"] else None
    return Model(
        views=views,
        blend=blend,
        config=from_json(manifest["config"]),
        n_features=n_features,
        label_frequency=frequency,
        n_documents=_integer(manifest["n_documents"], 0, _MAX_DOCUMENTS, "documents"),
        shift=_shift(manifest["tail"]),
        calibration=restore_calibration(manifest["calibration"]),
        thresholds=ThresholdTable.restore(arrays),
        label_names=names,
        vectorizer=_vectorizer(files, manifest, arrays, n_features),
        word_vectors=manifest["word_vectors"],
        machines=[{str(key): str(value) for key, value in one.items()} for one in manifest["machines"]],
        metrics={str(name): float(value) for name, value in manifest["metrics"].items()},
        n_validation=_integer(manifest.get("n_validation", 0), 0, _MAX_DOCUMENTS, "validation documents"),
        never_own=manifest.get("never_own") is True,
        vocabulary=_vocabulary(files, manifest),
        language=_language(manifest.get("language")),
        retired=_retired(arrays, n_labels),
        merged=_merged(arrays, n_labels),
        trained_on=_trained_on(arrays),
        integer_labels=_integer_labels(manifest.get("integer_labels"), names),
        output=_output(manifest.get("output", "lists")),
        threshold=_threshold(manifest.get("threshold", 0.5)),
        reading=_reading(manifest.get("reading", {})),
    )


def _integer(value: Any, low: int, high: int, what: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"its manifest has {value!r:.60} {what}")
    return value


def _vectorizer(
    files: dict[str, Content], manifest: dict[str, Any], arrays: Arrays, n_features: int
) -> Vectorizer | None:
    if "idf" not in arrays:
        return None
    if _WORDS not in manifest["files"]:
        raise ValueError(f"its manifest names no {_WORDS}")
    expect(arrays["idf"], "idf", (n_features,), np.float32)
    vocabulary = _names(files, _WORDS, n_features, "features")
    return Vectorizer(vocabulary, arrays["idf"], TextOptions(**manifest["text"]))


def _language(code: Any) -> str | None:
    if code is not None and (not isinstance(code, str) or len(code) > _MAX_LANGUAGE):
        raise ValueError(f"its manifest has a language {code!r:.30}")
    return code


def _output(form: Any) -> str:
    if form not in _OUTPUTS:
        raise ValueError(f"its manifest has an output {form!r:.30}")
    return str(form)


def _threshold(threshold: Any) -> float | str:
    try:
        check_threshold(threshold)
    except ValueError as error:
        raise ValueError(f"its manifest has a threshold {threshold!r:.30}") from error
    return threshold if isinstance(threshold, str) else float(threshold)


def _integer_labels(claimed: Any, names: list[str] | None) -> bool:
    """Return whether labels are integers; raise a `ValueError` if their names are not."""
    if claimed is not True:
        return False
    if names is None or not all(map(_INTEGER.fullmatch, names)):
        raise ValueError(f"{_LABELS} has names that are not integers")
    return True


def _reading(content: Any) -> dict[str, str]:
    if not isinstance(content, dict) or not set(content) <= set(REMEMBERED):
        raise ValueError("its manifest has unknown options of reading data")
    for value in content.values():
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_OPTION:
            raise ValueError(f"its manifest has an option of reading data {value!r:.30}")
    return content


def _merged(arrays: Arrays, n_labels: int) -> NDArray[np.int32]:
    merged = arrays.get("merged", np.empty((0, 2), dtype=np.int32))
    expect(merged, "merged", (len(merged), 2), np.int32)
    if not in_range(merged, 0, n_labels):
        raise ValueError("its merged labels do not exist")
    return merged


def _retired(arrays: Arrays, n_labels: int) -> NDArray[np.int32]:
    retired = arrays.get("retired", np.empty(0, dtype=np.int32))
    expect(retired, "retired", (len(retired),), np.int32)
    if not in_range(retired, 0, n_labels) or not is_ascending(retired):
        raise ValueError("its retired labels do not exist or are not ascending")
    return retired


def _trained_on(arrays: Arrays) -> NDArray[np.int64]:
    found = arrays.get("trained_on", np.empty(0, dtype=np.int64))
    expect(found, "trained_on", (len(found),), np.int64)
    if len(found) > fingerprints.LIMIT or not is_ascending(found):
        raise ValueError("its fingerprints of training documents are too many or not ascending")
    return found


def _vocabulary(files: dict[str, Content], manifest: dict[str, Any]) -> Vocabulary | None:
    if _CONCEPTS not in manifest["files"]:
        return None
    return Vocabulary.from_json(stored.parse_json(files[_CONCEPTS], _CONCEPTS))


def _names(files: dict[str, Content], name: str, count: int, what: str) -> list[str]:
    """Return that many names; a file made to fill memory is not read."""
    names = stored.parse_json(files[name], name, _limit(count))
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ValueError(f"{name} is not a list of names")
    if len(names) != count:
        raise ValueError(f"{name} has {len(names)} names for {count} {what}")
    return names


def _limit(count: int) -> int:
    """Return the most bytes that so many names may have."""
    return _MAX_NAME * (count + _SPARE_NAMES)


def _history(files: dict[str, Content]) -> list[dict[str, Any]]:
    history = stored.parse_json(files[_HISTORY], _HISTORY)
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise ValueError(f"{_HISTORY} is not a list of phases")
    return history
