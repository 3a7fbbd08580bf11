"""`lightdxml evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli.decisions import (
    ByFrequency,
    Grid,
    Least,
    PerLabel,
    Threshold,
    check_per_label,
    measure_decisions,
    parse_threshold,
    show_decisions,
    write_per_label,
)
from lightdxml.cli.evaluate_predictions import check_no_options, evaluate_predictions, show_metrics
from lightdxml.cli.examples import show_examples
from lightdxml.cli.measure import (
    CUTS,
    DEEP,
    DEPTH,
    Measured,
    measure,
    note_gaps,
    warn_of_training_documents,
)
from lightdxml.cli.opinions import SecondOpinion, With, WithWeight, check_options
from lightdxml.cli.output import (
    Cutoff,
    Json,
    NJobs,
    Source,
    Tail,
    note,
    print_json,
    print_table,
    say,
)
from lightdxml.cli.reading import Reading, reading_for, reading_options, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of


@with_reading
def run(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a trained model. Or predictions: a file that `predict` wrote, or a folder of parts.",
            show_default=False,
        ),
    ],
    data: Source,
    k: Cutoff = CUTS[-1],
    tail: Tail = 0.0,
    json: Json = False,
    n_jobs: NJobs = None,
    threshold: Threshold = None,
    by_frequency: ByFrequency = False,
    grid: Grid = False,
    per_label: PerLabel = None,
    include: Include = None,
    exclude: Exclude = None,
    include_branch: IncludeBranch = None,
    exclude_branch: ExcludeBranch = None,
    other: With = None,
    weight: WithWeight = None,
    *,
    reading: Reading,
) -> None:
    """Measure the accuracy of a model on the test documents of a data set.

    If the data set has no test part, all of its documents are used. Metrics are shown for the first 1, 3 and 5 labels,
    or up to `-k`, in percent: precision (P), nDCG, both with more weight on rare labels (PSP, PSnDCG), recall (R),
    recall where a document counts as having at most k labels (RP), the fraction of labels that are predicted correctly
    at least once (coverage), and F1 averaged over labels (macro-F1). R-precision is precision at the number of labels
    that a document has. The calibration error (ECE) is the mean difference between the score of a label and how often
    labels with such a score are right. Labels that the model must not suggest do not count.

    Precision, recall and F1 are averaged over all pairs of document and label (micro), over labels (macro) and over
    documents (samples). With `--threshold` or `--grid`, the first 100 labels of each document count.

    With `--with`, predictions are blended with those of another system.

    Predictions in files (JSON Lines or Parquet) are measured without their model. Documents are matched by their ids
    or, without ids, by their order. PSP, PSnDCG and macro-F1 need DATA with a train and a test part.

    Example: `lightdxml evaluate my-model see-also`
    """
    from lightdxml.data import load as load_data
    from lightdxml.data.predicted import is_predictions
    from lightdxml.estimator import load as load_model
    from lightdxml.model.model import check_tail
    from lightdxml.model.store import is_model

    if is_predictions(model) and not is_model(model):
        options = (tail, threshold, by_frequency, grid, per_label, include, exclude, include_branch, exclude_branch)
        check_no_options(model, *options, other, weight)
        evaluate_predictions(model, data, reading, k, json=json)
        return
    check_tail(tail)
    check_options(other, weight, tail, threshold)
    if threshold is not None:
        parse_threshold(threshold)
    if per_label is not None:
        check_per_label(per_label)
    estimator = load_model(model).set_params(n_jobs=n_jobs)
    rules = rules_of(estimator.model_, include, exclude, include_branch, exclude_branch)
    loaded = load_data(data, **reading_for(estimator.model_, reading))
    second = SecondOpinion.of(other, weight, estimator.model_, rules)
    depth = DEEP if grid or threshold is not None else DEPTH
    found = measure(estimator, loaded, tail, second, rules, k, depth)
    warn_of_training_documents(found.documents, loaded, data, reading_options(reading_for(estimator.model_, reading)))
    note_gaps(found.documents.split, "those without labels count as 0")
    lowest = Least.of(estimator.model_, threshold, by_frequency, found.documents.Y.shape[1])
    decisions = measure_decisions(found, k, lowest, grid)
    if per_label is not None:
        n_labels = write_per_label(per_label, estimator.model_, found, k, lowest)
        note(f"{per_label} has {n_labels:,} labels")
    if json:
        groups = [{"training_documents": one.documents, "labels": one.labels, **one.recall} for one in found.groups]
        size = {"documents": len(found.ranked), "trained_on_share": found.documents.trained_on_share}
        size["milliseconds_per_document"] = found.milliseconds
        print_json({**size, **found.metrics, **decisions.as_json(), "recall_by_training_documents": groups})
        return
    show_metrics(
        f"{loaded.name}: {len(found.ranked):,} documents, {found.milliseconds:.2f} ms per document", found.metrics, k
    )
    say(
        f"R-precision: {found.metrics['R-precision']:.2f}%. "
        f"Calibration error (ECE) of the first {k} scores: {decisions.calibration_error:.3f}."
    )
    show_decisions(decisions)
    _show_groups(found)
    show_examples(estimator.model_, found)


def _show_groups(found: Measured) -> None:
    """Show the recall of labels by their number of training documents."""
    rows = [
        [one.documents, f"{one.labels:,}", f"{one.pairs:,}", *(f"{value:.1f}" for value in one.recall.values())]
        for one in found.groups
        if one.pairs
    ]
    columns = ("training documents", "labels", "occurrences", *found.groups[0].recall)
    print_table("Recall of labels by their number of training documents", columns, rows)
