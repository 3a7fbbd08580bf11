"""`lightdxml weigh`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.measure import documents_of, split_command, warn_of_training_documents
from lightdxml.cli.opinions import WITH_HELP, note_missing, read_opinions
from lightdxml.cli.output import (
    Json,
    ModelFolder,
    NJobs,
    Source,
    Tail,
    print_json,
    print_table,
    say,
)
from lightdxml.cli.reading import Reading, reading_for, reading_options, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset
    from lightdxml.model.opinions import WeightPoint


@with_reading
def run(
    model: ModelFolder,
    data: Source,
    other: Annotated[
        Path,
        typer.Option(
            "--with", metavar="FILE", help=WITH_HELP.format(documents=" for these documents"), show_default=False
        ),
    ],
    tail: Tail = 0.0,
    json: Json = False,
    n_jobs: NJobs = None,
    include: Include = None,
    exclude: Exclude = None,
    include_branch: IncludeBranch = None,
    exclude_branch: ExcludeBranch = None,
    *,
    reading: Reading,
) -> None:
    """Find the best weight for blending another system's scores with those of a model.

    The documents are the dev part of a data set, or a file of documents that the model has not seen. FILE has a line
    for each of them, such as `{"id": "4711", "labels": [{"label": "cat", "score": 0.83}]}`. A label can also have a
    `uri` instead of its name. Scores can have any scale.

    The blended score is (1 − weight) · score of the model + weight · score of the other system. The best weight has the
    highest mean of P@1, P@3 and P@5. If it gains no more than its standard error, the best weight is 0. Pass the
    weight to `predict` and `evaluate` as `--with-weight`. Labels that the model must not suggest do not count.

    Example: `lightdxml weigh my-model my-data --with annif-dev.jsonl`
    """
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.model.model import check_tail
    from lightdxml.model.opinions import DEPTH, best_weight, weight_curve

    check_tail(tail)
    estimator = load_model(model).set_params(n_jobs=n_jobs)
    rules = rules_of(estimator.model_, include, exclude, include_branch, exclude_branch)
    options = reading_options(reading_for(estimator.model_, reading))
    loaded = _dev(load_data(data, **reading_for(estimator.model_, reading)), data, options)
    found = documents_of(loaded, estimator.model_, rules)
    warn_of_training_documents(found, loaded, data, options)
    opinions = read_opinions(other, estimator.model_, rules)
    n = len(found.split)
    places = opinions.places(found.split.ids, n)
    note_missing(opinions, int((places < 0).sum()), n)
    ours = estimator.rank(found.inputs, DEPTH, tail=tail, **rules)
    points = weight_curve(found.Y, ours, opinions.of(places), found.ignore)
    best = best_weight(points)
    if json:
        print_json({"documents": n, **asdict(best), "curve": [asdict(point) for point in points]})
        return
    _show(f"{loaded.name}: {n:,} documents, in percent", points, best)


def _dev(data: Dataset, source: str, reading: list[str]) -> Dataset:
    """Return the data with its dev part in place of the test part; all documents of a data set of one part."""
    if data.dev is None and data.test is not None:
        raise ValueError(
            f"{source} has no dev part, and test documents must not choose a weight: give a file of documents that the"
            " model has not seen, or hold out documents and train again:"
            f" {split_command(source, reading, '--test', '0', '--dev', '0.1')}"
        )
    return replace(data, test=data.dev)


def _show(title: str, points: list[WeightPoint], best: WeightPoint) -> None:
    rows = [
        [
            f"{point.weight:g}",
            *(f"{value:.2f}" for value in point.precision.values()),
            f"{point.gain:+.2f}",
            f"{point.error:.2f}",
            "✓" if point is best else "",
        ]
        for point in points
    ]
    columns = ("weight", *best.precision, "mean gain", "standard error", "")
    print_table(title, columns, rows)
    if best.weight:
        say(f"Best weight: --with-weight {best.weight:g}. It gains {best.gain:.2f} ± {best.error:.2f} points.")
    else:
        say("Best weight: 0. No other weight gains more than its standard error over the model alone.")
