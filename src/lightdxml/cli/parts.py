"""Predictions in parts: one of several in a job, or all of them on a Ray cluster, in the files of a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml.cli.output import errors, note, note_connection
from lightdxml.cli.predicting import Request, Work
from lightdxml.cli.predictions import check_target

if TYPE_CHECKING:
    from lightdxml.data.corpus import Corpus, Span

# What predictions in a folder depend on.
MANIFEST = "predictions.json"
_FORMAT = 1
_PART = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
# A part takes some seconds. Their number depends on nothing but the data: another cluster can go on.
_PART_DOCUMENTS, _MOST_PARTS = 4096, 1000
_ENDINGS = {"text": ".txt", "jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet"}
_ADVICE = "choose another folder, or replace them with --force"


def parse_part(text: str) -> tuple[int, int]:
    """Return the number of a part, and of how many.

    >>> parse_part("3/8")
    (3, 8)
    """
    found = _PART.fullmatch(text)
    part, parts = (int(one) for one in found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise ValueError(f"--part {text} is not a part: write 1/8 for the first of eight, up to 8/8")
    return part, parts


def write_part(work: Work, out: Path | None, part: int, parts: int) -> int:
    """Predict a part, counted from 1, of the documents; return how many it has."""
    from lightdxml.data.corpus import span_of

    counts = work.corpus.counts()
    return work.write(out, span_of(part, parts, sum(counts)), counts)


def check_distributed(request: Request, out: Path | None, part: str | None) -> None:
    """Raise a `ValueError` if options do not go with a cluster."""
    if part is not None:
        raise ValueError("--part is for jobs without Ray: leave out --part or --ray")
    if out is None:
        raise ValueError("--ray writes a file for each part: give a folder as --out")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file, and --ray writes a file for each part: give a folder as --out")
    if str(request.file) == "-":
        raise ValueError("standard input cannot be divided into parts: save the documents to a file first")
    check_target(request.to, request.file, out / name_of(0, request.to))


def name_of(number: int, to: str) -> str:
    """Return the name of the file of a part, counted from 0.

    >>> name_of(7, "jsonl")
    'part-00007.jsonl'
    """
    return f"part-{number:05d}{_ENDINGS[to]}"


@dataclass(frozen=True)
class Job:
    """A part that a worker predicts."""

    out: Path
    span: Span


class Worker:
    """What each process of a cluster runs: it loads the model once, and predicts one part after the other."""

    def __init__(self, request: Request, checksum: str, counts: Sequence[int], n_jobs: int) -> None:
        from lightdxml.model import store

        self._work, self._counts = Work(request, n_jobs), counts
        # A model may learn, or be trained again, while parts are predicted.
        if store.checksum(request.model) != checksum:
            raise ValueError(f"{request.model} has changed meanwhile: predict all parts again with --force")

    def __call__(self, job: Job) -> None:
        """Predict a part."""
        self._work.write(job.out, job.span, self._counts)


def predict_on_ray(
    request: Request, address: str, out: Path, parts: int | None, n_jobs: int | None, *, force: bool
) -> None:
    """Predict all documents on a Ray cluster, into the files of a folder; those that are there are kept."""
    from lightdxml.cluster.connection import require_ray
    from lightdxml.data.corpus import span_of

    require_ray()
    from lightdxml.cluster.predict import call_in_actors
    from lightdxml.learning.summary import count

    # Other processes have other working directories.
    other = None if request.other is None else request.other.resolve()
    request = replace(request, model=request.model.resolve(), file=request.file.resolve(), other=other)
    out = out.resolve()
    corpus = Work(request, 1).corpus
    counts = corpus.counts()
    n_documents = sum(counts)
    manifest = _manifest(request, corpus, n_documents)
    parts = _prepare(out, manifest, parts or _earlier_parts(out, manifest) or _default_parts(n_documents), force=force)
    jobs = [Job(out / name_of(i, request.to), span_of(i + 1, parts, n_documents)) for i in range(parts)]
    missing = [job for job in jobs if not job.out.exists()]
    if len(missing) < parts:
        note(f"{parts - len(missing):,} of {parts:,} parts are already in {out}")
    if missing:
        note_connection(address)
        cpus = max(1, n_jobs or 1)
        create = partial(Worker, request, manifest["model"], counts, cpus)
        _run(call_in_actors(address, create, missing, cpus), parts, len(missing))
    _remove_unfinished(out)
    note(f"{out} has the predictions for {count(n_documents, 'document')} in {count(parts, 'part')}")


def _remove_unfinished(out: Path) -> None:
    """Remove what workers left that were killed while they wrote: all parts are there."""
    for path in out.glob(".part-*.part"):
        path.unlink(missing_ok=True)


def _run(done: Any, parts: int, missing: int) -> None:
    """Wait for parts, and show how many are done."""
    from rich.progress import Progress

    with Progress(console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task("parts", total=parts, completed=parts - missing)
        for _ in done:
            progress.advance(task)


def _default_parts(n_documents: int) -> int:
    return max(1, min(_MOST_PARTS, -(-n_documents // _PART_DOCUMENTS)))


def _manifest(request: Request, corpus: Corpus, n_documents: int) -> dict[str, Any]:
    """Return what the predictions depend on."""
    from lightdxml.data import arrow
    from lightdxml.model.store import checksum

    data = arrow.files(request.file) if arrow.is_saved(request.file) else corpus.files()
    data = data if request.other is None else [*data, request.other]
    return {
        "format": _FORMAT,
        "model": checksum(request.model),
        "data": [[file.name, file.stat().st_size] for file in data],
        "documents": n_documents,
        "settings": request.settings(),
    }


def _earlier_parts(out: Path, manifest: dict[str, Any]) -> int | None:
    """Return the number of parts of the same predictions that were begun; None without any."""
    earlier = read_manifest(out)
    return earlier["parts"] if earlier is not None and {**manifest, "parts": earlier["parts"]} == earlier else None


def read_manifest(out: Path) -> dict[str, Any] | None:
    """Return what the predictions in a folder depend on; None if there is nothing."""
    path = out / MANIFEST
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("parts"), int) or found.get("format") != _FORMAT:
        raise ValueError(f"{path} is damaged or from another version of lightdxml: choose another folder")
    return found


def _prepare(out: Path, manifest: dict[str, Any], parts: int, *, force: bool) -> int:
    """Make a folder ready for parts, or raise a `ValueError` that says what else it holds; return their number."""
    from lightdxml.data import files

    earlier, wanted = read_manifest(out), {**manifest, "parts": parts}
    if earlier is None and out.is_dir() and any(out.iterdir()):
        raise ValueError(f"{out} holds something other than predictions: choose another folder")
    if earlier is not None and (force or earlier != wanted):
        if not force:
            raise ValueError(f"{out} holds predictions {_difference(earlier, wanted)}: {_ADVICE}")
        _remove(out)
    if earlier != wanted or force:
        with files.writing_text(out / MANIFEST) as stream:
            stream.write(json.dumps(wanted, indent=1, ensure_ascii=False) + "\n")
    return parts


def _difference(earlier: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Say in what predictions differ."""
    from lightdxml.learning.summary import count

    if earlier.get("model") != wanted["model"]:
        return "of another model"
    if any(earlier.get(name) != wanted[name] for name in ("data", "documents")):
        return "of other data"
    if earlier.get("settings") != wanted["settings"]:
        return "with other options"
    return f"in {count(earlier['parts'], 'part')}, not {wanted['parts']:,}"


def _remove(out: Path) -> None:
    """Remove predictions: the manifest last, so that what is left is known for what it is."""
    for path in out.iterdir():
        if re.fullmatch(r"part-[0-9]{5,}\.(txt|jsonl|csv|parquet)", path.name):
            path.unlink()
    (out / MANIFEST).unlink()
