"""Presets by name, and presets in files: JSON that people can edit, and that `lightdxml tune` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lightdxml.config import PRESETS, Config, changed, configure, full_name
from lightdxml.data.files import writing_text
from lightdxml.text.tfidf import TextOptions

TEXT_NAMES = tuple(one.name for one in fields(TextOptions))
_KEYS = ("base", "settings", "about")
# A preset has a few dozen settings.
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Preset:
    """Where settings come from that are not given.

    Attributes
    ----------
    base
        The name of the preset that is changed.
    settings
        What is changed: settings of `Config` by full name, and fields of `TextOptions`.
    about
        How the settings were found; training does not use it.

    Examples
    --------
    >>> preset = Preset(settings={"dense.dim": 64, "ngrams": 2})
    >>> preset.config(1000, {"dim": 32}).dense.dim, preset.text_options({"min_df": 3}).ngrams
    (32, 2)
    """

    base: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def config(self, documents: int | None = None, given: Mapping[str, Any] | None = None) -> Config:
        """Return all settings for that many training documents; those that are given win."""
        own = {name: value for name, value in self.settings.items() if name not in TEXT_NAMES}
        return configure(self.base, documents, own | {full_name(name): value for name, value in (given or {}).items()})

    def text_options(self, given: Mapping[str, Any] | None = None) -> TextOptions:
        """Return how texts become features; what is given wins."""
        own = {name: value for name, value in self.settings.items() if name in TEXT_NAMES}
        return TextOptions(**{**own, **(given or {})})

    def with_settings(self, settings: Mapping[str, Any]) -> Preset:
        """Return this preset with further settings, by short or full name."""
        named = {name if name in TEXT_NAMES else full_name(name): value for name, value in settings.items()}
        return Preset(self.base, {**self.settings, **named}, self.about)


def find(name: str | Path) -> Preset:
    """Return a preset by its name or its file.

    >>> find("fast").base
    'fast'
    >>> find("mine.json")
    Traceback (most recent call last):
    FileNotFoundError: there is no preset file mine.json: check the path
    """
    called = str(name)
    if called in PRESETS:
        return Preset(called)
    if called.endswith(".json") or Path(called).is_file():
        return read(Path(called))
    *first, last = PRESETS
    raise ValueError(f"there is no preset {called!r}: choose {', '.join(first)} or {last}, or give a preset file")


def read(path: Path) -> Preset:
    """Read a preset file. Mistakes in it raise a `ValueError` that says what to change.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.json"
    ...     _ = path.write_text('{"base": "fast", "settings": {"ngrams": 2}}')
    ...     read(path).text_options().ngrams
    2
    """
    content = read_json(path, "preset", '{"base": "default", "settings": {"NAME": VALUE, …}}')
    for key in content:
        if key not in _KEYS:
            raise ValueError(f"{path} has an entry {key!r}: a preset has only {', '.join(_KEYS[:-1])} and {_KEYS[-1]}")
    base, settings, about = (content.get(key, default) for key, default in zip(_KEYS, ("default", {}, {}), strict=True))
    if not isinstance(base, str) or base not in PRESETS:
        *first, last = PRESETS
        raise ValueError(f"{path}: base is {base!r}: choose {', '.join(first)} or {last}")
    for key, value in (("settings", settings), ("about", about)):
        if not isinstance(value, dict):
            raise ValueError(f'{path}: {key} is {value!r:.50}: write {{"NAME": VALUE, …}}')
    try:
        return _checked(base, settings, about)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write(path: Path, preset: Preset) -> None:
    """Write a preset file; an old one is replaced in one step."""
    content = {"base": preset.base, "settings": dict(preset.settings), "about": dict(preset.about)}
    with writing_text(path) as stream:
        stream.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _checked(base: str, settings: dict[str, Any], about: dict[str, Any]) -> Preset:
    preset = Preset(base, {}, about)
    for name, value in settings.items():
        known = tuple(value) if isinstance(value, list) else value
        full = name if name in TEXT_NAMES else full_name(name)
        if full in preset.settings:
            raise ValueError(f"{full} is set twice: keep one of them")
        if name not in TEXT_NAMES:
            changed(Config(), {name: known})
        preset = preset.with_settings({name: known})
    # Settings may not fit together.
    preset.config()
    preset.text_options()
    return preset


def read_json(path: Path, what: str, form: str) -> dict[str, Any]:
    """Return the object in a small JSON file, which is called `what` in messages and looks like `form`."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a {what} file")
    if not path.exists():
        raise FileNotFoundError(f"there is no {what} file {path}: check the path")
    if path.stat().st_size > _LARGEST_FILE:
        raise ValueError(f"{path} is too large for a {what}: give another file")
    try:
        content = json.loads(path.read_text("utf-8"), object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error.msg}, line {error.lineno}): correct this line") from error
    except RecursionError as error:
        raise ValueError(f"{path} is not a {what}: its brackets are nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not JSON in UTF-8: save it as UTF-8") from error
    except _RepeatedError as error:
        raise ValueError(f"{path} has {error} twice: keep one of them") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a {what}: write {form}")
    return content


class _RepeatedError(ValueError):
    """An object has a key twice, of which JSON readers keep the last one."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _RepeatedError(repr(name))
        found[name] = value
    return found
