"""What a study has found, as a preset file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml import __version__
from lightdxml.presets import Preset, read

if TYPE_CHECKING:
    from lightdxml.tuning.documents import Documents
    from lightdxml.tuning.study import Outcome, Plan

_STUDY = "study"


def study_id(identity: dict[str, Any]) -> str:
    """Return what identifies a study: the same data, metric and options have the same.

    >>> study_id({"metric": "PSP@5"})
    '50934dd5d07f'
    """
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def check_target(path: Path, study: str) -> None:
    """Raise a `ValueError` if a file is there that this study has not written."""
    if not path.exists():
        return
    try:
        is_ours = read(path).about.get(_STUDY) == study
    except ValueError:
        is_ours = False
    if not is_ours:
        raise ValueError(f"{path} is not a preset of this study: choose another --out, or give --force to replace it")


def best_preset(data: Documents, plan: Plan, outcome: Outcome, study: str) -> Preset:
    """Return the settings of the best trial, with how they were found; those of the defaults if no trial is better."""
    assert outcome.best is not None
    counted = {name: sum(one.outcome == name for one in outcome.trials) for name in ("done", "pruned", "failed")}
    values = {
        name: None if one is None or one.value is None else round(one.value, 4)
        for name, one in (("default", outcome.default), ("tuned", outcome.best))
    }
    about = {
        "data": data.name,
        "documents": len(data.judged),
        "metric": plan.metric.name,
        "tail": plan.metric.tail,
        **values,
        "trials": counted,
        "lightdxml": __version__,
        _STUDY: study,
    }
    found = plan.preset.with_settings(outcome.best.settings)
    return Preset(found.base, found.settings, about)
