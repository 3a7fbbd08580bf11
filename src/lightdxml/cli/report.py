"""`lightdxml report`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from lightdxml.cli import matching
from lightdxml.cli.output import Encoding, ModelFolder, OldSplit, Separator, Threads, console

Data = Annotated[str, typer.Option("--data", help="A file, a folder, or the name of a data set.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="The page to write; `MODEL-report.html` in this folder unless given.", show_default=False
    ),
]


def run(
    model: ModelFolder,
    data: Data,
    out: Out = None,
    threads: Threads = None,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Write one page about a model: accuracy, training, β, rare and frequent labels, confusions, time and memory.

    Measured on the test part of a data set; of a single file, on all of it.

    Example: `lightdxml report my-model --data see-also`
    """
    from lightdxml import report
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model

    name = model.resolve().name
    target = Path(f"{name}-report.html") if out is None else out
    report.check_target(target)
    estimator = load_model(model)
    estimator.threads = threads
    loaded = load_data(data, label_separator=separator, encoding=encoding, split=old_split)
    reading = matching.reading_options(separator, encoding, old_split)
    subject = _subject(name, estimator, loaded, _commands(model, data, target, estimator, loaded, reading))
    report.write(target, subject)
    console.print(f"The report is in {target}: open it in a browser.", markup=False, soft_wrap=True)


def _subject(name: str, estimator: Any, loaded: Any, commands: list[str]) -> Any:
    from lightdxml.metrics import evaluate
    from lightdxml.report import Subject
    from lightdxml.report.analysis import DEPTH, measure

    has_test = loaded.test is not None
    split = loaded.test if has_test else loaded.train
    names, model = loaded.label_names, estimator.model_
    Y, ignore = matching.to_model(split.Y, names, model), matching.ignored(split, names, model)
    measured = measure(estimator, matching.features_of(split), Y, ignore)
    frequency, n_documents = matching.frequency_of(loaded, model, measured.Y.shape[1])
    q = matching.inverse_propensity_of(loaded.name, frequency, n_documents)
    return Subject(
        model_name=name,
        data_name=loaded.name,
        part="test documents" if has_test else "documents",
        estimator=estimator,
        measured=measured,
        metrics=evaluate(measured.Y, measured.ranked, range(1, DEPTH + 1), q),
        frequency=frequency,
        train_documents=len(loaded.train) if has_test else None,
        texts=split.texts,
        ids=split.ids,
        unseen_names=matching.unseen_names(names, model),
        commands=commands,
    )


def _commands(model: Path, data: str, out: Path, estimator: Any, loaded: Any, reading: list[str]) -> list[str]:
    """Return how to make the model and its page again."""
    from lightdxml.report.analysis import nearest_preset, plain

    has_test = loaded.test is not None
    preset, changed = nearest_preset(estimator.model_.config, len(loaded.train) if has_test else None)
    # A file of test documents does not tell what the model was trained on.
    train = ["lightdxml", "train", data if has_test else "TRAINING-DATA", "--model", str(model)]
    if preset != "default":
        train += ["--preset", preset]
    for name, value in changed.items():
        train += ["--seed", str(value)] if name == "seed" else ["--set", f"{name}={plain(value)}"]
    vectorizer = estimator.model_.vectorizer
    if vectorizer is not None:
        usual = vars(type(vectorizer.settings)())
        for name, value in vars(vectorizer.settings).items():
            train += ["--set", f"{name}={plain(value)}"] if value != usual[name] else []
    if estimator.model_.vectors is not None:
        train += ["--vectors", estimator.model_.vectors]
    report = ["lightdxml", "report", str(model), "--data", data, "--out", str(out)]
    return [shlex.join([*train, *reading]), shlex.join([*report, *reading])]
