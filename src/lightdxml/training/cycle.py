"""Algorithm 1 of the paper: label embeddings, shortlists, classifier, and again.

Step 1 maps documents to embeddings x̂ (`views.dense.encoder`). Step 2 trains the label encoder Z_l (`label_encoder`).
Step 3 finds the shortlists S_k (`lightdxml.index`). Step 4 trains classifier and encoder jointly (`train_classifier`).
Step 5 is the loop of `train`. Step 6, the prediction, is `lightdxml.model`. Progress, history, checkpoints and
divergence checks are callbacks: they see every phase and may stop the training.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.kernels import parallel
from lightdxml.kernels.precision import rounded
from lightdxml.training.choose import beta_curve, choose, mean_precision
from lightdxml.training.plan import plan, shortlist_length
from lightdxml.training.run import Run
from lightdxml.training.state import Best, CycleState, DenseResult, sample
from lightdxml.views.dense import label_encoder, train_classifier
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.encoder import encode, normalize, normalized
from lightdxml.views.dense.nearness import NearnessView

_QUERIES = 8192


def train(run: Run, state: CycleState) -> DenseResult:
    """Iterate steps 2, 3 and 4; return the views of the best validation accuracy (step 5)."""
    steps = plan(run.config.dense)
    with state.divided(run.data, run.config, run.executor):
        while state.step < len(steps):
            step = steps[state.step]
            run.notify("on_step_begin")
            if step.kind == "classifier":
                classifier_epoch(run, state, step.epoch)
            else:
                refresh(run, state, with_training=step.kind == "refresh")
            state.step += 1
            run.notify("on_step_end")
    assert state.best is not None
    best = state.best
    fitting = state.label_encoder if best.is_latest else None
    return DenseResult(best.classifier, best.nearness, best.beta, fitting)


def refresh(run: Run, state: CycleState, *, with_training: bool) -> None:
    """Do steps 1 to 3: embeddings, centroids, label encoder, index, shortlists; then validate."""
    # Released, not only emptied: the next ones are as large.
    state.shortlists = np.empty((0, 0), dtype=np.int32)
    state.refreshes += 1
    x_hat = encode(state.encoder.encoder, run.data.X)
    run.notify("on_vectors", "the embeddings", x_hat)
    mu = label_encoder.centroids(run.data.label_to_docs, x_hat)
    if with_training:
        train_label_encoder(run, state, mu, x_hat)
    view = build_index(run, state, mu, x_hat)
    del mu
    find_shortlists(run, state, view, x_hat)
    del x_hat
    state.training.take_shortlists(state.shortlists)
    validate(run, state, view)


def train_label_encoder(run: Run, state: CycleState, mu: NDArray[np.float32], x_hat: NDArray[np.float32]) -> None:
    """Do step 2: train Z_l for e_label epochs."""
    data, options = run.data, run.config.dense
    for epoch in range(options.label_epochs):
        with run.phase("label encoder", f"refresh {state.refreshes}: label encoder, epoch {epoch + 1}") as phase:
            loss = label_encoder.train_epoch(
                state.label_encoder, data.label_to_docs, data.known_labels, mu, x_hat, options.label_learning_rate,
                state.rng,
            )  # fmt: skip
            run.progress(phase, 1, epoch=epoch, loss=loss)


def build_index(run: Run, state: CycleState, mu: NDArray[np.float32], x_hat: NDArray[np.float32]) -> NearnessView:
    """Embed the labels that have documents, and index the embeddings."""
    data, options = run.data, run.config.dense
    with run.phase("index") as phase:
        y_hat = label_encoder.embed(state.label_encoder, mu[data.known_labels])
        run.notify("on_vectors", "the label encoder", y_hat)
        normalize(y_hat)
        vectors = rounded(y_hat, run.config.precision)
        queries, size = normalized(sample(x_hat)), options.shortlist_size
        index = indexes.build(vectors, options.index, queries=queries, k=size)  # type: ignore[arg-type]
        run.progress(phase, 1, kind=index.kind)
    return NearnessView(state.encoder.encoder, data.known_labels.astype(np.int32), index, size)


def find_shortlists(run: Run, state: CycleState, view: NearnessView, x_hat: NDArray[np.float32]) -> None:
    """Do step 3: S_k of every training document (Equation 6)."""
    n, k = len(x_hat), min(shortlist_length(run.config.dense, state.step), len(view.labels))
    state.shortlists = run.array("shortlists", (n, k), np.int32)
    if k == 0:
        return
    normalize(x_hat)
    index = view.index if run.config.dense.index != "auto" else indexes.training_index(view.index, x_hat, k)
    with run.phase("shortlist", f"refresh {state.refreshes}: shortlists ({index.kind})", n) as phase:
        # Some at a time: all results together would take as much memory as the shortlists.
        for first, last in parallel.fixed_chunks(n, _QUERIES * run.executor.ranges):
            parts = np.split(x_hat[first:last], range(_QUERIES, last - first, _QUERIES))
            found = run.executor.map(_nearest, (index, k), parts)
            state.shortlists[first:last] = view.labels[np.concatenate(found)]
            run.progress(phase, last - first)
        run.progress(phase, kind=index.kind, recall=indexes.recall_of_exact(index, x_hat, k))


def _nearest(shared: tuple[indexes.Index, int], queries: NDArray[np.float32]) -> NDArray[np.int32]:
    index, k = shared
    return index.search(queries, k)[0]


def classifier_epoch(run: Run, state: CycleState, epoch: int) -> None:
    """Do step 4: one epoch of classifier and encoder over P_i ∪ S_k(x_i) (Equation 3)."""
    options, data, n = run.config.dense, run.data, run.data.X.shape[0]
    if not len(state.order):
        state.order = state.rng.permutation(n)
    starts = range(0, n, options.batch_size)
    title = f"refresh {state.refreshes}: classifier, epoch {epoch + 1} of {options.epochs}"
    with run.phase("classifier", title, n) as phase:
        run.progress(phase, starts[state.batch], epoch=epoch)
        for i in range(state.batch, len(starts)):
            rows = state.order[starts[i] : starts[i] + options.batch_size]
            rate = train_classifier.learning_rate(options, epoch, i / len(starts))
            state.loss += train_classifier.train_batch(
                state.training, state.encoder, data.X, rows, options, rate, state.rng
            )
            state.batch = i + 1
            run.progress(phase, len(rows), loss=state.loss / (starts[i] + len(rows)))
            if state.batch < len(starts):
                run.notify("on_batch_end")
    state.order, state.batch, state.loss = state.order[:0], 0, 0.0


def validate(run: Run, state: CycleState, nearness: NearnessView) -> None:
    """Measure the dense views on validation documents and keep a copy of the best ones."""
    classifier = ClassifierView(state.encoder.encoder, state.collected().W)
    with run.phase("validation") as phase:
        curve = beta_curve(run, classifier, nearness)
        beta, metrics = choose(curve, run.config.blend.tolerance)
        accuracy = max(mean_precision(measured) for _, measured in curve)
        # Of equals the later one: few validation documents cannot decide, and it has been trained longer.
        is_best = state.best is None or accuracy >= state.best.accuracy
        run.progress(phase, 1, beta=beta, kept=is_best, curve=curve, **metrics)
    run.say(f"refresh {state.refreshes}: validation P@1 {metrics['P@1']:.2f}, PSP@1 {metrics['PSP@1']:.2f}, β {beta:g}")
    if not is_best:
        assert state.best is not None
        state.best.is_latest = False
        return
    state.best = None
    encoder = state.encoder.encoder.copy(run.config.precision)
    kept = ClassifierView(encoder, rounded(state.classifier.W, run.config.precision))
    state.best = Best(kept, replace(nearness, encoder=encoder), beta, accuracy)
