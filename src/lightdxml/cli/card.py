"""`lightdxml card`, and the model card that `lightdxml push` uploads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.output import ModelFolder, NJobs, say
from lightdxml.cli.reading import Reading, reading_for, reading_options, with_reading

if TYPE_CHECKING:
    from lightdxml.hub.evaluation import Evaluation

Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Measure accuracy for the card on the test documents of this data set. Default: on validation documents.",
        show_default=False,
    ),
]
License = Annotated[
    str, typer.Option("--license", help="License of the model, such as `mit` or `cc-by-4.0`.", show_default=False)
]
Language = Annotated[
    str,
    typer.Option(
        "--language", help="Language of the texts, such as `en`. Default: the one in the model.", show_default=False
    ),
]


@with_reading
def run(
    model: ModelFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write. Default: standard output.", metavar="README.md")
    ] = None,
    data: Data = None,
    repo: Annotated[
        str,
        typer.Option(
            "--repo", help="Repository of the model, for the commands in the card: OWNER/NAME.", show_default=False
        ),
    ] = "",
    license: License = "",
    language: Language = "",
    with_training_data: Annotated[
        bool, typer.Option("--with-training-data", help="State in the card that the training data is shared, too.")
    ] = False,
    n_jobs: NJobs = None,
    *,
    reading: Reading,
) -> None:
    """Write a model card: what the model is, how good it is, what it is not good for, and what its files reveal.

    Example: `lightdxml card my-model --data my-data --license mit --out README.md`
    """
    from lightdxml.data.files import check_replaceable, writing_text
    from lightdxml.hub.card import BEGINNING, About, card
    from lightdxml.hub.connection import check_repo, require_hub
    from lightdxml.learning.stored import at_one_moment
    from lightdxml.model import store

    require_hub()
    if repo:
        check_repo(repo)
    if out is not None:
        check_replaceable(out, BEGINNING, "a model card", "README.md")
    about = About(
        repo.rpartition("/")[2] or model.resolve().name, repo, license.lower(), language.lower(), with_training_data
    )
    text = card(at_one_moment(model, store.load), about, evaluated(model, data, n_jobs, reading))
    if out is None:
        typer.echo(text, nl=False)
        return
    with writing_text(out) as stream:
        stream.write(text)
    say(f"The model card is in {out}.")


def evaluated(folder: Path, data: str | None, n_jobs: int | None, reading: Reading) -> Evaluation | None:
    """Return what a model achieves on a data set; None without one."""
    if data is None:
        return None
    from lightdxml.cli.measure import CUTS, measure, warn_of_training_documents
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load
    from lightdxml.hub.evaluation import Evaluation, calibration_error_of, groups_of, intervals_of

    estimator = load(folder).set_params(n_jobs=n_jobs)
    options = reading_for(estimator.model_, reading)
    loaded = load_data(data, **options)
    found = measure(estimator, loaded)
    documents = found.documents
    warn_of_training_documents(documents, loaded, data, reading_options(options))
    results = documents.Y, found.ranked, found.scores
    return Evaluation(
        data=loaded.name,
        documents=len(documents.split),
        metrics=found.metrics,
        intervals=intervals_of(documents.Y, found.ranked, CUTS, documents.ignore),
        groups=groups_of(*results, documents.frequency, documents.ignore),
        calibration_error=calibration_error_of(*results, documents.ignore),
        milliseconds=found.milliseconds,
        unknown_labels=len(documents.unknown_names),
        trained_on_share=documents.trained_on_share,
    )
