"""`lightdxml train`."""

from __future__ import annotations

import difflib
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.matching import features_of, reading_options
from lightdxml.cli.output import (
    Encoding,
    Json,
    OldSplit,
    Separator,
    Source,
    Threads,
    console,
    errors,
    print_json,
    seconds_of,
)

if TYPE_CHECKING:
    from lightdxml.estimator import LightDXML

NewModel = Annotated[Path, typer.Option("--model", help="The folder to write the model into.", show_default=False)]
Set = Annotated[list[str] | None, typer.Option("--set", help="A setting, as in `--set k=500`; may be repeated.")]


def run(
    data: Source,
    model: NewModel,
    preset: Annotated[str, typer.Option("--preset", help="`default`, or `paper/EURLex-4K` …")] = "default",
    set: Set = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same model.")] = 0,
    vectors: Annotated[
        str | None,
        typer.Option("--vectors", help="Word vectors to begin with: a file, or `train` to make them from the texts."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="A folder to keep in what is needed to go on after an interruption."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", help="Time between checkpoints, as 30s or 1h; 5m unless given.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint, if there is one.")] = False,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="The most memory to use, as 4GB; what is free unless given.")
    ] = None,
    scratch: Annotated[
        Path | None, typer.Option("--scratch", help="A folder for features and shortlists that memory has no room for.")
    ] = None,
    threads: Threads = None,
    json: Json = False,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Train a model on the train part of a data set; the dev part, or a slice of train, decides β and the epoch.

    With --checkpoint, Ctrl-C stops where --resume goes on, and so does a crash, to the same model as without it.

    Example: `lightdxml train see-also --model my-model`
    """
    from lightdxml import storage
    from lightdxml.data import load
    from lightdxml.estimator import LightDXML
    from lightdxml.training.checkpoint import is_in, remove
    from lightdxml.training.cycle import DivergedError

    seconds_between = seconds_of(every or "5m", "--every")
    if every is not None and checkpoint is None:
        raise ValueError("--every needs a folder for checkpoints: give --checkpoint DIR")
    if resume and checkpoint is None:
        raise ValueError("--resume needs the folder to go on from: give --checkpoint DIR")
    settings = _settings(set or [])
    estimator = LightDXML(preset, threads=threads, vectors=vectors, **{"seed": seed, **settings})
    estimator.config()
    _check_vectors(vectors)
    storage.check_target(model, checkpoint, scratch)
    with _telling_how_to_go_on(checkpoint):
        loaded = load(data, label_separator=separator, encoding=encoding, split=old_split)
        if checkpoint is not None and resume:
            found = "going on from the last checkpoint" if is_in(checkpoint) else "no checkpoint, beginning anew"
            errors.print(f"{checkpoint}: {found}", markup=False, highlight=False, soft_wrap=True)
        start = time.perf_counter()
        dev = None if loaded.dev is None else (features_of(loaded.dev), loaded.dev.Y)
        try:
            estimator.fit(
                features_of(loaded.train), loaded.train.Y, dev=dev, label_names=loaded.label_names,
                checkpoint=checkpoint, checkpoint_every=seconds_between, resume=resume,
                memory_limit=memory_limit, scratch=scratch,
            )  # fmt: skip
        except DivergedError as error:
            if error.kept is None:
                raise
            estimator.save(model)
            raise ValueError(f"{error} (it is in {model})") from error
        seconds = time.perf_counter() - start
        _save(estimator, model, checkpoint)
    if checkpoint is not None:
        remove(checkpoint)
    trained = estimator.model_
    if json:
        content: dict[str, Any] = {"model": str(model), "seconds": seconds, "beta": trained.beta}
        content["gamma"] = None if trained.sparse is None else trained.gamma
        print_json(content | {"validation": trained.metrics, "config": vars(trained.config)})
        return
    figures = "  ".join(f"{name} {trained.metrics[name]:.2f}" for name in ("P@1", "P@3", "P@5", "PSP@1", "PSP@5"))
    shares = f"β {trained.beta:g}" + ("" if trained.sparse is None else f", γ {trained.gamma:g}")
    line = f"{loaded.name}: trained in {seconds:.1f} s, {shares}; on validation documents {figures}"
    console.print(line, markup=False, soft_wrap=True)
    following = shlex.join(
        ["lightdxml", "evaluate", str(model), data, *reading_options(separator, encoding, old_split)]
    )
    console.print(f"The model is in {model}. Next: {following}", markup=False, soft_wrap=True)


@contextmanager
def _telling_how_to_go_on(checkpoint: Path | None) -> Iterator[None]:
    """Say how a training that is stopped can go on, if it can."""
    from lightdxml.training.checkpoint import Interrupted, is_in

    try:
        yield
    except KeyboardInterrupt as stopped:
        told = "stopped: nothing was written; with --checkpoint DIR a training can go on later"
        if checkpoint is not None:
            told = f"stopped; go on with: {_resuming()}" if is_in(checkpoint) else "stopped before the first checkpoint"
        errors.print(told, markup=False, highlight=False, soft_wrap=True)
        number = stopped.signal if isinstance(stopped, Interrupted) else signal.SIGINT
        raise typer.Exit(128 + number) from stopped


def _resuming() -> str:
    """Return the command that goes on with this training."""
    return shlex.join(["lightdxml", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"])


def _save(estimator: LightDXML, model: Path, checkpoint: Path | None) -> None:
    """Save a model; where that fails, say that the training is safe, if it is."""
    from lightdxml.training.checkpoint import is_in

    try:
        estimator.save(model)
    except (OSError, ValueError) as error:
        if checkpoint is None or not is_in(checkpoint):
            raise
        raise ValueError(f"{error}; the training is safe in {checkpoint}, go on with: {_resuming()}") from error


def _check_vectors(vectors: str | None) -> None:
    """Raise, before any work is done, where there are no such word vectors."""
    if vectors == "train" and find_spec("gensim") is None:
        raise ValueError('training word vectors needs gensim: pip install "lightdxml[vectors]", or gensim itself')
    if vectors is not None and vectors != "train" and not Path(vectors).exists():
        raise ValueError(f"there are no word vectors at {vectors}: give a file, or train to make them from the texts")


def _settings(given: list[str]) -> dict[str, Any]:
    from lightdxml.config import Config, configure, parsed_setting
    from lightdxml.text.tfidf import TextOptions

    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {setting} is no setting: write --set name=value")
        settings[name] = parsed_setting(name, value)
    texts = [field.name for field in fields(TextOptions)]
    known = [field.name for field in fields(Config)] + texts
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            perhaps = f"perhaps {near[0]}? " if near else ""
            raise ValueError(f"there is no setting {name!r}: {perhaps}known are {', '.join(known)}")
    TextOptions(**{name: value for name, value in settings.items() if name in texts})
    configure(**{name: value for name, value in settings.items() if name not in texts})
    return settings
