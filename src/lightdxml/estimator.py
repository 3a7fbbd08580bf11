"""The estimator, one of scikit-learn's if that is installed: `LightDXML().fit(X, Y).predict(X)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import metrics, outputs, presets
from lightdxml.config import SHORT_NAMES, Config, walk
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.executor import Backend, Executor, connected
from lightdxml.kernels import parallel
from lightdxml.label_columns import known_labels, labels_of
from lightdxml.label_names import (
    label_texts,
    name_forms,
    name_forms_in_features,
    own_labels_of,
    with_titles,
    with_vocabulary,
)
from lightdxml.learning.documents import documents_for
from lightdxml.learning.drift import Drift, drift
from lightdxml.learning.folder import Journal, changed, read, save
from lightdxml.learning.journal import Operation
from lightdxml.learning.keep import Keeper, expected_bytes, kept_data
from lightdxml.learning.learn import Learner
from lightdxml.learning.stored import inside_of
from lightdxml.model import fingerprints, store
from lightdxml.model.model import Model
from lightdxml.model.rules import Labels
from lightdxml.model.thresholds import DEPTH, check_threshold
from lightdxml.predictor import Predictor, threads_of
from lightdxml.progress import History, Progress
from lightdxml.resources.system import check_memory, parse_size
from lightdxml.sklearn_base import BaseEstimator, ClassifierTags, NotFittedError
from lightdxml.survey import survey
from lightdxml.text import tfidf
from lightdxml.text.names import sample_step, sample_words
from lightdxml.text.tfidf import TextOptions
from lightdxml.text.vectors import initial_vectors
from lightdxml.training import compilation
from lightdxml.training.callbacks import Callback, DivergedError
from lightdxml.training.fit import CheckpointOptions, hold_out, train
from lightdxml.validation import (
    check_bytes,
    check_features,
    check_lengths,
    check_sample_weight,
    check_trainable,
    matrix_of,
    rows_of,
    texts_of,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lightdxml.predictor import RankOptions

# The settings of `Config` that are parameters of the estimator.
_SETTINGS = (
    "dense", "dim", "shortlist_size", "epochs", "learning_rate", "linear", "tree", "names", "index", "precision",
    "validation_fraction", "random_state",
)  # fmt: skip


class LightDXML(BaseEstimator):
    """Extreme multi-label classifier.

    Parameters
    ----------
    preset
        Where settings come from that are not given: `default`, `fast`, `paper/EURLex-4K` and the paper's other four,
        or a preset file, such as `lightdxml tune` writes.
    dense
        Whether to train the paper's two views: `always`, `never`, or `auto` for where they help. Word vectors and
        settings of these views, such as `epochs`, imply `always`.
    dim
        Dimensions of document and label embeddings.
    shortlist_size
        Labels in a document's shortlist (k in the paper).
    epochs
        Epochs of the classifier.
    learning_rate
        Learning rate of the classifier.
    linear
        Whether to train the linear view: a sparse linear classifier per label on the features themselves.
    tree
        Whether to try label trees where there are many labels.
    names
        Whether to look for the names of labels in the documents, if labels have names that are words.
    index
        How nearest labels are searched: `auto`, `exact` or `rabitq`.
    precision
        Floating-point type of the stored model: `float16` or `float32`.
    validation_fraction
        Fraction of training documents that are held out to choose the weights of the views, without `dev`.
    random_state
        The same value gives the same model, bit for bit.
    n_jobs
        Number of threads; None or -1 for all cores. The result does not depend on it.
    verbose
        Whether to show progress; None shows it on a terminal.
    ngrams
        Features of texts: 1 for words, 2 for pairs of adjacent words too. This and the next four are None for the
        preset's value.
    min_df
        The smallest number of documents that a term must occur in.
    max_features
        The largest number of terms.
    title_weight
        The weight of a word in the title; 0 ignores titles.
    language
        Language whose words are reduced to their base form, such as `"fi"`; `""` leaves them as written.
    threshold
        The probability from which `predict` gives a document a label, if training was given a matrix: a number, or a
        measure such as `"auto"`; see `Predictor.predict`.
    word_vectors
        Word vectors to start from: a file (`.vec`, `.txt`, fastText's `.bin`), `"train"` to train them on the
        texts, or an array, features × dim; None for random ones.
    options
        All other settings by full name, such as `{"dense.dropout": 0.5}`: see the page of all settings.

    Attributes
    ----------
    model_
        The trained model.
    history_
        What happened in training: one entry per phase.

    Examples
    --------
    >>> texts = ["a purring cat", "a barking dog", "a cat and a dog"] * 10
    >>> labels = [["cat"], ["dog"], ["cat", "dog"]] * 10
    >>> trained = LightDXML(random_state=1).fit(texts, labels)
    >>> trained.predict(["the cat", "a dog barks"], k=1)
    [['cat'], ['dog']]
    >>> trained.predict("the cat", k=1)
    ['cat']
    """

    def __init__(
        self,
        preset: str | Path = "default",
        *,
        dense: str | None = None,
        dim: int | None = None,
        shortlist_size: int | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        linear: bool | None = None,
        tree: bool | None = None,
        names: bool | None = None,
        index: str | None = None,
        precision: str | None = None,
        validation_fraction: float | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        ngrams: int | None = None,
        min_df: int | None = None,
        max_features: int | None = None,
        title_weight: float | None = None,
        language: str | None = None,
        threshold: float | str = 0.5,
        word_vectors: str | Path | NDArray[np.float32] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.preset = preset
        self.dense = dense
        self.dim = dim
        self.shortlist_size = shortlist_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.linear = linear
        self.tree = tree
        self.names = names
        self.index = index
        self.precision = precision
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.ngrams = ngrams
        self.min_df = min_df
        self.max_features = max_features
        self.title_weight = title_weight
        self.language = language
        self.threshold = threshold
        self.word_vectors = word_vectors
        self.options = options

    def config(self, n_documents: int | None = None) -> Config:
        """Return all settings for that many training documents: the preset's, with those that were given."""
        given = {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}
        return presets.find(self.preset).config(n_documents, {**given, **(self.options or {})})

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of `predict_proba`, as names or ids."""
        return outputs.classes_of(self._trained())

    def text_options(self) -> TextOptions:
        """Return how texts become features."""
        given = {name: getattr(self, name, None) for name in presets.TEXT_NAMES}
        return presets.find(self.preset).text_options({name: one for name, one in given.items() if one is not None})

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        dev: tuple[Any, ...] | None = None,
        label_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        vocabulary: Vocabulary | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 300.0,
        resume: bool = False,
        allow_different_machine: bool = False,
        memory_limit: int | str | None = None,
        spill: str | Path | None = None,
        keep_training_data: bool = False,
        backend: Backend | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> LightDXML:
        """Train.

        Parameters
        ----------
        X
            Texts: a list, a column of pandas, polars or PyArrow, or a frame with a column `text` and perhaps `title`.
            Or a matrix of features, documents × features: weights of words, or embeddings, which may be negative.
        y
            Label names or integer ids: a list or set per document; also as a column. Or a matrix or a frame of 0 and 1,
            documents × labels. Or an array of one class per document. Predictions have the same form.
        sample_weight
            How much each document counts in the linear view and the label trees; 0 leaves it out. The paper's views
            and the choices on validation documents count all others alike.
        dev
            X and Y, and ids if there are any, of documents on which weights and epoch are chosen; without it some
            documents are held out.
        label_names
            The names of a matrix's columns.
        feature_names
            The words that the columns of a feature matrix stand for, by which names of labels are found.
        ids
            The ids of the documents. If they occur among the labels, and no document has its own, documents are labels
            themselves: then none of them is given to itself.
        vocabulary
            What labels are called. Its concepts are labels, those without training documents too: they are predicted by
            their names. Labels in Y are URIs of concepts, or preferred names.
        checkpoint
            A folder for checkpoints, from which an interrupted training is resumed. Ctrl-C and SIGTERM then stop at the
            next opportunity. When training is done the folder holds all of it: remove it once the model is saved
            (`lightdxml.persistence.checkpoint.remove`).
        checkpoint_every
            Seconds between two checkpoints.
        resume
            Resume from the last checkpoint, if there is one, with the same data and settings. The result is the same,
            bit for bit, as without the interruption.
        allow_different_machine
            Resume also with another processor or other versions of libraries than those that wrote the checkpoint. The
            last bits of the result may then differ; the model's manifest names both machines.
        memory_limit
            The most memory that training may need, in bytes or as `"4GB"`; None for what the machine has free. If it
            needs more, an error says so before training begins, and which settings would fit.
        spill
            A folder in which features and shortlists live as memory-mapped files instead of in memory. Leftovers of
            killed processes are removed the next time.
        keep_training_data
            Keep features and labels of the documents, so that `learn` is almost as good as training on all documents.
            They are saved beside the model. Without them, `learn` knows earlier documents only by the model's weights.
        backend
            Where the work is done: `lightdxml.cluster.RayBackend` for a Ray cluster, None for the threads of this
            process. The result is the same, bit for bit.
        callbacks
            What watches the training, and may stop it by an exception: see `lightdxml.training.callbacks`.
        """
        # Wrong settings are reported before any work is done.
        self.config()
        check_threshold(self.threshold)
        if resume and checkpoint is None:
            raise ValueError("resume needs the folder of the checkpoint: give checkpoint as well")
        limit = parse_size(memory_limit) if isinstance(memory_limit, str) else memory_limit
        text_options = self.text_options()
        keep = None
        if checkpoint is not None:
            where, texts_as = Path(checkpoint), asdict(text_options)
            keep = CheckpointOptions(where, checkpoint_every, resume, allow_different_machine, texts_as)
        labels, names, are_integers, output = labels_of(y, label_names)
        if vocabulary is not None:
            labels, names, dev = with_vocabulary(labels, None if are_integers else names, dev, vocabulary)
        config, texts = self.config(labels.shape[0]), texts_of(X)
        X = matrix_of(X) if texts is None else X
        check_lengths(len(texts) if texts is not None else np.shape(X)[0], labels.shape[0])
        weights = None if sample_weight is None else check_sample_weight(sample_weight, labels.shape[0])
        if weights is not None and not weights.all():
            counted = np.flatnonzero(weights)
            X = rows_of(X, counted) if texts is None else None
            texts, ids, labels, weights = (rows_of(one, counted) for one in (texts, ids, labels, weights))
        dev_ids = None if dev is None or len(dev) < 3 else dev[2]
        own = own_labels_of(ids, names, labels, dev_ids, config.own_labels)
        progress, history = Progress(self.verbose), History()
        if own is not None:
            progress.say("documents are labels themselves: none is given to itself")
        with (
            parallel.use_threads(threads_of(self.n_jobs)),
            compilation.helper(config) as stop_helper,
            connected(backend) as executor,
        ):
            vectorizer = forms = None
            label_words = False
            if texts is not None:
                check_memory("counting the words of the texts", tfidf.fit_bytes(texts, text_options), limit)
                with history.phase("vectorize"), progress.phase("texts to features", len(texts)) as bar:
                    named = config.names.enabled
                    wants_words = named and names is not None and vocabulary is None
                    found = survey(texts, executor, None if own is None else own[0], words=wants_words)
                    called = label_texts(names, found.words, vocabulary, text_options.language) if named else None
                    label_words = called is not None
                    if own is not None and named:
                        titles = [*found.titles, *_titles_of(dev, own[1], executor)]
                        called = with_titles(called, labels.shape[1], titles)
                    flat = [name for one in called or () for name in one]
                    vectorizer, X = tfidf.fit(texts, text_options, limit, flat, executor)
                    for callback in callbacks:
                        callback.on_vectorizer(vectorizer)
                    if called is not None:
                        forms = name_forms(vectorizer, called)
                    seen = found.fingerprints
                    bar.advance(len(texts), words=X.shape[1])
            if dev is not None:
                if vectorizer is None:
                    X_dev = matrix_of(dev[0])
                else:
                    X_dev = tfidf.transform(vectorizer, texts_of(dev[0]) or [], executor=executor)
                dev = X_dev, known_labels(dev[1], names, labels.shape[1], are_integers, output)
            with history.phase("word vectors"):
                terms, seed = None if vectorizer is None else vectorizer.vocabulary, config.random_state
                vectors = initial_vectors(self.word_vectors, texts, terms, config.dense.dim, seed)
            if vectorizer is None:
                # What our own TF-IDF made is not checked again.
                check_memory("checking X", check_bytes(X), limit)
                X = check_features(X)
                seen = fingerprints.of_features(X)
                if feature_names is not None and config.names.enabled:
                    some = range(0, len(feature_names), sample_step(len(feature_names)))
                    known = sample_words(feature_names, some)
                    called = label_texts(names, known, vocabulary, text_options.language)
                    label_words = called is not None
                    if called is not None:
                        forms = name_forms_in_features(X, feature_names, called)
            check_trainable(X, labels)
            keeper = None
            if keep_training_data:
                with history.phase("training data"):
                    remembered = kept_data(
                        X, labels, texts=texts, vectorizer=vectorizer, ids=ids, names=forms, label_words=label_words,
                        feature_names=feature_names, own=None if own is None else own[0], weights=weights,
                    )  # fmt: skip
                keeper = Keeper(remembered)
            prepared = hold_out(X, labels, config, dev, vectors, forms, own, weights)
            if keeper is not None:
                assert prepared.data is not None
                keeper.rows = None if prepared.rows is None else np.concatenate(prepared.rows)
                size = expected_bytes(keeper.data, prepared.data, config)
                progress.say(f"training data kept beside the model: about {size / 1e6:,.1f} MB")
            about: dict[str, Any] = {"never_own": own is not None, "vocabulary": vocabulary, "output": output}
            about["threshold"] = self.threshold
            about |= {"language": text_options.language or None, "trained_on": fingerprints.kept(seen)}
            # Only the prepared form is needed from here on.
            del X, labels, dev, vectors, forms
            try:
                model, entries = train(
                    prepared, config, progress, keep, limit, None if spill is None else Path(spill),
                    on_compiled=stop_helper, executor=executor,
                    callbacks=callbacks if keeper is None else (*callbacks, keeper),
                )  # fmt: skip
            except DivergedError as error:
                if error.kept is not None:
                    kept = replace(error.kept, **about)
                    self._take(kept, names, are_integers, vectorizer, [*history.entries, *error.history])
                raise
        self._take(replace(model, **about), names, are_integers, vectorizer, [*history.entries, *entries])
        if keeper is not None:
            self._learner = Learner(self.model_, keeper.data, keeper.recent)
        return self

    def _take(
        self, model: Model, names: list[str] | None, are_integers: bool, vectorizer: tfidf.Vectorizer | None,
        history: list[dict[str, Any]],
    ) -> None:  # fmt: skip
        source = self.word_vectors
        word_vectors = None if source is None else "array" if isinstance(source, np.ndarray) else str(source)
        model = replace(model, label_names=names, integer_labels=are_integers)
        self.model_ = replace(model, vectorizer=vectorizer, word_vectors=word_vectors)
        self.history_ = history
        self.n_features_in_ = model.n_features
        self._learner, self._journal = Learner(self.model_), Journal()
        self._folder: Path | None = None
        self._stamp: tuple[int, int] | None = None

    def learn(
        self,
        X: Any,
        y: Any,
        *,
        ids: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        rejected: Sequence[str | int] = (),
    ) -> LightDXML:
        """Learn new documents, whose labels may be new, without training again.

        Labels of these documents are solved again, next to the documents of training if they were kept
        (`keep_training_data`). The model in memory changes; `lightdxml.ModelFolder` changes a model on disk.

        Parameters
        ----------
        X, y
            Documents and labels, in the form of `fit`.
        ids
            The ids of the documents, each once. A document with the id of one that was learned before replaces it, if
            the training data were kept.
        label_names
            The names of a matrix's columns.
        rejected
            Labels that were suggested for these documents, and are wrong. They are trained again, too. Those with a
            probability of 0.5 or more are in any case.

        Examples
        --------
        >>> texts, labels = ["a purring cat", "a barking dog"] * 20, [["cat"], ["dog"]] * 20
        >>> pets = LightDXML("fast").fit(texts, labels, keep_training_data=True)
        >>> pets.learn(["a neighing horse"] * 3, [["horse"]] * 3).predict("my horse", k=1)
        ['horse']
        """
        model = self._trained()
        return self._apply(Operation("learn", documents_for(model, X, y, ids, label_names, rejected)))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> LightDXML:
        """Train on the first documents, and keep them; learn further ones: scikit-learn's name of `learn`.

        `classes` need not be given: new labels may come at any time. Weights of documents count in the first call only.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight=sample_weight, keep_training_data=True)
        return self.learn(X, y)

    def retire(self, labels: Sequence[str | int]) -> LightDXML:
        """Never suggest these labels again; all labels keep their ids."""
        self._trained()
        return self._apply(Operation("retire", names=tuple(map(str, labels))))

    def merge(self, label: str | int, into: str | int) -> LightDXML:
        """Give documents and names of one label to another one, and retire the first."""
        self._trained()
        return self._apply(Operation("merge", names=(str(label), str(into))))

    def forget(self, ids: Sequence[str]) -> LightDXML:
        """Forget the documents with these ids; needs the training data (`keep_training_data`)."""
        self._trained()
        return self._apply(Operation("forget", names=tuple(map(str, ids))))

    @property
    def drift_(self) -> Drift:
        """How far the model has moved since training, and whether it should be trained again."""
        return drift(self._trained(), self._journal.entries)

    def _apply(self, operation: Operation) -> LightDXML:
        learner = self._known_learner()
        with parallel.use_threads(threads_of(self.n_jobs)):
            self._learner, entry = changed(learner, self._journal, operation)
        self._journal = self._journal.with_entry(entry)
        self.model_ = self._learner.model
        self.n_features_in_ = self.model_.n_features
        return self

    def _known_learner(self) -> Learner:
        """Return the model with what it needs to learn, which is read when it is needed for the first time."""
        model = self._trained()
        if self._folder is not None:
            if store.stamp(self._folder) != self._stamp:
                raise ValueError(f"{self._folder} was changed since it was loaded: load it again")
            opened, self._folder = read(self._folder), None
            self._learner, self._journal = opened.learner, opened.journal
        kept = self._learner.kept
        if kept is not None:
            # The model may have got another vocabulary.
            kept = kept.widened(model.n_features, model.n_labels)
        return replace(self._learner, model=model, kept=kept)

    def predict(self, X: Any, k: int | None = None, **options: Unpack[RankOptions]) -> Any:
        """Return the labels of each document: see `Predictor.predict`."""
        return self._predictor().predict(X, k, **options)

    def rank(
        self, X: Any, k: int | None = None, **options: Unpack[RankOptions]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the ids of the best labels of each document, and the probability of each: see `Predictor.rank`."""
        return self._predictor().rank(X, k, **options)

    def scores(
        self, X: Any, k: int = 5, *, tail: float = 0.0, include: Labels = None, exclude: Labels = None
    ) -> csr_matrix:
        """Return the probabilities of each document's k best labels as a sparse matrix, documents × labels.

        Examples
        --------
        >>> trained = LightDXML(dim=8, epochs=2).fit(["red rose", "red wine"] * 5, [[0], [1]] * 5)
        >>> trained.scores(["a rose"], k=1).shape
        (1, 2)
        """
        return self._predictor().scores(X, k, tail=tail, include=include, exclude=exclude)

    def predict_proba(self, X: Any, *, dense: bool | None = None) -> Any:
        """Return the probability of each label, documents × labels, in the order of `classes_`.

        Labels that are not among the 100 best of a document have 0. If training was given one class per document, the
        probabilities of a document sum to 1.

        Parameters
        ----------
        X
            Texts or a matrix.
        dense
            Whether to return an array instead of a sparse matrix; None for one of up to ten million cells.

        Examples
        --------
        >>> trained = LightDXML(dim=8, epochs=2).fit(["red rose", "red wine"] * 10, [["rose"], ["wine"]] * 10)
        >>> trained.predict_proba(["a rose"]).shape
        (1, 2)
        """
        return outputs.probabilities(self._trained(), self._best(X), dense)

    def decision_function(self, X: Any, *, dense: bool | None = None) -> Any:
        """Return the log-odds of `predict_proba`; one number per document if there are two classes."""
        return outputs.decisions(self._trained(), self._best(X), dense)

    def _best(self, X: Any) -> csr_matrix:
        return self.scores(X, min(self._trained().n_labels, DEPTH))

    def explain(self, X: Any, k: int = 5, *, tail: float = 0.0, include: Labels = None, exclude: Labels = None) -> Any:
        """Return what every word adds to the probability of each of the k best labels: see `Predictor.explain`."""
        return self._predictor().explain(X, k, tail=tail, include=include, exclude=exclude)

    def _predictor(self) -> Predictor:
        return Predictor(self._trained(), self.n_jobs)

    def _trained(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("this LightDXML is not trained yet: call fit first, or load a model")
        return self.model_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return P@1 as a fraction from 0 to 1: the accuracy, if each document has one class."""
        trained = self._trained()
        labels = known_labels(y, trained.label_names, trained.n_labels, trained.integer_labels, trained.output)
        right = metrics.document_precision(labels, self.rank(X, 1)[0], k=(1,)) / 100
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder.

        A model that is there is replaced, with all that it has learned since its training. Steps that this model has
        learned cannot be undone any more, and `ModelFolder.learned` no longer has their documents.
        """
        learner = self._known_learner()
        save(Path(folder), learner, self._journal, self.history_)

    @classmethod
    def from_pretrained(
        cls,
        repo: str | Path,
        revision: str | None = None,
        *,
        verify: bool = True,
        token: str | bool | None = None,
        endpoint: str | None = None,
    ) -> LightDXML:
        """Read a model from the Hugging Face Hub, or from a folder; no code in it is run.

        Parameters are those of `Predictor.from_pretrained`.
        """
        from lightdxml.hub.connection import Hub
        from lightdxml.hub.fetch import folder_of

        return load(folder_of(repo, revision, Hub(endpoint, token)), verify=verify)

    def push_to_hub(
        self,
        repo: str,
        *,
        license: str = "",
        language: str = "",
        card: str | None = None,
        message: str = "",
        revision: str | None = None,
        private: bool | None = None,
        with_training_data: bool = False,
        token: str | bool | None = None,
        endpoint: str | None = None,
    ) -> str:
        """Upload the model to the Hugging Face Hub in one commit, and return its address.

        Parameters
        ----------
        repo
            The repository, `OWNER/NAME`. It is created if it does not exist.
        license, language
            What the model card says: the identifier of a license such as `mit`, and a code such as `en`.
        card
            The model card in Markdown; None for one that is generated from the model.
        message
            The message of the commit.
        revision
            The branch, which is created if it does not exist; None for the main branch.
        private
            Whether a new repository is private; None for the default of its owner.
        with_training_data
            Whether to share what the model has learned from: training data that were kept, and its journal.
        token, endpoint
            As in `Predictor.from_pretrained`.
        """
        from lightdxml.hub.card import About
        from lightdxml.hub.connection import Hub
        from lightdxml.hub.push import plan, push, with_card

        about = About(repo.rpartition("/")[2], repo, license, language, with_training_data)
        with TemporaryDirectory() as place:
            self.save(folder := Path(place) / "model")
            upload = with_card(plan(folder, with_training_data), about, card)
            return push(upload, repo, message=message, revision=revision, private=private, hub=Hub(endpoint, token))

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = tags.input_tags.string = True
        tags.target_tags.required = tags.target_tags.multi_output = tags.target_tags.two_d_labels = True
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_label=True)
        return tags


def _titles_of(dev: tuple[Any, ...] | None, own: NDArray[np.int32] | None, executor: Executor) -> list[tuple[int, str]]:
    """Return the titles of dev documents that are labels."""
    if dev is None or own is None:
        return []
    return survey(texts_of(dev[0]) or [], executor, own, words=False).titles


def load(folder: str | Path, *, verify: bool = True) -> LightDXML:
    """Read a model that `LightDXML.save` or `lightdxml train` wrote; no code in it is run.

    Parameters
    ----------
    folder
        Where it lies. Large arrays are memory-mapped: several processes share one copy.
    verify
        Whether to compare every byte with the model's checksums first; False is faster for large models.
    """
    estimator = LightDXML()
    # If it is replaced right now, it is said so when the model learns.
    mark = store.stamp(Path(folder)) if inside_of(Path(folder)).is_dir() else None
    stored = store.load(Path(folder), verify=verify)
    model = estimator.model_ = stored.model
    estimator.history_ = stored.history
    estimator._learner, estimator._journal = Learner(model), Journal()
    estimator._folder = None
    if inside_of(Path(folder)).is_dir():
        estimator._folder, estimator._stamp = Path(folder), mark
    estimator.n_features_in_ = model.n_features
    values = {name: value for name, _, value in walk(model.config)}
    short = {name: values.pop(SHORT_NAMES.get(name, name)) for name in _SETTINGS}
    estimator.set_params(**short, threshold=model.threshold, options=values)
    if model.vectorizer is not None:
        known = estimator.get_params()
        settings = vars(model.vectorizer.settings)
        estimator.set_params(**{name: value for name, value in settings.items() if name in known})
    return estimator
