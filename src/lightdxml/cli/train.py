"""`lightdxml train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lightdxml.cli.output import Encoding, Json, OldSplit, Separator, Source, console, print_json

ModelFolder = Annotated[Path, typer.Option("--model", help="The folder to write the model into.", show_default=False)]
Set = Annotated[list[str] | None, typer.Option("--set", help="A setting, as in `--set k=500`; may be repeated.")]


def run(
    data: Source,
    model: ModelFolder,
    preset: Annotated[str, typer.Option("--preset", help="`default`, or `paper/EURLex-4K` …")] = "default",
    set: Set = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same model.")] = 0,
    threads: Annotated[int | None, typer.Option("--threads", help="All cores unless given.")] = None,
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
    estimator = LightDXML(preset, threads=threads, **{"seed": seed, **settings})
    estimator.config()
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
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {setting} is no setting: write --set name=value")
        settings[name] = value
    from lightdxml.config import configure

    config = configure(**settings)
    return {name: getattr(config, name) for name in settings}


def features_of(split: Any) -> Any:
    """Return what a model learns from: texts, or features where there are some."""
    return split.texts if split.X is None else split.X
