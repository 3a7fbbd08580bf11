"""`lightdxml predict`."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from lightdxml.cli.decisions import ByFrequency, Threshold
from lightdxml.cli.opinions import With, WithWeight
from lightdxml.cli.output import ModelFolder, NJobs, Tail, note
from lightdxml.cli.parts import check_distributed, parse_part, predict_on_ray, write_part
from lightdxml.cli.predicting import Request, Work
from lightdxml.cli.predictions import To, check_target, form_of
from lightdxml.cli.reading import Reading, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch

_PANEL = "Parts and clusters"
_parts = partial(typer.Option, rich_help_panel=_PANEL, show_default=False)


@with_reading
def run(
    model: ModelFolder,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File of documents, or folder of such files; `-` reads standard input.",
            show_default=False,
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            help="Maximum number of labels per document. Default: 5; 100 with `--threshold`.",
            min=1,
            show_default=False,
        ),
    ] = None,
    threshold: Threshold = None,
    by_frequency: ByFrequency = False,
    form: Annotated[
        Literal["auto", "lines", "jsonl", "csv"],
        typer.Option("--format", help="Format of texts; `auto` detects it."),
    ] = "auto",
    to: Annotated[
        To | None,
        typer.Option(
            help="Format of predictions. Default: from the ending of `--out`, else `text`; with `--ray`, `jsonl`.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write; with `--ray`, a folder. Default: standard output.", metavar="FILE", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Same as `--to jsonl`.")] = False,
    part: Annotated[
        str | None,
        _parts(help="Predict one of several parts of the documents: `3/8` is the third of eight.", metavar="I/N"),
    ] = None,
    ray: Annotated[
        str | None,
        _parts(
            help="Predict on a Ray cluster: its address, such as `auto` or `head:6379`, or `local` for this machine.",
            metavar="ADDRESS",
        ),
    ] = None,
    parts: Annotated[
        int | None, _parts(help="Files to write with `--ray`. Default: one per 4,096 documents, up to 1,000.", min=1)
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing predictions.", rich_help_panel=_PANEL)
    ] = False,
    tail: Tail = 0.0,
    n_jobs: NJobs = None,
    include: Include = None,
    exclude: Exclude = None,
    include_branch: IncludeBranch = None,
    exclude_branch: ExcludeBranch = None,
    other: With = None,
    weight: WithWeight = None,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--on-error", help="Stop at a document that cannot be read, or skip it with a warning and an empty answer."
        ),
    ] = "stop",
    *,
    reading: Reading,
) -> None:
    """Predict the labels of documents, one line of output per document.

    Texts are plain lines (one document per line), JSON Lines, or CSV or Parquet with columns `text` and `title`, and
    `id` (Annif's `document_id`) if documents have one. By default, columns have the same names as in training. A model
    that was trained on features reads the text format of the Extreme Classification repository (XC). Text files may be
    compressed.

    Predictions are printed while documents are still being read. With `--with`, they are blended with those of another
    system.

    At a document that cannot be read, the command stops, after predicting the documents before it. With
    `--on-error skip`, it goes on: the answer for this document is an empty line, or in JSON an object with `error`.

    The outputs of all parts (`--part 1/8` to `--part 8/8`), one after the other, are those of all documents. A part
    whose file already exists is not predicted again.

    Example: `echo "solve a linear system" | lightdxml predict my-model - -k 3`
    """
    if json and to not in (None, "jsonl"):
        raise ValueError(f"--json is the same as --to jsonl, and --to is {to}: give one of them")
    written: To | None = "jsonl" if json else to
    if written is None:
        written = form_of(out) if ray is None else "jsonl"
    request = Request(
        model, file, written, k, threshold, by_frequency, form, tail, include, exclude, include_branch, exclude_branch,
        other, weight, on_error, reading,
    )  # fmt: skip
    _check_file(model, file)
    request.check()
    if ray is not None:
        check_distributed(request, out, part)
        assert out is not None
        predict_on_ray(request, ray, out, parts, n_jobs, force=force)
        return
    if parts is not None:
        raise ValueError("--parts is for a Ray cluster: give --ray ADDRESS, or one part of several as --part 1/8")
    check_target(written, file, out)
    chosen = None if part is None else parse_part(part)
    if chosen is not None and out is not None and out.exists() and not force:
        note(f"{out} already exists: part {part} is not predicted again without --force")
        return
    work = Work(request, n_jobs)
    n_documents = work.write(out) if chosen is None else write_part(work, out, *chosen)
    if n_documents == 0:
        note(f"{file} has no documents" if chosen is None else f"part {part} of {file} has no documents")


def _check_file(model: Path, file: Path) -> None:
    """Raise a `ValueError` that says how to predict a text, if there is no such file."""
    if str(file) != "-" and not os.path.lexists(file):
        command = shlex.join(["lightdxml", "predict", str(model), "-"])
        raise ValueError(f"there is no file {file}; if it is a text: echo {shlex.quote(str(file))} | {command}")
