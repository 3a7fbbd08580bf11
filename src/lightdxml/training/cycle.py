"""The cycle: label embeddings, shortlists, classifier, and again, until validation accuracy is best.

The paper's Algorithm 1 in its own order. Step 1: documents as sums of word vectors (`embedding`). Step 2: label
encoder Z_l (`label_encoder`). Step 3: shortlists S_k (`lightdxml.shortlist`). Step 4: classifier and features, jointly
(`classifier`). Step 5: this file. Step 6: the blended prediction (`blend`, `lightdxml.model`).
"""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from threadpoolctl import threadpool_limits

from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.encoder import encode, rounded, to_unit_rows, unit_rows
from lightdxml.inverted_file import sample_of
from lightdxml.label_tree import doubts
from lightdxml.metrics import inverse_propensity
from lightdxml.model import Candidates, Model, find_candidates, rarity, score
from lightdxml.progress import Progress, peak_memory
from lightdxml.shortlist import Shortlist
from lightdxml.training import blend, classifier, embedding, label_encoder, label_tree, sparse_view
from lightdxml.training.checkpoint import Interrupted, Keeper
from lightdxml.training.plan import plan, shortlist_length
from lightdxml.persistence.spill import SHORTLISTS, Scratch
from lightdxml.training.snapshot import Frame
from lightdxml.training.state import State

_HALVED_AT = (14, 21, 25)
_SEARCHED = 8192
# No weight of a sound model comes near it; looked at every so many batches, as that takes as long as a small one.
_LARGEST_WEIGHT, _BATCHES_BETWEEN_LOOKS = 1e3, 100
# Numbers of word vectors above it are a cause of their own.
_LARGE_START = 100.0
_LABEL_ENCODER = "the label encoder"


@dataclass
class Result:
    """A trained model and how it came about: one entry of `history` a phase."""

    model: Model
    history: list[dict[str, Any]] = field(default_factory=list)


class DivergedError(ValueError):
    """Training went out of bounds; the best model until then is kept, None where there was none yet."""

    def __init__(self, message: str, kept: Result | None) -> None:
        super().__init__(message)
        self.kept = kept


def train(
    X: csr_matrix,
    Y: csr_matrix,
    X_validation: csr_matrix,
    Y_validation: csr_matrix,
    config: Config,
    progress: Progress,
    vectors: NDArray[np.float32] | None = None,
    keeper: Keeper | None = None,
    scratch: Scratch | None = None,
    *,
    set_aside: bool = False,
) -> Result:
    """Train on X (rows of length 1) and Y; choose β and the epoch on the validation documents.

    Validation documents that were set aside from those to train on are learnt by the views of words when all is chosen.
    What a keeper has kept of an earlier run is gone on with, to the same bits as without the interruption. With a
    scratch folder, shortlists live there, not in memory.
    """
    # BLAS on one thread: our own threads share the work out in a way that does not depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        run = _Run(X, Y, X_validation, Y_validation, config, progress, vectors, keeper or Keeper(), scratch)
        steps = plan(config)
        while run.state.step < len(steps):
            step = steps[run.state.step]
            if step.what == "classifier":
                run.train_classifier(step.epoch)
            else:
                run.refresh(train_labels=step.what == "refresh")
            if run.state.step < len(steps):
                run.keep()
            else:
                run.keeper.done(run.state)
        # A checkpoint of all until here is there: whoever stops here loses no more than is done anew.
        run.keeper.check()
        trained = run.train_sparse_view() if config.sparse else None
        run.keeper.check()
        first = run.finish()
        run.keeper.check()
        X, Y, trees = run.X, run.Y, [] if first is None else [first]
        if trained is not None and set_aside and config.learn_validation:
            X, Y, trees = *run.all_documents(), []
            run.learn_validation_documents(trained, X, Y)
        # What it took to teach the sparse view is as large as what it takes to grow trees.
        trained = None
        if first is not None:
            run.grow_trees(trees, X, Y)
        assert run.state.best is not None
        return Result(run.state.best, run.state.history)


class _Run:
    """One training: its data, its settings and its state."""

    def __init__(
        self,
        X: csr_matrix,
        Y: csr_matrix,
        X_validation: csr_matrix,
        Y_validation: csr_matrix,
        config: Config,
        progress: Progress,
        vectors: NDArray[np.float32] | None,
        keeper: Keeper,
        scratch: Scratch | None,
    ) -> None:
        self.scratch = scratch
        self.X, self.Y, self.config, self.progress, self.keeper = X, Y, config, progress, keeper
        self.X_validation, self.Y_validation = X_validation, Y_validation
        self.documents_of = csr_matrix(Y.T)
        frequency = np.diff(self.documents_of.indptr)
        self.frequency = frequency.astype(np.int32)
        self.labels = np.flatnonzero(frequency)
        most_frequent = np.argsort(-frequency, kind="stable")[: min(config.frequent_labels, len(self.labels))]
        self.everywhere = np.sort(most_frequent).astype(np.int32)
        self.inv_propensity = inverse_propensity(Y)
        self.room = classifier.scratch(Y, min(config.k, len(self.labels)), len(self.everywhere), config)
        rng = np.random.default_rng(config.seed)
        self.state = State(
            features=embedding.start(X.shape[1], config, rng, vectors),
            classifier=classifier.start(Y.shape[1], config, rng),
            label_encoder=label_encoder.start(config.D),
            rng=rng,
        )
        # Word vectors that were given may be large from the start.
        self.start = _largest(self.state.features.encoder.vectors)
        self.given_vectors = vectors is not None
        keeper.restore(self.state, Frame(config, self.frequency, self.everywhere, X.shape[0]))
        found = self.state.shortlists
        self.state.shortlists = np.array(found) if scratch is None else scratch.copy(SHORTLISTS, found)

    def keep(self) -> None:
        """Keep a checkpoint if it is time for one; stop here if that was asked for."""
        self.keeper.keep(self.state)

    def refresh(self, *, train_labels: bool) -> None:
        """Do steps 2 and 3: centroids, Z_l, index, shortlists; then see how good the model is."""
        before = deepcopy((self.state.label_encoder, self.state.rng.bit_generator.state, len(self.state.history)))
        # They are found anew: no two at once.
        self.state.shortlists = np.empty((0, 0), dtype=np.int32)
        self.state.cycle += 1
        try:
            embeddings = encode(self.state.features.encoder, self.X)
            self._check_lengths("the embeddings", embeddings)
            mu = label_encoder.centroids(self.documents_of, embeddings)
            if train_labels:
                self._train_label_encoder(mu, embeddings)
            index = self._build_index(mu, embeddings)
            del mu
            length = min(shortlist_length(self.config, self.state.step), len(self.labels))
            if length:
                self._find_shortlists(index, embeddings, length)
            else:
                self.state.shortlists = np.empty((len(embeddings), 0), dtype=np.int32)
            del embeddings
        except Interrupted:
            # As if it had not begun: what was asked to stop can go on from here.
            self.state.label_encoder, self.state.rng.bit_generator.state, length = before
            del self.state.history[length:]
            self.state.cycle -= 1
            self.keeper.stop(self.state)
            raise
        self._validate(index)
        self.state.step += 1

    def _train_label_encoder(self, mu: NDArray[np.float32], embeddings: NDArray[np.float32]) -> None:
        config, state = self.config, self.state
        with self.progress.phase(f"cycle {state.cycle}: label encoder", config.e_label) as bar:
            for epoch in range(config.e_label):
                self.keeper.check()
                start = time.perf_counter()
                loss = label_encoder.train_epoch(
                    state.label_encoder,
                    self.documents_of,
                    self.labels,
                    mu,
                    embeddings,
                    config.label_learning_rate,
                    state.rng,
                )
                self._check_bounds(_LABEL_ENCODER, loss)
                bar.advance(1, loss=loss)
                self._note("label encoder", start, epoch=epoch, loss=loss)

    def _build_index(self, mu: NDArray[np.float32], embeddings: NDArray[np.float32]) -> Shortlist:
        self.keeper.check()
        start = time.perf_counter()
        embedded = label_encoder.embed(self.state.label_encoder, mu[self.labels])
        self._check_lengths(_LABEL_ENCODER, embedded)
        to_unit_rows(embedded)
        index = shortlists.build(
            self.labels.astype(np.int32), rounded(embedded, self.config.precision), self.config.index,
            queries=unit_rows(sample_of(embeddings)), k=self.config.k,
        )  # fmt: skip
        self._note("index", start, kind=index.kind)
        return index

    def _find_shortlists(self, index: Shortlist, embeddings: NDArray[np.float32], k: int) -> None:
        start = time.perf_counter()
        to_unit_rows(embeddings)
        n = len(embeddings)
        if self.config.index == "auto":
            index = shortlists.for_many(index, embeddings, k)
        found = self.scratch.array(SHORTLISTS, (n, k), np.int32) if self.scratch else np.empty((n, k), dtype=np.int32)
        with self.progress.phase(f"cycle {self.state.cycle}: shortlists ({index.kind})", n) as bar:
            for first in range(0, n, _SEARCHED):
                self.keeper.check()
                part = slice(first, min(first + _SEARCHED, n))
                found[part] = shortlists.search(index, embeddings[part], k)
                bar.advance(part.stop - part.start)
            recall = shortlists.recall_of_exact(index, embeddings, k)
            bar.advance(0, recall=recall)
        self.state.shortlists = found
        self._note("shortlist", start, kind=index.kind, recall_of_exact=recall)

    def train_classifier(self, epoch: int) -> None:
        """Do step 4: one epoch of classifier and features."""
        start = time.perf_counter()
        config, state, n = self.config, self.state, self.X.shape[0]
        if not len(state.order):
            state.order = state.rng.permutation(n)
        batches = range(0, n, config.batch_size)
        with self.progress.phase(f"cycle {state.cycle}: classifier, epoch {epoch + 1}/{config.e_model}", n) as bar:
            bar.advance(batches[state.batch])
            for i in range(state.batch, len(batches)):
                rows = state.order[batches[i] : batches[i] + config.batch_size]
                rate = _rate(config, epoch, i / len(batches))
                state.loss += classifier.train_batch(
                    state.classifier, state.features, self.room, self.X, self.Y, rows,
                    state.shortlists, self.everywhere, config, rate, state.rng,
                )  # fmt: skip
                state.batch = i + 1
                self._check_epoch(epoch)
                bar.advance(len(rows), loss=state.loss / (batches[i] + len(rows)))
                if state.batch < len(batches):
                    self.keep()
        self._note("classifier", start, epoch=epoch, loss=state.loss / n)
        state.order, state.batch, state.loss = state.order[:0], 0, 0.0
        state.step += 1

    def _check_epoch(self, epoch: int) -> None:
        """Stop where the loss, or at times and at the end a weight, has gone out of bounds."""
        state, where = self.state, f"epoch {epoch + 1}"
        self._check_bounds(where, state.loss)
        at_end = state.batch * self.config.batch_size >= self.X.shape[0]
        if not at_end and state.batch % _BATCHES_BETWEEN_LOOKS:
            return
        residual = state.features.encoder.residual
        layer = () if residual is None else (residual.R, residual.bias)
        for weights in (state.classifier.W, state.features.encoder.vectors, *layer):
            self._check_bounds(where, _largest(weights), _LARGEST_WEIGHT * max(1.0, self.start))

    def _check_lengths(self, where: str, vectors: NDArray[np.float32]) -> None:
        """Stop where float32 cannot hold the squares of distances."""
        self._check_bounds(where, _largest(vectors), 0.1 * float(np.sqrt(np.finfo(np.float32).max / self.config.D)))

    def _check_bounds(self, where: str, value: float, bound: float = np.inf) -> None:
        """Stop a training whose numbers grow without end; nothing of it is kept but the best model before."""
        if value < bound:
            return
        best, kept = self.state.best, ""
        if best is not None:
            self.finish()
            kept = f"; the model of validation P@1 {best.metrics['P@1']:.2f} is kept"
        message = f"training diverged in {where}{kept}: {self._advice(where)}"
        raise DivergedError(message, None if best is None else Result(best, self.state.history))

    def _advice(self, where: str) -> str:
        if self.given_vectors and self.start > _LARGE_START:
            return f"the word vectors that were given are as large as {self.start:.2g}, so give some of length about 1"
        config = self.config
        if where == _LABEL_ENCODER:
            return f"lower label_learning_rate (it is {config.label_learning_rate:g})"
        return f"lower learning_rate (it is {config.learning_rate:g}) or random_weight ({config.random_weight:g})"

    def _validate(self, index: Shortlist) -> None:
        """Measure the model on the validation documents and keep a copy of the best one."""
        start = time.perf_counter()
        model = Model(
            self.state.features.encoder, self.state.classifier.W, index, self.everywhere, self.config.beta or 0.0,
            self.config, label_frequency=self.frequency, n_documents=self.X.shape[0],
        )  # fmt: skip
        candidates = find_candidates(model, self.X_validation)
        betas = blend.GRID if self.config.beta is None else (self.config.beta,)
        results = blend.curve(candidates, self.Y_validation, self.inv_propensity, betas)
        beta, figures = blend.choose(results)
        self.progress.say(
            f"cycle {self.state.cycle}: validation P@1 {figures['P@1']:.2f}, PSP@1 {figures['PSP@1']:.2f}, β {beta:g}"
        )
        accuracy = max(blend.mean(measured, "P") for _, measured in results)
        # Of equals the later one: a handful of validation documents cannot tell, and it has learnt more.
        kept = accuracy >= self.state.best_accuracy
        self._note("validation", start, beta=beta, kept=kept, curve=results, **figures)
        if kept:
            self.state.best_accuracy, self.state.best = accuracy, None
            model.encoder = model.encoder.copy(self.config.precision)
            model.classifier = rounded(model.classifier, self.config.precision)
            model.beta, model.metrics = beta, figures
            self.state.best = model

    def train_sparse_view(self) -> sparse_view.Trained:
        """Train the third view, after the plan: a training that is resumed when that is done does this anew."""
        start = time.perf_counter()
        model = self.state.best
        assert model is not None
        trained = sparse_view.train(self.X, self.Y, self.state.shortlists, self.config, self.progress)
        model.sparse = trained.view
        self._note("sparse view", start, weights=len(trained.view.weights))
        return trained

    def finish(self) -> label_tree.Grown | None:
        """Measure what rounding the best model to its precision has cost; share out the views; set `tail`.

        Returns
        -------
        Grown or None
            A label tree, if one is worth it.
        """
        start = time.perf_counter()
        model = self.state.best
        assert model is not None
        before = model.metrics
        candidates = find_candidates(model, self.X_validation)
        n = min(self.config.k, len(model.shortlist.labels)) + len(model.everywhere)
        dense = Candidates(candidates.labels[:, :n], candidates.cosines[:, :n], candidates.logits[:, :n])
        ((_, model.metrics),) = blend.curve(dense, self.Y_validation, self.inv_propensity, (model.beta,))
        self._note("rounding", start, precision=self.config.precision, before=before, after=model.metrics)
        tree = None
        if candidates.margins is not None:
            self._share_out(model, candidates)
            if self.config.label_tree and model.gamma:
                tree, candidates = self._try_tree(model, candidates)
        self._set_tail(model, candidates)
        return tree

    def _share_out(self, model: Model, candidates: Candidates) -> None:
        """Choose the sparse view's share, and β with it, on the validation documents."""
        start = time.perf_counter()
        given = candidates, self.Y_validation, self.inv_propensity, self.config
        results = blend.surface(*given, model.tree_share)
        (model.beta, model.gamma), model.metrics = blend.choose_shares(results)
        figures = model.metrics
        self.progress.say(
            f"sparse view: validation P@1 {figures['P@1']:.2f}, PSP@1 {figures['PSP@1']:.2f},"
            f" β {model.beta:g}, γ {model.gamma:g}"
        )
        self._note("blend", start, beta=model.beta, gamma=model.gamma, surface=results, **figures)

    def _try_tree(self, model: Model, candidates: Candidates) -> tuple[label_tree.Grown | None, Candidates]:
        """Train a label tree, the sparse view's second opinion; share out anew if it is worth it."""
        if not label_tree.worth_trying(len(self.labels), self.Y.nnz):
            return None, candidates
        self.keeper.check()
        start = time.perf_counter()
        tree = label_tree.grow(self.X, self.Y, self.config, self.progress)
        self._note("label tree", start, weights=tree.n_weights)
        one = label_tree.together([tree], self.X.shape[1], self.config)
        tried = replace(candidates, doubts=doubts(one, self.X_validation, candidates.labels))
        if self._is_worth_it(model, tried):
            model.tree_share = blend.share_of_trees(model.tree_share, self._number_of_trees())
            self._share_out(model, tried)
            if model.gamma:
                return tree, tried
        # A tree speaks with the sparse view's share.
        model.tree_share = 0.0
        return None, candidates

    def grow_trees(self, trees: list[label_tree.Grown], X: csr_matrix, Y: csr_matrix) -> None:
        """Train as many trees as may be worth it, where one is, besides those that there are of these documents.

        How much they count was chosen by one: a few thousand documents cannot tell what more trees add.
        """
        model = self.state.best
        assert model is not None
        while len(trees) < self._number_of_trees():
            self.keeper.check()
            start = time.perf_counter()
            tree = label_tree.grow(X, Y, self.config, self.progress, len(trees))
            self._note("label tree", start, weights=tree.n_weights)
            trees.append(tree)
        model.tree = label_tree.together(trees, X.shape[1], self.config)

    def _number_of_trees(self) -> int:
        """Return how many label trees are grown where one is worth it."""
        few = self.Y_validation.shape[0] < blend.FEWEST_TO_CHOOSE
        return 1 if few else label_tree.most(len(self.labels), self.Y.nnz)

    def all_documents(self) -> tuple[csr_matrix, csr_matrix]:
        """Return the documents that are trained on, and after them those that were set aside."""
        return csr_matrix(vstack([self.X, self.X_validation])), csr_matrix(vstack([self.Y, self.Y_validation]))

    def _is_worth_it(self, model: Model, candidates: Candidates) -> bool:
        """Choose how much a label tree counts; leave all as it was where it adds too little."""
        start = time.perf_counter()
        curve = blend.tree_curve(candidates, self.Y_validation, self.inv_propensity, (model.beta, model.gamma))
        share, figures = blend.choose_tree_share(curve, model.metrics)
        self.progress.say(
            f"label tree: validation P@1 {figures['P@1']:.2f}, PSP@1 {figures['PSP@1']:.2f},"
            + (f" counts as {share:g}" if share else " adds too little")
        )
        self._note("tree share", start, share=share, curve=curve, **figures)
        if share * model.gamma == 0:
            return False
        model.tree_share, model.metrics = share, figures
        return True

    def learn_validation_documents(self, trained: sparse_view.Trained, X: csr_matrix, Y: csr_matrix) -> None:
        """Let words tell more of what was set aside, as there is nothing left to choose."""
        start = time.perf_counter()
        model = self.state.best
        assert model is not None
        n = self.X_validation.shape[0]
        embeddings = encode(model.encoder, self.X_validation)
        new, directions = self._new_labels(model.shortlist, embeddings)
        to_unit_rows(embeddings)
        near = shortlists.search(model.shortlist, embeddings, self.config.near_negatives)
        model.sparse = sparse_view.learn_more(trained, X, Y, n, near, self.config, self.progress)
        if len(new):
            model.shortlist = self._with_labels(model.shortlist, new, directions, embeddings)
        self._note("documents set aside", start, weights=len(model.sparse.weights))

    def _new_labels(
        self, index: Shortlist, embeddings: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the labels that only validation documents have, and their embeddings at length 1."""
        new = np.setdiff1d(self.Y_validation.indices, index.labels).astype(np.int32)
        mu = label_encoder.centroids(csr_matrix(self.Y_validation.T)[new], embeddings)
        # The label encoder at hand is that of the last cycle: where an earlier model was kept, it does not fit.
        last = next(entry for entry in reversed(self.state.history) if entry["phase"] == "validation")
        directions = label_encoder.embed(self.state.label_encoder, mu) if last["kept"] else mu
        to_unit_rows(directions)
        return new, directions

    def _with_labels(
        self,
        index: Shortlist,
        new: NDArray[np.int32],
        directions: NDArray[np.float32],
        documents: NDArray[np.float32],
    ) -> Shortlist:
        """Return the index with some labels more."""
        labels = np.concatenate([index.labels, new])
        order = np.argsort(labels, kind="stable")
        vectors = np.concatenate([index.vectors, rounded(directions, self.config.precision)])
        queries, k = sample_of(documents), self.config.k
        return shortlists.build(labels[order], vectors[order], self.config.index, queries=queries, k=k)

    def _set_tail(self, model: Model, candidates: Candidates) -> None:
        """Choose what `tail` = 1 means on the validation documents, and note what lies between it and 0."""
        start = time.perf_counter()
        rare = rarity(self.frequency, self.X.shape[0])[candidates.labels]
        given = candidates.labels, score(model, candidates), rare, self.Y_validation, self.inv_propensity
        model.tail_strength = blend.choose_strength(*given, three_views=candidates.margins is not None)
        measured = blend.tail_curve(*given, [tail * model.tail_strength for tail in blend.TAILS])
        curve = [(tail, figures) for tail, (_, figures) in zip(blend.TAILS, measured, strict=True)]
        self._note("tail", start, strength=model.tail_strength, curve=curve)

    def _note(self, phase: str, start: float, **figures: Any) -> None:
        seconds = time.perf_counter() - start
        entry = {"cycle": self.state.cycle, "phase": phase, "seconds": seconds, **peak_memory(), **figures}
        self.state.history.append(entry)


def _largest(weights: NDArray[np.float32]) -> float:
    """Return the largest size of a number, without a second array as large; NaN if there is one."""
    return float(np.maximum(weights.max(initial=0), -weights.min(initial=0)))


def _rate(config: Config, epoch: int, share: float) -> float:
    """Return the learning rate after this share of an epoch."""
    if config.schedule == "steps":
        return config.learning_rate * 0.5 ** sum(epoch >= at for at in _HALVED_AT)
    return config.learning_rate * 0.5 * (1 + float(np.cos(np.pi * (epoch + share) / config.e_model)))
