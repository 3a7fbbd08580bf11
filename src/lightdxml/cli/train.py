"""`lightdxml train`."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from lightdxml.cli.matching import features_of
from lightdxml.cli.output import Encoding, Json, OldSplit, Separator, Source, Threads, console, print_json

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
    threads: Threads = None,
    json: Json = False,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Train a model on the train part of a data set; the dev part, or a slice of train, decides β and the epoch.

    Example: `lightdxml train see-also --model my-model`
    """
    from lightdxml import storage
    from lightdxml.data import load
    from lightdxml.estimator import LightDXML

    settings = _settings(set or [])
    estimator = LightDXML(preset, threads=threads, vectors=vectors, **{"seed": seed, **settings})
    estimator.config()
    if vectors is not None and vectors != "train" and not Path(vectors).exists():
        raise ValueError(f"there are no word vectors at {vectors}: give a file, or train to make them from the texts")
    storage.check_target(model)
    loaded = load(data, label_separator=separator, encoding=encoding, split=old_split)
    start = time.perf_counter()
    dev = None if loaded.dev is None else (features_of(loaded.dev), loaded.dev.Y)
    estimator.fit(features_of(loaded.train), loaded.train.Y, dev=dev, label_names=loaded.label_names)
    seconds = time.perf_counter() - start
    estimator.save(model)
    trained = estimator.model_
    if json:
        content: dict[str, Any] = {"model": str(model), "seconds": seconds, "beta": trained.beta}
        print_json(content | {"validation": trained.metrics, "config": vars(trained.config)})
        return
    figures = "  ".join(f"{name} {trained.metrics[name]:.2f}" for name in ("P@1", "P@3", "P@5", "PSP@1", "PSP@5"))
    line = f"{loaded.name}: trained in {seconds:.1f} s, β {trained.beta:g}; on validation documents {figures}"
    console.print(line, markup=False, soft_wrap=True)
    console.print(f"The model is in {model}. Next: lightdxml evaluate {model} {data}", markup=False, soft_wrap=True)


def _settings(given: list[str]) -> dict[str, Any]:
    from lightdxml.config import configure, parsed_setting
    from lightdxml.text.tfidf import TextSettings

    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {setting} is no setting: write --set name=value")
        settings[name] = parsed_setting(name, value)
    texts = {field.name for field in fields(TextSettings)}
    TextSettings(**{name: value for name, value in settings.items() if name in texts})
    configure(**{name: value for name, value in settings.items() if name not in texts})
    return settings
