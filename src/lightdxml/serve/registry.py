"""The registry of served models: loads them, warms them up, and swaps in new versions under load."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from lightdxml.data.dataset import Texts
from lightdxml.model import store
from lightdxml.model.model import Model
from lightdxml.persistence.arrays import checksum
from lightdxml.predictor import Predictor
from lightdxml.serve.problems import RETRY_AFTER, Problem

_log = logging.getLogger("lightdxml")
_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_UNKNOWN_LANGUAGE = "und"
# The most labels per model whose JSON is cached.
_CACHED = 1 << 16
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One version of a served model.

    Attributes
    ----------
    id
        The name that clients use.
    model
        The model.
    version
        The first digits of the checksum of its manifest.
    modified
        When it was written.
    manifest
        The content of its manifest.
    cache
        A cache that lives as long as this version.
    """

    id: str
    model: Model
    version: str
    modified: datetime
    manifest: Mapping[str, Any] = field(repr=False)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def language(self) -> str:
        """The default language of label names; `und` if it is not known."""
        return self.languages[0]

    @cached_property
    def languages(self) -> list[str]:
        """The languages of label names, the default one first."""
        vocabulary = self.model.vocabulary
        known = [] if vocabulary is None else [language for language in vocabulary.languages if language]
        own = [] if self.model.language is None else [self.model.language]
        return list(dict.fromkeys([*own, *known])) or [_UNKNOWN_LANGUAGE]

    def cached(self, key: Any, compute: Callable[[], T]) -> T:
        """Return a cached value, or compute and cache it."""
        found: T | None = self.cache.get(key)
        if found is None:
            if len(self.cache) >= _CACHED:
                self.cache.clear()
            found = self.cache[key] = compute()
        return found


def parse_models(models: Sequence[str]) -> dict[str, Path]:
    """Return model folders by id, from arguments such as `my-model` and `cats=models/cats`.

    >>> parse_models(["models/cats", "dogs=models/2"])
    {'cats': PosixPath('models/cats'), 'dogs': PosixPath('models/2')}
    """
    found: dict[str, Path] = {}
    for argument in models:
        name, equals, folder = argument.partition("=")
        # A folder may have an equals sign in its name.
        is_named = bool(equals) and _ID.fullmatch(name) is not None and not Path(argument).exists()
        path = Path(folder if is_named else argument)
        name = name if is_named else path.resolve().name
        if _ID.fullmatch(name) is None:
            raise ValueError(f"{path} has a name that is no id: give it one, such as cats={path}")
        if name in found:
            raise ValueError(f"two models are called {name}: give them ids, such as {name}-2={path}")
        found[name] = path
    return found


class ModelRegistry:
    """All served models, by id.

    Parameters
    ----------
    folders
        Model folders by id.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self.folders = dict(folders)
        self.swaps = 0
        self._served: dict[str, ServedModel] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._failed: dict[str, tuple[int, int] | None] = {}
        self._locks = {name: Lock() for name in folders}

    @property
    def ready(self) -> bool:
        """Whether all models are loaded and warmed up."""
        return len(self._served) == len(self.folders)

    def __iter__(self) -> Iterator[ServedModel]:
        if not self.ready:
            raise Problem(503, "the models are still being loaded: try again in a second", RETRY_AFTER)
        return iter(list(self._served.values()))

    def __getitem__(self, name: str) -> ServedModel:
        served = self._served.get(name)
        if served is not None:
            return served
        if name in self.folders:
            raise Problem(503, f"the model {name} is still being loaded: try again in a second", RETRY_AFTER)
        raise Problem(404, f"there is no project or model {name[:100]!r}: GET /v1/projects lists them")

    def load(self) -> None:
        """Load and warm up all models; raise a `ValueError` if one cannot be served."""
        for name, folder in self.folders.items():
            with self.changing(name):
                self._stamps[name] = store.stamp(folder)
                self._served[name] = load_served_model(name, folder)

    def retry(self) -> list[ServedModel]:
        """Reload as `reload` does, and try again what could not be loaded before."""
        self._failed.clear()
        return self.reload()

    def reload(self) -> list[ServedModel]:
        """Swap in models whose folders have changed, and return the new versions.

        Running requests keep the old version. If a new version cannot be loaded, the old one stays, with a warning.
        """
        changed = []
        for name, folder in self.folders.items():
            with self.changing(name):
                changed.append(self._reloaded(name, folder))
        return [served for served in changed if served is not None]

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Keep others from loading or swapping a model inside the `with` block."""
        with self._locks[name]:
            yield

    def swap(self, name: str, model: Model, manifest: Mapping[str, Any], stamp: tuple[int, int]) -> ServedModel:
        """Serve a model that was just written to its folder, without reading it; call it while `changing` it.

        Parameters
        ----------
        name
            The id of the model.
        model
            The new version.
        manifest
            The content of its manifest.
        stamp
            Inode and modification time of the manifest: `reload` does not load this version again.
        """
        try:
            _warm_up(model)
        except Exception as error:
            # The lesson is on the disk already.
            _log.warning("model %s could not be warmed up: %s", name, error)
        served = _served(name, model, manifest, stamp)
        self._served[name], self._stamps[name] = served, stamp
        return served

    def _reloaded(self, name: str, folder: Path) -> ServedModel | None:
        """Return the new version of a model, now served; None if there is none."""
        stamp = None
        try:
            stamp = store.stamp(folder)
            if stamp in (self._stamps.get(name), self._failed.get(name)):
                return None
            served = load_served_model(name, folder)
        except Exception as error:
            if self._failed.get(name) != stamp or stamp is None:
                _log.warning("model %s was not reloaded: %s", name, error)
            self._failed[name] = stamp
            return None
        self._stamps[name] = stamp
        if served.version == self._served[name].version:
            return None
        self._served[name] = served
        self.swaps += 1
        _log.info("model %s was reloaded, version %s", name, served.version)
        return served


def load_served_model(name: str, folder: Path) -> ServedModel:
    """Load a model and warm it up: one prediction loads compiled code and memory pages."""
    stored, stamp = store.load(folder), store.stamp(folder)
    model = stored.model
    if model.vectorizer is None:
        raise ValueError(f"{folder} was trained on features, not on texts: only models of texts can be served")
    _warm_up(model)
    return _served(name, model, stored.manifest, stamp)


def _served(name: str, model: Model, manifest: Mapping[str, Any], stamp: tuple[int, int]) -> ServedModel:
    modified = datetime.fromtimestamp(stamp[1] / 1e9, tz=timezone.utc)
    # A manifest has its own checksum in it as long as it was not loaded.
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return ServedModel(name, model, checksum(content)[:12], modified, content)


def _warm_up(model: Model) -> None:
    assert model.vectorizer is not None
    words = model.vectorizer.vocabulary
    text = " ".join(words[:: max(1, len(words) // 100)][:100])
    predictor = Predictor(model, 1)
    # Texts that are not ASCII, titles and rules use kernels of their own.
    predictor.rank(Texts([text, f"{text} é\u0301"], titles=["", text]), 10)
    # Rules may name labels that were retired, but must leave one that was not.
    labels = np.flatnonzero(np.ones(model.n_labels, dtype=np.bool_) if model.allowed is None else model.allowed)
    if len(labels) > 1:
        first = model.given_label(int(labels[0]))
        predictor.rank([text], 10, exclude=[first])
        predictor.rank([text], 10, include=[first])
    predictor.explain(text, 1)
