"""The model card: what a model is, how good it is, what it is not good for, and what its files reveal, in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightdxml.config import configure, walk
from lightdxml.hub.contents import size_of
from lightdxml.hub.evaluation import DEPTH, Evaluation, stored_evaluation
from lightdxml.hub.markdown import bullets, inline, one_line, section, table
from lightdxml.model import fingerprints
from lightdxml.model.blend import GROUP_NAMES
from lightdxml.model.model import Model
from lightdxml.model.store import Stored

# How every card begins.
BEGINNING = b"---\n"
_LICENSE, _LANGUAGE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}"), re.compile(r"[a-z]{2,3}")
_FREQUENT = 10
_RARE = 5
# The share of training documents among those to measure that is tolerated, as texts may repeat.
_TOLERATED = 0.01
_MEANINGS = {
    "P": "percentage of right labels among the first k",
    "nDCG": "like P, with more weight on the first positions",
    "PSP": "like P, with more weight on rare labels",
    "R": "percentage of a document's labels among the first k",
}
_INTERVAL = "its 95% confidence interval"
_CUTS = (1, 3, 5)
_INDEXED = tuple(f"{name}@{k}" for name in ("P", "nDCG", "PSP") for k in _CUTS)


@dataclass(frozen=True)
class About:
    """What the owner of a model says about it.

    Attributes
    ----------
    name
        The title of the card.
    repo
        The repository, such as `alice/pets`; empty if it is not known.
    license
        The identifier of a license, such as `mit` or `cc-by-4.0`; empty for none.
    language
        The language of the texts, such as `en`; empty for what the model says.
    with_training_data
        Whether what the model has learned from is shared with it.
    """

    name: str
    repo: str = ""
    license: str = ""
    language: str = ""
    with_training_data: bool = False

    def __post_init__(self) -> None:
        """Check what goes into the metadata."""
        if self.license and not _LICENSE.fullmatch(self.license):
            raise ValueError(
                f"{self.license!r:.80} is not the identifier of a license: write mit, apache-2.0 or cc-by-4.0"
            )
        if self.language and not _LANGUAGE.fullmatch(self.language):
            raise ValueError(f"{self.language!r:.80} is not the code of a language: write en or fi")


def card(stored: Stored, about: About, evaluation: Evaluation | None = None) -> str:
    """Return the model card.

    Parameters
    ----------
    stored
        The model.
    about
        What its owner says about it.
    evaluation
        What it achieves on test documents; None shows what it achieved on validation documents.
    """
    model = stored.model
    found = evaluation or stored_evaluation(model.metrics, model.n_validation)
    blocks = (
        _front_matter(model, about, found),
        f"# {inline(about.name)}",
        _summary(model),
        section("How to use it", *_use(model, about.repo or "OWNER/NAME")),
        section("Intended use", _INTENDED),
        section("Training data", *_training_data(model, _language(model, about))),
        section("Accuracy", *_accuracy(model, found)),
        section("How it scores", *_views(model)),
        section("What it is not good for", bullets(_limits(model))),
        section("What its files reveal", bullets(_revealed(model, about.with_training_data))),
        section("Reproducibility", bullets(_origin(stored))),
        section("License", _license(about)),
    )
    return "\n\n".join(blocks) + "\n"


_INTENDED = (
    "It suggests labels for documents like those that it was trained on: subjects in a catalog, tags, categories or"
    " related items. People may choose among the suggestions, or a threshold may decide. The score of a label is the"
    " estimated probability that it is right, and `explain` says which words count for it."
)


def _front_matter(model: Model, about: About, found: Evaluation) -> str:
    """Return the metadata that a hub reads, as YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    task, data_name = "text-classification", one_line(found.data)
    results = [
        EvalResult(
            task_type=task, task_name="extreme multi-label classification",
            dataset_name=data_name or "held-out documents", dataset_type=data_name or "held-out-documents",
            dataset_split="test" if data_name else "validation",
            metric_type=name, metric_name=f"{name}, in percent", metric_value=round(found.metrics[name], 2),
        )
        for name in _INDEXED
        if name in found.metrics and not _is_on_training(model, found)
    ]  # fmt: skip
    tags = ["lightdxml", "extreme-multi-label-classification", "multi-label-classification", "xmc"]
    data = ModelCardData(
        library_name="lightdxml",
        license=about.license or None,
        language=_language(model, about) or None,
        tags=[*tags, "subject-indexing"] if model.vocabulary is not None else tags,
        pipeline_tag=None if model.vectorizer is None else task,
        model_name=one_line(about.name) if results else None,
        eval_results=results or None,
    )
    return f"---\n{data.to_yaml(line_break=chr(10)).strip()}\n---"


def _language(model: Model, about: About) -> str:
    return about.language or (model.vectorizer.settings.language if model.vectorizer else "") or model.language or ""


def _summary(model: Model) -> str:
    what = "a text" if model.vectorizer is not None else f"a document of {model.n_features:,} features"
    return (
        f"This model says which of **{model.n_labels:,} labels** fit {what}. It was trained with `lightdxml`, for"
        f" extreme multi-label classification, on **{model.n_documents:,} documents**, and runs on a CPU."
    )


def _use(model: Model, repo: str) -> Iterator[str]:
    yield '```sh\npip install "lightdxml[hub]"\n```'
    given = '"a text"' if model.vectorizer is not None else "X[0]"
    setup = [] if model.vectorizer is not None else [f"# X is a matrix of documents × {model.n_features:,} features."]
    texts = "[text]" if model.vectorizer is not None else "X"
    lines = ["from lightdxml import LightDXML", "", f"model = LightDXML.from_pretrained({json.dumps(repo)})", *setup]
    if model.vectorizer is not None:
        lines += [
            f"text = {given}",
            f"print(model.predict({texts}, k=5))",
            "print(model.explain(text, k=1)[0].parts)  # why",
        ]
    else:
        lines += [f"print(model.predict({texts}, k=5))"]
    yield "```python\n" + "\n".join(lines) + "\n```"
    yield "On the command line, and as a web page with an HTTP service:"
    yield f'```sh\nlightdxml pull {repo} my-model\nlightdxml serve my-model  # needs "lightdxml[serve]"\n```'


def _training_data(model: Model, language: str) -> Iterator[str]:
    counts = np.bincount(model.label_groups, minlength=len(GROUP_NAMES)).tolist()
    empty = int(np.count_nonzero(model.label_frequency == 0))
    kind = "words" if model.vectorizer is not None else "features"
    rows = [
        ("documents", f"{model.n_documents:,}"),
        *([("language", language)] if language else ()),
        (kind, f"{model.n_features:,}"),
        ("labels", f"{model.n_labels:,}"),
        *([("labels without training documents", f"{empty:,}")] if empty else ()),
        *([("retired labels, which are never suggested", f"{len(model.retired):,}")] if len(model.retired) else ()),
        *(
            [("labels per document, mean", f"{model.label_frequency.sum() / model.n_documents:.1f}")]
            if model.n_documents
            else ()
        ),
    ]
    yield table(("", "value"), rows)
    yield "Labels by their number of training documents:"
    yield table(("training documents", *GROUP_NAMES), [("labels", *(f"{count:,}" for count in counts))])
    most = np.argsort(-model.label_frequency, kind="stable")[:_FREQUENT].tolist()
    if model.label_names is not None and not model.integer_labels:
        names = (
            f"{inline(model.label(j).name)} ({model.label_frequency[j]:,})" for j in most if model.label_frequency[j]
        )
        yield f"The most frequent labels: {', '.join(names)}."
    yield "The model does not record where these documents come from."


def _accuracy(model: Model, found: Evaluation) -> Iterator[str]:
    cuts = [k for k in _CUTS if f"P@{k}" in found.metrics]
    if not cuts:
        yield "It was not measured."
        return
    yield _measured_on(model, found)
    rows = [
        (name, *(f"{found.metrics[f'{name}@{k}']:.1f}" for k in cuts), about)
        for name, about in _MEANINGS.items()
        if f"{name}@{cuts[0]}" in found.metrics
    ]
    if found.intervals:
        bounds = (found.intervals.get(f"P@{k}") for k in cuts)
        rows.insert(1, ("", *("" if one is None else f"{one[0]:.1f}–{one[1]:.1f}" for one in bounds), _INTERVAL))
    yield table(("%", *(f"@{k}" for k in cuts), ""), rows, words=(0, len(cuts) + 1))
    if found.groups:
        yield f"Accuracy of the first {DEPTH} labels by the number of training documents of a label:"
        yield table(
            ("training documents", "true labels", "recall, %", "predictions", "precision, %"),
            [
                (g.name, f"{g.true:,}", _percent(g.recall), f"{g.predicted:,}", _percent(g.precision))
                for g in found.groups
            ],
        )
    if found.calibration_error is not None:
        yield (
            f"Scores are probabilities: the expected calibration error (ECE) of the first {DEPTH} labels is"
            f" {found.calibration_error:.3f}, from 0 (exact) to 1."
        )
    if found.milliseconds is not None:
        yield f"One document took {found.milliseconds:.2f} ms on the machine that measured it."


def _is_on_training(model: Model, found: Evaluation) -> bool:
    """Return whether measures are those of training documents, because none were held out."""
    return not found.data and found.documents == model.n_documents


def _measured_on(model: Model, found: Evaluation) -> str:
    if _is_on_training(model, found):
        return f"Measured on the {found.documents:,} training documents: expect **much less** on others."
    if not found.data:
        return (
            f"Measured on {found.documents:,} validation documents, to which the weights below were fitted: expect a"
            " little less on others."
        )
    lines = [f"Measured on {found.documents:,} documents of {inline(found.data)}."]
    if found.unknown_labels:
        lines.append(f"The model does not know {found.unknown_labels:,} of their labels, which count as missed.")
    if (found.trained_on_share or 0) > _TOLERATED:
        lines.append(
            f"**It was trained on {100 * (found.trained_on_share or 0):.3g}% of them, so these numbers are too high.**"
        )
    return " ".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _views(model: Model) -> Iterator[str]:
    yield "The score of a label combines these views of it. Their weights were fitted to validation documents."
    weights = model.blend.weights
    rows = [
        (name, f"{weights.get(name, 0.0):.3g}", f"{view.about}: {view.summary()}") for name, view in model.views.items()
    ]
    yield table(("view", "weight", ""), rows, words=(0, 2))


def _limits(model: Model) -> Iterator[str]:
    rare = int(np.count_nonzero((model.label_frequency > 0) & (model.label_frequency <= _RARE)))
    if model.vectorizer is not None:
        yield (
            "**Texts of another kind or language** than those of its training. A text without a single known word gets"
            " no labels."
        )
        yield (
            "**Meaning that depends on the order of words**, such as negation: it sees which words occur, and hardly in"
            " which order."
        )
    else:
        yield "**Other features** than those of its training: their columns must mean the same."
    yield "**Labels that it does not know.** It never suggests a label that is not in its list."
    if rare:
        yield (
            f"**Rare labels.** {rare:,} of its labels have at most {_RARE} training documents. They are found less"
            " often than frequent ones, and their probabilities are less certain."
        )
    yield (
        "**Decisions about people**, or others that nobody checks: it repeats the errors and the bias of those who"
        " labeled its documents."
    )


def _revealed(model: Model, with_training_data: bool) -> Iterator[str]:
    if model.label_names is not None:
        yield f"The names of all {model.n_labels:,} labels, and how many training documents each has."
    if model.vectorizer is not None:
        yield f"{model.n_features:,} words that occur in training documents."
    if len(model.trained_on):
        sample = " (a sample)" if len(model.trained_on) == fingerprints.LIMIT else ""
        yield (
            f"Hashes of {len(model.trained_on):,} training documents{sample}: whoever has a document can find out"
            " whether it is one of them."
        )
    if with_training_data:
        yield "**Features, labels and ids of all training documents, and texts of documents that were learned later.**"
    else:
        yield "No training documents: neither texts nor features."
    yield "No code: arrays in safetensors, and JSON. Loading it runs nothing."


def _origin(stored: Stored) -> Iterator[str]:
    model, manifest = stored.model, stored.manifest
    yield f"Written by lightdxml {inline(manifest['lightdxml'])}, in format {manifest['format']}; {_size(manifest)}."
    yield (
        f"Seed (`random_state`) {model.config.random_state}. The same data, settings and seed give the same model, bit"
        " for bit."
    )
    yield f"Settings: {_settings(model)}."
    if model.word_vectors is not None:
        yield "Training started from existing word vectors."
    for machine in model.machines:
        wanted = ("processor", "blas", "numpy", "scipy", "numba")
        known = ", ".join(
            inline(f"{name} {machine[name]}".removeprefix("processor ")) for name in wanted if name in machine
        )
        yield f"Trained on {known}."
    if (seconds := _seconds(stored)) is not None:
        yield f"Training took {seconds:,.0f} s, with the compilation of its code."


def _size(manifest: Mapping[str, Any]) -> str:
    return size_of(entry["bytes"] for entry in manifest["files"].values())


def _settings(model: Model) -> str:
    usual = {name: value for name, _, value in walk(configure("default", model.n_documents))}
    # What `auto` has become in training is no change.
    changed = [(name, value) for name, _, value in walk(model.config) if usual[name] not in (value, "auto")]
    if model.vectorizer is not None:
        settings = model.vectorizer.settings
        kind = type(settings)
        changed += [(name, value) for name, value in vars(settings).items() if value != getattr(kind, name)]
    return ", ".join(f"`{name}` {inline(value)}" for name, value in changed) if changed else "the defaults"


def _seconds(stored: Stored) -> float | None:
    """Return how long training took; None if the history, which anyone may have written, does not say."""
    found = [entry.get("seconds") for entry in stored.history]
    numbers = [float(one) for one in found if isinstance(one, int | float) and 0 <= one < 1e9]
    return sum(numbers) if numbers else None


def _license(about: About) -> str:
    if about.license:
        return (
            f"The model is under the license `{about.license}`. Texts and vocabularies that it was trained on may have"
            " others."
        )
    return "Its owner has named no license. Ask before you use it."
