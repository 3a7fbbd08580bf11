"""A training's state as facts for JSON and arrays, and back.

Nothing in a snapshot is trusted: compiled code takes what it is given, so every number is checked against what this
training, with its data and settings, can come to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import shortlist as shortlists
from lightdxml import storage
from lightdxml.config import Config
from lightdxml.encoder import Encoder, Residual
from lightdxml.model import Model
from lightdxml.training.plan import Step, plan, shortlist_length
from lightdxml.training.state import State

Arrays = dict[str, NDArray[Any]]
_BEST = "best."
_MOST_STEPS = 2**53


@dataclass(frozen=True)
class Frame:
    """What of a training its state must fit.

    Attributes
    ----------
    config
        How it is trained.
    frequency
        How many of its documents each label has.
    everywhere
        Labels that are candidates of every document.
    n_documents
        How many documents it is trained on.
    """

    config: Config
    frequency: NDArray[np.int32]
    everywhere: NDArray[np.int32]
    n_documents: int

    @cached_property
    def steps(self) -> list[Step]:
        """The plan."""
        return plan(self.config)

    @property
    def n_batches(self) -> int:
        """How many an epoch has."""
        return math.ceil(self.n_documents / self.config.batch_size)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The labels that have documents."""
        return np.flatnonzero(self.frequency)


def pack(state: State) -> tuple[dict[str, Any], Arrays]:
    """Return a state as facts for JSON, and arrays."""
    arrays = {**_trained(state), "shortlists": state.shortlists, "order": state.order}
    facts = {
        "rng": state.rng.bit_generator.state,
        "classifier_steps": state.classifier.steps,
        "label_encoder_steps": state.label_encoder.steps,
        **{name: getattr(state, name) for name in ("batch", "loss", "step", "cycle", "history", "best_accuracy")},
    }
    if state.best is not None:
        arrays |= {_BEST + name: array for name, array in storage.arrays_of(state.best).items()}
        facts["best"] = {
            "beta": state.best.beta,
            "metrics": state.best.metrics,
            "kind": state.best.shortlist.kind,
        }
    return facts, arrays


def _trained(state: State) -> Arrays:
    """Return the arrays that training changes in place, by name."""
    features, classifier, label_encoder = state.features, state.classifier, state.label_encoder
    arrays = {
        "vectors": features.encoder.vectors,
        "vectors_mean": features.mean,
        "vectors_square": features.square,
        "W": classifier.W,
        "W_mean": classifier.mean,
        "W_square": classifier.square,
    }
    for i in range(len(label_encoder.layers)):
        arrays[f"layer{i}"] = label_encoder.layers[i]
        arrays[f"layer{i}_mean"] = label_encoder.means[i]
        arrays[f"layer{i}_square"] = label_encoder.squares[i]
    if features.encoder.residual is not None:
        arrays["residual"], arrays["residual_bias"] = features.encoder.residual.R, features.encoder.residual.bias
        arrays["residual_mean"], arrays["residual_square"] = features.residual_mean, features.residual_square
        arrays["singular"] = features.singular
    return arrays


def unpack(state: State, facts: dict[str, Any], arrays: Arrays, frame: Frame) -> None:
    """Put a fresh state to what a snapshot says; a `ValueError` where it cannot be one of this training.

    Then the state is what it was. The shortlists are those in `arrays`, not a copy.
    """
    try:
        _check_trained(_trained(state), arrays)
        _check_progress(facts, arrays, frame)
        rng = np.random.default_rng(0)
        rng.bit_generator.state = facts["rng"]
        best = _best(facts["best"], arrays, len(state.features.encoder.vectors), frame) if facts["step"] else None
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as error:
        raise ValueError(f"something is not there, or of another form ({type(error).__name__}: {error})") from error
    for name, array in _trained(state).items():
        array[...] = arrays[name]
    state.rng.bit_generator.state = rng.bit_generator.state
    state.shortlists, state.order = arrays["shortlists"], np.array(arrays["order"])
    state.classifier.steps = facts["classifier_steps"]
    state.label_encoder.steps = facts["label_encoder_steps"]
    state.batch, state.loss, state.step, state.cycle = (facts[name] for name in ("batch", "loss", "step", "cycle"))
    state.history, state.best_accuracy = facts["history"], facts["best_accuracy"]
    state.best = best


def _check_trained(expected: Arrays, arrays: Arrays) -> None:
    for name, array in expected.items():
        found = arrays[name]
        if found.shape != array.shape or found.dtype != array.dtype:
            raise ValueError(f"array {name} has shape {found.shape} and type {found.dtype}")
    storage.check_finite({name: arrays[name] for name in expected})


def _check_progress(facts: dict[str, Any], arrays: Arrays, frame: Frame) -> None:
    """Raise where a snapshot says to be where this training never is."""
    step, batch, steps = facts["step"], facts["batch"], frame.steps
    _check_whole("step", step, 0, len(steps))
    in_epoch = step < len(steps) and steps[step].what == "classifier"
    _check_whole("batch", batch, 0, frame.n_batches - 1 if in_epoch else 0)
    epochs = sum(done.what == "classifier" for done in steps[:step])
    _check_whole("cycle", facts["cycle"], step - epochs, step - epochs)
    moves = epochs * frame.n_batches + batch
    _check_whole("classifier_steps", facts["classifier_steps"], moves, moves)
    _check_whole("label_encoder_steps", facts["label_encoder_steps"], 0, _MOST_STEPS)
    if not all(_is_number(facts[name]) for name in ("loss", "best_accuracy")):
        raise ValueError("its loss or its accuracy is no number")
    if not isinstance(facts["history"], list) or not all(isinstance(entry, dict) for entry in facts["history"]):
        raise ValueError("its history is no list of phases")
    _check_order(arrays["order"], batch, frame.n_documents)
    _check_shortlists(arrays["shortlists"], frame, step, needed=in_epoch or step == len(steps))


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.30}")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _check_order(order: NDArray[Any], batch: int, n_documents: int) -> None:
    """Raise where an epoch that has begun has no order of its documents, or one that has not begun has one."""
    length = n_documents if batch else 0
    if order.dtype != np.int64 or order.shape != (length,) or not np.array_equal(np.sort(order), np.arange(length)):
        raise ValueError("its order names documents that are not there")


def _check_shortlists(found: NDArray[Any], frame: Frame, step: int, *, needed: bool) -> None:
    length = min(shortlist_length(frame.config, step - 1), len(frame.labels))
    shapes = [(frame.n_documents, length)]
    if not needed:
        shapes.append((0, 0))
    if found.dtype != np.int32 or found.shape not in shapes:
        raise ValueError(f"its shortlists have shape {found.shape} and type {found.dtype}")
    if found.min(initial=-1) < -1 or found.max(initial=-1) >= len(frame.frequency):
        raise ValueError("its shortlists name labels that are not there")


def _best(facts: dict[str, Any], every: Arrays, n_features: int, frame: Frame) -> Model:
    """Return the best model so far."""
    arrays = {name.removeprefix(_BEST): array for name, array in every.items() if name.startswith(_BEST)}
    _check_best(facts, arrays, n_features, frame)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    config, kind = frame.config, facts["kind"]
    residual = Residual(arrays["residual"], arrays["residual_bias"]) if config.residual else None
    structure = shortlists.structure_in(arrays, kind)
    return Model(
        encoder=Encoder(arrays["word_vectors"], config.relu, residual),
        classifier=arrays["classifier"],
        shortlist=shortlists.build(arrays["labels"], arrays["label_embeddings"], kind, structure),
        everywhere=arrays["everywhere"],
        beta=facts["beta"],
        config=config,
        label_frequency=frame.frequency,
        n_documents=frame.n_documents,
        metrics=facts["metrics"],
    )


def _check_best(facts: dict[str, Any], arrays: Arrays, n_features: int, frame: Frame) -> None:
    storage.check_arrays(arrays, frame.config)
    storage.check_finite(arrays)
    if any(arrays[name].dtype == np.int8 for name in storage.MAY_BE_NARROW):
        raise ValueError("its best model is a compressed one")
    sizes = len(arrays["word_vectors"]), len(arrays["classifier"])
    if sizes != (n_features, len(frame.frequency)) or ("residual" in arrays) != frame.config.residual:
        raise ValueError("its best model is one of other data")
    if not np.array_equal(arrays["labels"], frame.labels) or not np.array_equal(arrays["everywhere"], frame.everywhere):
        raise ValueError("its best model has label numbers of other data")
    if not _is_number(facts["beta"]) or not 0 <= facts["beta"] <= 1 or facts["kind"] not in shortlists.KINDS:
        raise ValueError("its best model has no β, or no known index")
    if not all(_is_number(value) for value in [facts["metrics"]["P@1"], *facts["metrics"].values()]):
        raise ValueError("its best model has measures that are no numbers")
