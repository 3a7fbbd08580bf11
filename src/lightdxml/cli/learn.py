"""`lightdxml learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.changes import Out, changing, drift_as_json, n_trained, show_drift, working
from lightdxml.cli.measure import check_kind, inputs_of, note_gaps, share_trained_on
from lightdxml.cli.output import Force, Json, ModelFolder, NJobs, Source, note, print_json, print_table, say
from lightdxml.cli.reading import Reading, reading_for, with_reading

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.data import Dataset
    from lightdxml.learning.folder import Changed
    from lightdxml.model.model import Model

Reject = Annotated[
    list[str] | None,
    typer.Option("--reject", help="Label that was wrongly suggested for these documents. Repeatable.", metavar="LABEL"),
]

_LOST = (
    "the model does not keep its training data: it knows earlier documents only through its weights, so known labels"
    " change little, probabilities stay as they are, and no document can be corrected or forgotten;"
    " train with --keep-training-data to make lessons almost as good as training on all documents"
)
_AGAIN = (
    "most of these documents were learned before and now count twice: lightdxml rollback undoes the lesson;"
    " in a model trained with --keep-training-data, documents replace earlier ones with the same id"
)
# The share of documents that were learned before from which on that is no chance.
_MOST = 0.5


@with_reading
def run(
    model: ModelFolder,
    data: Source,
    out: Out = None,
    force: Force = False,
    json: Json = False,
    n_jobs: NJobs = None,
    reject: Reject = None,
    *,
    reading: Reading,
) -> None:
    """Teach a trained model new documents, new labels and corrections, without training again.

    If the data set has parts, the model learns the train part. A document replaces an earlier one with the same id, if
    the model keeps its training data. Give all labels of a document: it counts as having no others. Each lesson is a
    step in the journal of the model: see `lightdxml history` and `lightdxml rollback`.

    Example: `lightdxml learn my-model new-documents.csv`
    """
    from lightdxml.data import load
    from lightdxml.kernels import parallel
    from lightdxml.learning import folder
    from lightdxml.learning.drift import drift
    from lightdxml.learning.summary import count
    from lightdxml.predictor import threads_of

    threads = threads_of(n_jobs)
    with changing(model, out, force) as target, parallel.use_threads(threads):
        opened = folder.ModelFolder(model)
        loaded = load(data, **reading_for(opened.model, reading))
        train = loaded.train
        check_kind(train, opened.model, data, model)
        labels, share = _labels(loaded, opened.model), share_trained_on(train, opened.model)
        with working(f"learning {count(len(train), 'document')}"):
            changed = opened.learn(
                inputs_of(train), ids=train.ids, out=out, source=Path(data).name, rejected=reject or (), **labels
            )
        note_gaps(train, "they were learned anyway")
        if (share or 0) > _MOST and not changed.entry.figures["corrected"]:
            note(_AGAIN)
        if not opened.keeps_training_data:
            note(_LOST)
        note_retired(changed.model, loaded)
    found = drift(changed.model, changed.journal.entries)
    if json:
        entry = changed.entry
        content = {"model": str(target), "step": entry.step, "time": entry.time, "version": entry.version}
        content |= {**entry.figures, "seconds": changed.seconds, "keeps_training_data": opened.keeps_training_data}
        print_json({**content, "drift": drift_as_json(found)})
        return
    print_table(f"{loaded.name}: step {changed.entry.step} of {target}", ("", "", ""), _rows(changed))
    show_drift(found, changed.model, target, n_trained(changed.model, changed.journal.entries))
    say(f"The model is in {target}. It has {count(changed.model.n_labels, 'label')}.")


def note_retired(model: Model, data: Dataset) -> None:
    """Say which labels of new documents are retired: they are learned, but never suggested."""
    from lightdxml.learning.summary import some

    if model.label_names is None or data.label_names is None:
        return
    gone = {model.label_names[j] for j in set(model.retired.tolist()) - set(model.merged[:, 0].tolist())}
    used = {data.label_names[j] for j in data.train.Y.indices}
    if found := sorted(gone & used):
        note(f"retired labels of these documents are learned, but never suggested: {some(found)}")


def _labels(data: Dataset, model: Model) -> dict[str, Any]:
    """Return the labels of training documents as the model has them: integer ids or columns if its labels are such."""
    names, Y = data.label_names, data.train.Y
    if model.label_names is None and names is not None and all(name.isdecimal() for name in names):
        return {"y": _in_columns(Y, [int(name) for name in names])}
    if not model.integer_labels or (names is not None and not all(name.isdecimal() for name in names)):
        return {"y": Y, "label_names": names}
    ids = list(range(Y.shape[1])) if names is None else [int(name) for name in names]
    return {"y": [[ids[j] for j in row.indices.tolist()] for row in Y]}


def _in_columns(Y: csr_matrix, columns: list[int]) -> csr_matrix:
    """Return labels in other columns."""
    from scipy.sparse import csr_matrix

    pairs = Y.tocoo()
    new = [columns[j] for j in pairs.col.tolist()]
    return csr_matrix((pairs.data, (pairs.row, new)), shape=(Y.shape[0], max(columns, default=0) + 1))


def _rows(changed: Changed) -> list[tuple[str, str, str]]:
    figures = changed.entry.figures
    metrics = figures["measured"]["metrics"]
    rows = [
        ("documents", f"{figures['documents']:,}", ""),
        ("labels trained again", f"{figures['labels']:,}", ""),
        ("new labels", f"{figures['new_labels']:,}", ""),
        ("new words", f"{figures['new_words']:,}", f"{figures['unknown_words']:.1%} of the words were unknown"),
        ("seconds", f"{changed.seconds:.1f}", ""),
    ]
    if metrics:
        values = ", ".join(f"{metrics[f'P@{k}']:.2f}" for k in (1, 3, 5))
        rows.insert(-1, ("P@1, 3, 5", values, "on the new documents, before they were learned"))
    if figures["corrected"]:
        rows.insert(1, ("corrected", f"{figures['corrected']:,}", "they replace documents with the same id"))
    if figures["recalibrated"]:
        rows.append(("probabilities", "fitted", "to the latest documents"))
    return rows
