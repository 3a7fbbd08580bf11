"""`lightdxml learn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightdxml.cli.changes import Out, drift_as_json, show_drift, target_of
from lightdxml.cli.measure import inputs_of, note_gaps
from lightdxml.cli.output import Force, Json, ModelFolder, NJobs, Source, note, print_json, print_table, say
from lightdxml.cli.reading import Reading, reading_for, with_reading

if TYPE_CHECKING:
    from lightdxml.data import Dataset
    from lightdxml.learning.folder import Changed
    from lightdxml.model.model import Model

_LOST = (
    "the model does not keep its training data: earlier documents are known only by its weights;"
    " train with --keep-training-data for lessons as good as training on all documents"
)


@with_reading
def run(
    model: ModelFolder,
    data: Source,
    out: Out = None,
    force: Force = False,
    json: Json = False,
    n_jobs: NJobs = None,
    *,
    reading: Reading,
) -> None:
    """Teach a trained model new documents, new labels and corrections, without training again.

    Of a data set with parts, the training documents are learned. A document with the id of one that was learned before
    replaces it. Every lesson is written into the journal of the model: see `lightdxml history` and
    `lightdxml rollback`.

    Example: `lightdxml learn my-model new-documents.csv`
    """
    from lightdxml.data import load
    from lightdxml.kernels import parallel
    from lightdxml.learning import folder
    from lightdxml.learning.drift import drift
    from lightdxml.predictor import threads_of

    threads = threads_of(n_jobs)
    target = target_of(model, out, force)
    opened = folder.ModelFolder(model)
    loaded = load(data, **reading_for(opened.model, reading))
    note_gaps(loaded.train, "they are learned all the same")
    if not opened.keeps_training_data:
        note(_LOST)
    with parallel.use_threads(threads):
        labels = _labels(loaded, opened.model)
        changed = opened.learn(inputs_of(loaded.train), ids=loaded.train.ids, out=out, **labels)
    entries = (opened if out is None else folder.ModelFolder(out)).journal.entries
    found = drift(changed.model, entries)
    if json:
        entry = changed.entry
        content = {"model": str(target), "step": entry.step, "time": entry.time, "version": entry.version}
        content |= {**entry.figures, "seconds": changed.seconds, "keeps_training_data": opened.keeps_training_data}
        print_json({**content, "drift": drift_as_json(found)})
        return
    print_table(f"{loaded.name}: step {changed.entry.step} of {target}", ("", "", ""), _rows(changed))
    show_drift(found, changed.model, target)
    say(f"The model is in {target}. It has {changed.model.n_labels:,} labels.")


def _labels(data: Dataset, model: Model) -> dict[str, Any]:
    """Return the labels of training documents as the model has them: integer ids if its labels are such."""
    names, Y = data.label_names, data.train.Y
    if not model.integer_labels or (names is not None and not all(name.isdecimal() for name in names)):
        return {"y": Y, "label_names": names}
    ids = list(range(Y.shape[1])) if names is None else [int(name) for name in names]
    return {"y": [[ids[j] for j in row.indices.tolist()] for row in Y]}


def _rows(changed: Changed) -> list[tuple[str, str, str]]:
    figures = changed.entry.figures
    metrics = figures["measured"]["metrics"]
    rows = [
        ("documents", f"{figures['documents']:,}", ""),
        ("corrected", f"{figures['corrected']:,}", "they replace documents of the same id"),
        ("labels trained again", f"{figures['labels']:,}", ""),
        ("new labels", f"{figures['new_labels']:,}", ""),
        ("new words", f"{figures['new_words']:,}", f"{figures['unknown_words']:.1%} of the words were unknown"),
        ("P@1, 3, 5", ", ".join(f"{metrics[f'P@{k}']:.2f}" for k in (1, 3, 5)), "before they were learned, in percent"),
        ("seconds", f"{changed.seconds:.1f}", ""),
    ]
    if figures["recalibrated"]:
        rows.append(("probabilities", "fitted", "to the latest documents"))
    return rows
