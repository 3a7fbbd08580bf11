"""`lightdxml report`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.changes import n_trained
from lightdxml.cli.measure import CUTS, cuts_up_to, match, warn_of_training_documents
from lightdxml.cli.output import Cutoff, ModelFolder, NJobs, require_plots, say
from lightdxml.cli.reading import Reading, reading_for, reading_options, with_reading
from lightdxml.cli.settings import nearest_preset, plain, training_options

if TYPE_CHECKING:
    from lightdxml.cli.measure import Matched
    from lightdxml.data.dataset import Dataset
    from lightdxml.estimator import LightDXML
    from lightdxml.model.model import Model
    from lightdxml.report import Subject

Data = Annotated[
    str, typer.Option("--data", help="Measure the model on the test documents of this data set.", show_default=False)
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="HTML file to write. Default: MODEL-report.html in the current folder.", metavar="FILE"),
]


@with_reading
def run(
    model: ModelFolder,
    data: Data,
    out: Out = None,
    k: Cutoff = CUTS[-1],
    n_jobs: NJobs = None,
    *,
    reading: Reading,
) -> None:
    """Write an HTML report about a model.

    The report shows accuracy on test documents, calibration of scores, rare and frequent labels, confused labels,
    examples, training, time and memory. If the data set has no test part, all of its documents are used.

    Example: `lightdxml report my-model --data see-also`
    """
    require_plots()
    from lightdxml import report
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model

    name, target = model.resolve().name, default_target(model) if out is None else out
    report.check_target(target)
    estimator = load_model(model).set_params(n_jobs=n_jobs)
    loaded = load_data(data, **reading_for(estimator.model_, reading))
    # A file of test documents does not tell what the model was trained on.
    training_data = data if loaded.test is not None else "TRAINING-DATA"
    options = reading_options({**estimator.model_.reading, **reading})
    cutoff, given = [] if k == CUTS[-1] else ["-k", str(k)], reading_options(reading)
    preset, changed = _given(estimator.model_, model)
    again = training_options(estimator.model_, preset, changed)
    commands = [
        # Into another folder: no model is replaced without being asked to.
        shlex.join(["lightdxml", "train", training_data, "--model", f"{model}-again", *again, *options]),
        shlex.join(["lightdxml", "report", str(model), "--data", data, "--out", str(target), *cutoff, *given]),
    ]
    found = match(loaded, estimator.model_)
    warn_of_training_documents(found, loaded, data, options)
    settings = ", ".join(f"{name} = {plain(value)}" for name, value in changed.items())
    about = f"preset {preset} with {settings}" if settings else f"preset {preset}"
    report.write(target, _subject(name, estimator, loaded, found, commands, k, about))
    say(f"The report is in {target}. Open it in a browser: {target.resolve().as_uri()}")


def default_target(model: Path) -> Path:
    """Return where the report about a model goes."""
    return Path(f"{model.resolve().name}-report.html")


def _given(model: Model, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the preset of a model, and the settings that were given."""
    from lightdxml.learning.stored import read_journal
    from lightdxml.model.store import LEARNING

    return nearest_preset(model.config, n_trained(model, read_journal(folder / LEARNING)[0].entries))


def _subject(
    name: str, estimator: LightDXML, loaded: Dataset, found: Matched, commands: list[str], k: int, settings: str
) -> Subject:
    from lightdxml.kernels.parallel import use_threads
    from lightdxml.metrics import evaluate
    from lightdxml.report import Subject
    from lightdxml.report.analysis import DEPTH, measure

    model, depth = estimator.model_, max(DEPTH, k)
    with use_threads(estimator.n_jobs):
        measured = measure(model, found.inputs, found.Y, found.ignore, depth)
    return Subject(
        model_name=name,
        data_name=loaded.name,
        part="documents" if loaded.test is None else "test documents",
        model=model,
        history=estimator.history_,
        measured=measured,
        metrics=evaluate(measured.Y, measured.ranked, range(1, depth + 1), found.inv_propensity),
        frequency=found.frequency,
        settings=settings,
        texts=found.split.texts,
        ids=found.split.ids,
        unknown_names=found.unknown_names,
        commands=commands,
        cuts=cuts_up_to(k),
    )
