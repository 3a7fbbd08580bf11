"""A training as facts for JSON and arrays, and back.

Nothing in a snapshot is trusted. Compiled code does not check its input. So every value is checked against what this
training run, with its data and settings, can produce.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.arrays import Arrays, check_finite
from lightdxml.training.choose import CHOICES
from lightdxml.training.plan import plan, shortlist_length
from lightdxml.training.run import Run
from lightdxml.training.state import Best, CycleState, DenseResult
from lightdxml.views.base import ModelSizes, expect, in_range
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.label_encoder import LabelEncoder
from lightdxml.views.dense.label_encoder import start as start_label_encoder
from lightdxml.views.dense.nearness import NearnessView

Facts = dict[str, Any]
_BEST, _DENSE, _PRODUCT = "best.", "dense.", "product."
_MAX_STEPS = 2**53


def pack(run: Run) -> tuple[Facts, Arrays]:
    """Return a training run as facts for JSON, and arrays."""
    facts, arrays = _pack_cycle(run) if run.cycle is not None else _pack_products(run)
    return {**facts, "history": run.history, "machines": run.machines}, arrays


def unpack(run: Run, facts: Facts, arrays: Arrays) -> None:
    """Put a fresh training to where a snapshot was taken; raise a `ValueError` if it cannot be one of this training.

    The training is then unchanged.
    """
    if not isinstance(facts["machines"], list) or not all(isinstance(one, dict) for one in facts["machines"]):
        raise ValueError("its machines are not a list")
    if not isinstance(facts["history"], list) or not all(isinstance(entry, dict) for entry in facts["history"]):
        raise ValueError("its history is not a list of phases")
    if facts["stage"] == "finalize":
        _unpack_products(run, facts, arrays)
    elif run.cycle is None:
        raise ValueError("its dense views are of no use here")
    else:
        _unpack_cycle(run, facts, arrays)
    run.machines = [*facts["machines"], *(here for here in run.machines if here not in facts["machines"])]
    # Choices are made again: they take little time, and their results are not stored.
    run.history = [entry for entry in facts["history"] if entry["phase"] not in CHOICES]


def _pack_cycle(run: Run) -> tuple[Facts, Arrays]:
    state = run.cycle
    assert state is not None
    arrays = {**_trained(state), "shortlists": state.shortlists, "order": state.order}
    facts = {
        "stage": "cycle",
        "rng": state.rng.bit_generator.state,
        "classifier_steps": state.classifier.steps,
        "label_encoder_steps": state.label_encoder.steps,
        **{name: getattr(state, name) for name in ("batch", "loss", "step", "refreshes")},
    }
    if state.best is not None:
        best = state.best
        view_facts, view_arrays = _pack_views(_BEST, best.classifier, best.nearness)
        arrays |= view_arrays
        names = ("beta", "accuracy", "is_latest")
        facts["best"] = {**view_facts, **{name: getattr(best, name) for name in names}}
    return facts, arrays


def _pack_products(run: Run) -> tuple[Facts, Arrays]:
    facts: Facts = {"stage": "finalize", "dense": None}
    arrays: Arrays = {}
    if run.result is not None:
        dense = run.result
        view_facts, arrays = _pack_views(_DENSE, dense.classifier, dense.nearness)
        facts["dense"] = {**view_facts, "beta": dense.beta}
        if dense.label_encoder is not None:
            arrays |= _layers(dense.label_encoder)
    done = {}
    # A copy: threads add products while this one packs.
    for key, product in list(run.products.items()):
        done[key] = list(product)
        arrays |= {f"{_PRODUCT}{key}.{name}": array for name, array in product.items()}
    return {**facts, "products": done}, arrays


def _pack_views(prefix: str, classifier: ClassifierView, nearness: NearnessView) -> tuple[Facts, Arrays]:
    arrays = {f"{prefix}{name}": array for view in (classifier, nearness) for name, array in view.arrays().items()}
    return {"classifier": classifier.facts(), "nearness": nearness.facts()}, arrays


def _trained(state: CycleState) -> Arrays:
    """Return the arrays that training changes in place, by name."""
    features, classifier = state.encoder, state.collected()
    arrays = {
        "vectors": features.encoder.vectors,
        "vectors_mean": features.mean,
        "vectors_square": features.square,
        "W": classifier.W,
        "W_mean": classifier.mean,
        "W_square": classifier.square,
        **_layers(state.label_encoder),
    }
    if features.encoder.residual is not None:
        arrays["residual"], arrays["residual_bias"] = features.encoder.residual.R, features.encoder.residual.bias
        arrays["residual_mean"], arrays["residual_square"] = features.residual_mean, features.residual_square
        arrays["singular"] = features.singular
    return arrays


def _layers(encoder: LabelEncoder) -> Arrays:
    arrays: Arrays = {}
    for i in range(len(encoder.layers)):
        arrays[f"layer{i}"] = encoder.layers[i]
        arrays[f"layer{i}_mean"], arrays[f"layer{i}_square"] = encoder.means[i], encoder.squares[i]
    return arrays


def _unpack_cycle(run: Run, facts: Facts, arrays: Arrays) -> None:
    state = run.cycle
    assert state is not None
    _check_alike(_trained(state), arrays)
    _check_progress(run, facts, arrays)
    rng = np.random.default_rng(0)
    rng.bit_generator.state = facts["rng"]
    best = _unpack_best(run, facts["best"], arrays) if facts["step"] else None
    for name, array in _trained(state).items():
        array[...] = arrays[name]
    state.rng.bit_generator.state = rng.bit_generator.state
    state.shortlists = run.array("shortlists", arrays["shortlists"].shape, np.int32)
    state.shortlists[...] = arrays["shortlists"]
    state.order = np.array(arrays["order"])
    state.classifier.steps, state.label_encoder.steps = facts["classifier_steps"], facts["label_encoder_steps"]
    state.batch, state.loss, state.step, state.refreshes = (
        facts[name] for name in ("batch", "loss", "step", "refreshes")
    )
    state.best = best


def _unpack_products(run: Run, facts: Facts, arrays: Arrays) -> None:
    if (facts["dense"] is None) != (run.cycle is None):
        raise ValueError("its dense views are missing, or are of no use here")
    result = None if facts["dense"] is None else _unpack_dense(run, facts["dense"], arrays)
    products: dict[str, Arrays] = {}
    for key, names in facts["products"].items():
        products[key] = {name: np.array(arrays[f"{_PRODUCT}{key}.{name}"]) for name in names}
    run.result, run.products, run.cycle = result, products, None


def _unpack_dense(run: Run, facts: Facts, arrays: Arrays) -> DenseResult:
    classifier, nearness = _unpack_views(run, _DENSE, facts, arrays)
    label_encoder = None
    if "layer0" in arrays:
        label_encoder = start_label_encoder(run.config.dense.dim)
        expected = _layers(label_encoder)
        _check_alike(expected, arrays)
        for name, array in expected.items():
            array[...] = arrays[name]
    return DenseResult(classifier, nearness, _number(facts["beta"], 0, 1), label_encoder)


def _unpack_views(run: Run, prefix: str, facts: Facts, every: Arrays) -> tuple[ClassifierView, NearnessView]:
    arrays = {name.removeprefix(prefix): np.array(array) for name, array in every.items() if name.startswith(prefix)}
    check_finite(arrays)
    sizes = ModelSizes(run.data.X.shape[1], run.data.n_labels)
    classifier = ClassifierView.restore(arrays, facts["classifier"], sizes)
    nearness = NearnessView.restore(arrays, facts["nearness"], sizes)
    options = run.config.dense
    for encoder in (classifier.encoder, nearness.encoder):
        if encoder.vectors.dtype == np.int8 or encoder.dim != options.dim:
            raise ValueError("its best model is a quantized one, or has other dimensions")
        if (encoder.residual is not None) != options.residual or encoder.relu != options.relu:
            raise ValueError("its best model has another encoder")
    if not np.array_equal(nearness.labels, run.data.known_labels) or nearness.shortlist_size != options.shortlist_size:
        raise ValueError("its best model belongs to other data")
    return classifier, nearness


def _unpack_best(run: Run, facts: Facts, arrays: Arrays) -> Best:
    classifier, nearness = _unpack_views(run, _BEST, facts, arrays)
    if not isinstance(facts["is_latest"], bool):
        raise ValueError("its best model is neither the latest nor an earlier one")
    beta, accuracy = _number(facts["beta"], 0, 1), _number(facts["accuracy"])
    return Best(classifier, nearness, beta, accuracy, facts["is_latest"])


def _check_alike(expected: Arrays, arrays: Arrays) -> None:
    for name, array in expected.items():
        expect(arrays[name], name, array.shape, array.dtype)
    check_finite({name: arrays[name] for name in expected})


def _check_progress(run: Run, facts: Facts, arrays: Arrays) -> None:
    """Raise a `ValueError` if a snapshot claims a position in which this training never is."""
    steps, n = plan(run.config.dense), run.data.X.shape[0]
    n_batches = math.ceil(n / run.config.dense.batch_size)
    step, batch = facts["step"], facts["batch"]
    _check_integer("step", step, 0, len(steps))
    in_epoch = step < len(steps) and steps[step].kind == "classifier"
    _check_integer("batch", batch, 0, n_batches - 1 if in_epoch else 0)
    epochs = sum(done.kind == "classifier" for done in steps[:step])
    _check_integer("refreshes", facts["refreshes"], step - epochs, step - epochs)
    updates = epochs * n_batches + batch
    _check_integer("classifier_steps", facts["classifier_steps"], updates, updates)
    _check_integer("label_encoder_steps", facts["label_encoder_steps"], 0, _MAX_STEPS)
    _number(facts["loss"])
    order, length = arrays["order"], n if batch else 0
    expect(order, "order", (length,), np.int64)
    if not np.array_equal(np.sort(order), np.arange(length)):
        raise ValueError("its order names documents that do not exist")
    if in_epoch or len(arrays["shortlists"]):
        _check_shortlists(run, arrays["shortlists"], step)


def _check_shortlists(run: Run, found: NDArray[Any], step: int) -> None:
    length = min(shortlist_length(run.config.dense, step - 1), len(run.data.known_labels))
    expect(found, "shortlists", (run.data.X.shape[0], length), np.int32)
    if not in_range(found, -1, run.data.n_labels):
        raise ValueError("its shortlists name labels that do not exist")


def _check_integer(name: str, value: Any, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} is {value!r:.30}")


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"it has {value!r:.30} in the place of a number")
    return float(value)
