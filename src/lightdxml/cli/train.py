"""`lightdxml train`."""

from __future__ import annotations

import itertools
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lightdxml.cli.info import describe
from lightdxml.cli.measure import inputs_of, note_gaps, split_command
from lightdxml.cli.output import Force, Json, NJobs, Source, note, note_connection, print_json, say, seconds_of
from lightdxml.cli.reading import Reading, reading_options, with_reading
from lightdxml.cli.settings import CommandWithSettings

if TYPE_CHECKING:
    from lightdxml.data import Dataset
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.estimator import LightDXML
    from lightdxml.executor import Backend
    from lightdxml.model.model import Model


# Its help lists all settings.
COMMAND = CommandWithSettings
# Words of a text in a command that is suggested.
_WORDS = 8
_model = partial(typer.Option, rich_help_panel="Model", show_default=False)
_text = partial(typer.Option, rich_help_panel="Texts", show_default=False)
_cluster = partial(typer.Option, rich_help_panel="Several machines", show_default=False)
_long = partial(typer.Option, rich_help_panel="Long training runs", show_default=False)
NewModel = Annotated[Path, typer.Option("--model", help="Folder to write the model to.", show_default=False)]
Preset = Annotated[
    str,
    typer.Option(
        help="`default`, `fast`, the paper's settings for one of its data sets, such as `paper/EURLex-4K`, or a preset"
        " file, such as one that `lightdxml tune` wrote.",
        metavar="NAME|FILE",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(help="Any other setting, such as `--set dense.dropout=0.5`. Repeatable.", metavar="NAME=VALUE"),
]
Seed = Annotated[
    int | None, typer.Option(help="Random seed. The same seed gives the same model. Default: 0.", show_default=False)
]


# Help texts repeat the defaults of `Config`, which would take long to import; a test compares them.
@with_reading
def run(
    data: Source,
    model: NewModel,
    preset: Preset = "default",
    set: Set = None,
    random_state: Seed = None,
    n_jobs: NJobs = None,
    json: Json = False,
    force: Force = False,
    discard_lessons: Annotated[
        bool,
        typer.Option(
            "--discard-lessons",
            help="Replace an existing model even if it has learned since its training.",
        ),
    ] = False,
    dense: Annotated[
        Literal["auto", "always", "never"] | None,
        _model(help="Train embeddings, as in the paper. `auto`: where they help. Default: auto."),
    ] = None,
    dim: Annotated[
        int | None, _model(help="Dimensions of the embeddings. Default: 192; 128 below 20,000 documents.")
    ] = None,
    shortlist_size: Annotated[
        int | None, _model(help="Candidate labels per document from the embeddings. Default: 200.")
    ] = None,
    epochs: Annotated[
        int | None, _model(help="Epochs of the classifier. Default: 4; 6 below 20,000 documents.")
    ] = None,
    learning_rate: Annotated[
        float | None, _model(help="Learning rate of the classifier. Default: 0.02; 0.01 below 20,000 documents.")
    ] = None,
    linear: Annotated[
        bool | None, _model(help="Train a sparse linear classifier per label on the words. Default: true.")
    ] = None,
    tree: Annotated[bool | None, _model(help="Try label trees if there are many labels. Default: true.")] = None,
    names: Annotated[bool | None, _model(help="Look for the names of labels in the documents. Default: true.")] = None,
    vocabulary: Annotated[
        Path | None,
        _model(
            help="Vocabulary with the names of labels: TSV, CSV or SKOS, in the encoding of the data. All its concepts"
            " become labels.",
            metavar="FILE",
        ),
    ] = None,
    index: Annotated[
        Literal["auto", "exact", "rabitq"] | None,
        _model(
            help="Search for candidate labels. `rabitq` is approximate, and faster for very many labels. Default: auto."
        ),
    ] = None,
    precision: Annotated[
        Literal["float16", "float32"] | None, _model(help="Number format of the stored model. Default: float16.")
    ] = None,
    validation_fraction: Annotated[
        float | None,
        _model(
            help="Fraction of training documents to hold out for validation if there is no dev part. Default: 0.05."
        ),
    ] = None,
    ngrams: Annotated[
        int | None, _text(help="1 for single words, 2 for pairs of neighboring words as well. Default: 1.")
    ] = None,
    min_df: Annotated[
        int | None, _text(help="Ignore words that occur in fewer training documents than this. Default: 2.")
    ] = None,
    max_features: Annotated[
        int | None, _text(help="Maximum number of words and pairs; the most frequent ones are kept. Default: 100,000.")
    ] = None,
    title_weight: Annotated[
        float | None, _text(help="Weight of a word in the title, relative to a word in the text. Default: 1.")
    ] = None,
    language: Annotated[
        str | None, _text(help="Reduce words to their base form, in a language such as en, de or fi.")
    ] = None,
    word_vectors: Annotated[
        str | None,
        _text(help="Word vectors to start from: a file, or `train` to train them on the texts.", metavar="FILE"),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        _long(help="Folder for checkpoints, from which `--resume` resumes a stopped training run.", metavar="DIR"),
    ] = None,
    every: Annotated[
        str | None, _long(help="Time between checkpoints, such as 30s, 5m or 1h. Default: 5m.", metavar="TIME")
    ] = None,
    resume: Annotated[bool, _long("--resume", help="Resume from the last checkpoint, if there is one.")] = False,
    allow_different_machine: Annotated[
        bool,
        _long(
            "--allow-different-machine",
            help="Resume even on another processor or with other library versions. The last bits may differ.",
        ),
    ] = False,
    memory_limit: Annotated[
        str | None,
        _long(help="Do not start if training may need more memory than this. Default: the free memory.", metavar="4GB"),
    ] = None,
    spill: Annotated[
        Path | None, _long(help="Keep large arrays in files in this folder, to save memory.", metavar="DIR")
    ] = None,
    ray: Annotated[
        str | None,
        _cluster(
            help="Train on a Ray cluster: its address, such as `auto` or `head:6379`, or `local` for this machine.",
            metavar="ADDRESS",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        _cluster(
            help="Processes among which to divide the paper's classifier: a power of two. Default: one per machine."
        ),
    ] = None,
    keep_training_data: Annotated[
        bool,
        typer.Option(
            "--keep-training-data",
            help="Keep features and labels of the training documents beside the model, so that `lightdxml learn` is"
            " almost as good as training on all documents.",
        ),
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Train a model on the training documents of a data set.

    A model scores labels in several ways, called views, such as a linear classifier or label trees. The phase `blend`
    of training chooses how much each view counts in the final score.

    The dev part of the data set is used for validation: to choose the best epoch and how much each view counts. Without
    a dev part, some training documents are held out for this. The test part is not used.

    With --checkpoint, a training run that was stopped or killed can be resumed. The result is the same model.

    Example: `lightdxml train see-also --model my-model`
    """
    from lightdxml.data import load
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.estimator import LightDXML
    from lightdxml.executor import connected
    from lightdxml.model.store import check_absent, check_target
    from lightdxml.persistence.checkpoint import is_in, remove
    from lightdxml.resources.system import parse_size

    seconds_between = seconds_of(every or "5m", "--every")
    for option, given in (("--every", every is not None), ("--resume", resume)):
        if given and checkpoint is None:
            raise ValueError(f"{option} needs a folder for checkpoints: give --checkpoint DIR")
    estimator = LightDXML(
        preset, dense=dense, dim=dim, shortlist_size=shortlist_size, epochs=epochs, learning_rate=learning_rate,
        linear=linear, tree=tree, names=names, index=index, precision=precision,
        validation_fraction=validation_fraction, random_state=random_state, n_jobs=n_jobs, ngrams=ngrams,
        min_df=min_df, max_features=max_features, title_weight=title_weight, language=language,
        word_vectors=word_vectors, options=_settings(set or []), verbose=True,
    )  # fmt: skip
    # Mistakes are reported before the data is read.
    estimator.config()
    estimator.text_options()
    _check_word_vectors(word_vectors)
    check_target(model, checkpoint, spill)
    backend = _backend(ray, shards)
    # The model of a training run that is resumed may be there: the run was stopped before its checkpoint was removed.
    if not force and not discard_lessons and not (resume and checkpoint is not None and is_in(checkpoint)):
        check_absent(model)
    if not discard_lessons:
        check_lessons(model)
    concepts = None if vocabulary is None else Vocabulary.load(vocabulary, encoding=reading.get("encoding", "utf-8"))
    if ray is not None:
        note_connection(ray)
    with _resume_hint(checkpoint), connected(backend) as executor:
        limit = None if memory_limit is None else parse_size(memory_limit)
        # On a cluster, texts in several files stay there.
        loaded = load(data, **reading, memory_limit=limit, executor=None if backend is None else executor)
        note_gaps(loaded.train, "they are used for training anyway")
        start = time.perf_counter()
        fit: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": seconds_between, "resume": resume}
        fit |= {
            "backend": backend,
            "allow_different_machine": allow_different_machine,
            "keep_training_data": keep_training_data,
        }
        _fit(estimator, loaded, model, reading, **fit, vocabulary=concepts, memory_limit=memory_limit, spill=spill)
        seconds = time.perf_counter() - start
        _save(estimator, model, checkpoint, discard_lessons)
    if checkpoint is not None:
        remove(checkpoint)
    if json:
        print_json({"model": str(model), "seconds": seconds, **describe(estimator.model_)})
        return
    say(f"{loaded.name}: trained in {seconds:.1f} s.")
    _show_accuracy(estimator.model_, loaded)
    options = reading_options(reading)
    if loaded.test is None:
        say(f"To measure a model on test documents, hold some out and train again: {split_command(data, options)}")
    say(f"The model is in {model}. Next: {_next_command(loaded, model, data, options)}")


def _backend(address: str | None, shards: int | None) -> Backend | None:
    """Return where to train: on a Ray cluster, or None for this process."""
    if address is None:
        if shards is not None:
            raise ValueError("--shards needs a Ray cluster: give --ray ADDRESS, or --ray local")
        return None
    from lightdxml.cluster import RayBackend

    return RayBackend(address, shards)


def check_lessons(model: Path) -> None:
    """Raise a `ValueError` if there is a model that has learned: its documents may be nowhere else."""
    from lightdxml.learning.summary import count

    try:
        steps = _steps(model)
    except ValueError as error:
        raise ValueError(f"what {model} has learned cannot be read: give --discard-lessons to replace it") from error
    if steps:
        export = shlex.join(["lightdxml", "history", str(model), "--export", "learned.jsonl"])
        raise ValueError(
            f"{model} has learned in {count(steps, 'step')} since training, which would be lost: write the documents"
            f" to a file with `{export}` to train on them too, and give --discard-lessons to replace the model"
        )


def _steps(model: Path) -> int:
    """Return the number of steps that a model has learned since training; 0 if there is no model."""
    from lightdxml.learning.stored import read_history
    from lightdxml.model.store import is_model

    return read_history(model).step if is_model(model) else 0


def _next_command(loaded: Dataset, model: Path, data: str, reading: list[str]) -> str:
    """Return what to do with a new model. It is never measured on its training documents."""
    if loaded.test is not None:
        return shlex.join(["lightdxml", "evaluate", str(model), data, *reading])
    if loaded.train.texts is None:
        return shlex.join(["lightdxml", "info", str(model)])
    words = re.findall(r"\w+", " ".join(loaded.train.texts[:1]))[:_WORDS]
    return f"echo {shlex.quote(' '.join(words))} | {shlex.join(['lightdxml', 'predict', str(model), '-'])}"


def _show_accuracy(model: Model, loaded: Dataset) -> None:
    """Show the accuracy on validation documents, and how far it can be trusted."""
    from lightdxml.metrics import confidence_interval

    metrics, n = model.metrics, model.n_validation
    kind, caveat = (
        "held-out training documents",
        "They also decided how much each part of the model counts: expect a little less on other documents.",
    )
    if loaded.dev is not None:
        kind = "dev documents"
    elif n == model.n_documents:
        kind, caveat = "training documents", "No documents were held out: expect much less on other documents."
    low, high = confidence_interval(metrics["P@1"], n)
    say(f"On {n:,} {kind}: P@1 {metrics['P@1']:.1f} (95% confidence interval: {low:.1f} to {high:.1f}),")
    say(", ".join(f"{name} {metrics[name]:.1f}" for name in ("P@3", "P@5", "PSP@1", "PSP@5")) + ".")
    say(caveat)


def _settings(given: list[str]) -> dict[str, str]:
    """Return the settings of `--set` by name.

    >>> _settings(["dense.dropout=0.5"])
    {'dense.dropout': '0.5'}
    """
    settings = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {one} is not a setting: write --set NAME=VALUE")
        settings[name] = value
    return settings


def _hint_at_vocabulary(names: Sequence[str] | None, vocabulary: Vocabulary | None) -> None:
    """Say how many labels of the data are not in the vocabulary."""
    if names is None or vocabulary is None:
        return
    unknown = [name for name, uri in zip(names, vocabulary.uris(names), strict=True) if uri not in vocabulary]
    if unknown:
        note(
            f"{len(unknown):,} of {len(names):,} labels are not in the vocabulary, such as {unknown[0]}: they are kept"
        )


def _check_word_vectors(source: str | None) -> None:
    if source == "train" and find_spec("gensim") is None:
        raise ValueError('training word vectors needs gensim: pip install "lightdxml[vectors]"')
    if source is not None and source != "train" and not Path(source).exists():
        raise ValueError(f"there is no file {source}: give a file of word vectors, or `train`")


def _remember(estimator: LightDXML, reading: Reading) -> None:
    """Note in the model how its data was read."""
    estimator.model_ = replace(estimator.model_, reading=reading)


def _fit(estimator: LightDXML, loaded: Any, model: Path, reading: Reading, **options: Any) -> None:
    """Train; if training diverges, save the best model so far."""
    from lightdxml.persistence.checkpoint import is_in
    from lightdxml.training.callbacks import DivergedError

    checkpoint = options["checkpoint"]
    if options["resume"]:
        found = (
            "resuming from the last checkpoint" if is_in(checkpoint) else "no checkpoint, starting from the beginning"
        )
        note(f"{checkpoint}: {found}")
    dev = None if loaded.dev is None else (inputs_of(loaded.dev), loaded.dev.Y, loaded.dev.ids)
    try:
        train = loaded.train
        _hint_at_vocabulary(loaded.label_names, options["vocabulary"])
        names = {"label_names": loaded.label_names, "feature_names": loaded.feature_names, "ids": train.ids}
        estimator.fit(inputs_of(train), train.Y, dev=dev, **names, **options)
        _remember(estimator, reading)
    except DivergedError as error:
        if error.kept is None:
            raise
        _remember(estimator, reading)
        estimator.save(model)
        raise ValueError(f"{error} (the model that was kept is in {model})") from error


def _save(estimator: LightDXML, model: Path, checkpoint: Path | None, discard_lessons: bool) -> None:
    """Save a model; if that fails, say that the checkpoint still has it.

    If the old model has learned meanwhile, it stays, and the new one goes beside it.
    """
    from lightdxml.persistence.checkpoint import is_in
    from lightdxml.persistence.lock import writing

    target = model
    try:
        # A lesson that is being learned must not replace the new model.
        with writing(model):
            if not discard_lessons and _steps(model):
                target = _free_place(model)
            estimator.save(target)
    except (OSError, ValueError) as error:
        if checkpoint is None or not is_in(checkpoint):
            raise
        raise ValueError(f"{error}; {checkpoint} holds the finished training, save it with: {_resuming()}") from error
    if target != model:
        raise ValueError(f"{model} has learned during this training and was kept: the new model is in {target}")


def _free_place(model: Path) -> Path:
    """Return a folder beside a model that does not exist."""
    here = model.resolve()
    return next(place for n in itertools.count(1) if not (place := here.with_name(f"{here.name}-{n}")).exists())


@contextmanager
def _resume_hint(checkpoint: Path | None) -> Iterator[None]:
    """Say how to resume a training run that is stopped."""
    from lightdxml.persistence.checkpoint import is_in
    from lightdxml.training.callbacks import Interrupted

    try:
        yield
    except KeyboardInterrupt as stopped:
        if checkpoint is None:
            note("stopped: nothing was saved; with --checkpoint DIR a training run can be resumed")
        else:
            note(f"stopped; resume with: {_resuming()}" if is_in(checkpoint) else "stopped before the first checkpoint")
        number = stopped.signal if isinstance(stopped, Interrupted) else signal.SIGINT
        raise typer.Exit(128 + number) from stopped


def _resuming() -> str:
    """Return the command that resumes this training."""
    return shlex.join(["lightdxml", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"])
