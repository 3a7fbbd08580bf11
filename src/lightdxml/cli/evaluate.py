"""`lightdxml evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightdxml.cli.measure import CUTS, Measured, measure
from lightdxml.cli.opinions import SecondOpinion, With, WithWeight, check_options
from lightdxml.cli.output import (
    Json,
    ModelFolder,
    NJobs,
    Source,
    Tail,
    distinct_names,
    print_json,
    print_table,
    say,
)
from lightdxml.cli.reading import Reading, reading_for, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of

if TYPE_CHECKING:
    from lightdxml.model.model import Model

_SAMPLES = 3


@with_reading
def run(
    model: ModelFolder,
    data: Source,
    tail: Tail = 0.0,
    json: Json = False,
    n_jobs: NJobs = None,
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

    If the data set has no test part, all of its documents are used. Measures are given for the first 1, 3 and 5 labels,
    in percent: precision (P), nDCG, both with more weight on rare labels (PSP, PSnDCG), recall (R), the fraction of
    labels that are predicted correctly at least once (coverage), and F1 averaged over labels (macro-F1). Labels that
    may not be suggested do not count.

    With `--with`, predictions are blended with those of another system.

    Example: `lightdxml evaluate my-model see-also`
    """
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.model.model import check_tail

    check_tail(tail)
    check_options(other, weight)
    estimator = load_model(model).set_params(n_jobs=n_jobs)
    rules = rules_of(estimator.model_, include, exclude, include_branch, exclude_branch)
    loaded = load_data(data, **reading_for(estimator.model_, reading))
    second = SecondOpinion.of(other, weight, estimator.model_, rules)
    found = measure(estimator, loaded, tail, second, rules)
    if json:
        groups = [{"training_documents": one.documents, "labels": one.labels, **one.recall} for one in found.groups]
        size = {"documents": len(found.ranked), "milliseconds_per_document": found.milliseconds}
        print_json({**size, **found.metrics, "recall_by_training_documents": groups})
        return
    rows = [
        [name, *(f"{found.metrics[f'{name}@{k}']:.2f}" for k in CUTS), ""]
        for name in ("P", "nDCG", "PSP", "PSnDCG", "R", "coverage", "macro-F1")
        if f"{name}@1" in found.metrics
    ]
    title = f"{loaded.name}: {len(found.ranked):,} documents, {found.milliseconds:.2f} ms per document"
    print_table(title, ("%", *(f"@{k}" for k in CUTS), ""), rows)
    _show_groups(found)
    _show_samples(estimator.model_, found)


def _show_groups(found: Measured) -> None:
    """Show the recall of labels by their number of training documents."""
    rows = [
        [one.documents, f"{one.labels:,}", f"{one.pairs:,}", *(f"{value:.1f}" for value in one.recall.values())]
        for one in found.groups
        if one.pairs
    ]
    columns = ("training documents", "labels", "occurrences", *found.groups[0].recall)
    print_table("Recall of labels by their number of training documents", columns, rows)


def _show_samples(model: Model, found: Measured) -> None:
    """Show the predictions of a few documents."""
    split, names, Y = found.documents.split, model.label_names, found.documents.Y
    if split.texts is None or names is None:
        return
    say("\nExamples (✓ marks correct labels):")
    for i in range(0, len(split), max(1, len(split) // _SAMPLES))[:_SAMPLES]:
        true = set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist())
        best = list(zip(found.ranked[i].tolist(), found.scores[i].tolist(), strict=True))[: max(CUTS)]
        shown = [(j, score) for j, score in best if j >= 0]
        named = distinct_names([model.label(j) for j, _ in shown])
        labels = [
            f"{' '.join(name.split())}{' ✓' * (j in true)} {score:.2f}"
            for name, (j, score) in zip(named, shown, strict=True)
        ]
        say(f"- {' '.join(split.texts[i][:200].split())[:70]}\n    → {', '.join(labels)}")
