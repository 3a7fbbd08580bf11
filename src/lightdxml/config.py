"""All settings of a training run as one object, the presets, and the names under which users set them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any

from lightdxml.settings import check, check_value, parse, setting
from lightdxml.views.dense.options import DenseOptions
from lightdxml.views.linear.options import LinearOptions
from lightdxml.views.names.options import NamesOptions
from lightdxml.views.tree.options import TreeOptions


@dataclass(frozen=True)
class BlendOptions:
    """How the weights of the views are chosen on validation documents."""

    beta: float | None = setting(
        None,
        "Weight of the classifier relative to nearness in the paper's blend; none: chosen from the data.",
        low=0,
        high=1,
        optional=True,
    )
    fit: bool = setting(True, "Fit the weights of the views to validation documents; false: usual weights, all views.")
    min_documents: int = setting(
        500, "With fewer validation documents, C, the number of trees and the shift at `tail` 0 are defaults.", low=1
    )
    few_documents: int = setting(
        1000, "With fewer validation documents a view is kept unless it clearly does harm.", low=0
    )
    tolerance: float = setting(0.5, "Points of P given up for PSP in the choice of β: the noise of P.", low=0)
    min_gain: float = setting(0.2, "Points of mean P that another view must add to be kept.", low=0)
    min_errors: float = setting(1.0, "Standard errors by which this gain must differ from 0.", low=0)
    tail_documents: int = setting(100, "With fewer documents the strength at `tail` 1 is the default.", low=1)
    # Scores of the paper's blend lie close together: a shift that is small for other scores would decide alone.
    default_tail: float = setting(0.2, "Default strength at `tail` 1 with the linear view.", low=0)
    default_paper_tail: float = setting(0.02, "Default strength at `tail` 1 with the paper's blend.", low=0)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Config:
    """All settings of a training run.

    Examples
    --------
    >>> Config().dense.shortlist_size
    200
    >>> Config(random_state=-1)
    Traceback (most recent call last):
    ValueError: random_state is -1: it must be an integer of at least 0 and at most 4,294,967,295
    """

    dense: DenseOptions = field(default_factory=DenseOptions)
    linear: LinearOptions = field(default_factory=LinearOptions)
    tree: TreeOptions = field(default_factory=TreeOptions)
    names: NamesOptions = field(default_factory=NamesOptions)
    blend: BlendOptions = field(default_factory=BlendOptions)
    precision: str = setting("float16", "Floating-point type of the stored model.", choices=("float16", "float32"))
    validation_fraction: float = setting(
        0.05,
        "Fraction of training documents held out to choose weights and epoch, if there is no dev part.",
        low=0,
        high=0.5,
    )
    validation_minimum: int = setting(500, "Documents held out, at least, but no more than a fifth of all.", low=0)
    validation_limit: int = setting(5000, "Documents held out, at most.", low=1)
    own_labels: str = setting(
        "auto",
        "Whether a document may have itself as a label; auto: not if documents are labels and have only others.",
        choices=("auto", "never", "allowed"),
    )
    refit: bool = setting(True, "Train linear view and trees on held-out documents too, after all is chosen.")
    random_state: int = setting(0, "The same value gives the same model, bit for bit.", low=0, high=2**32 - 1)

    def __post_init__(self) -> None:
        check(self)


# The settings that users touch most, by the names that the estimator and the command line have for them.
SHORT_NAMES = {
    "dense": "dense.train",
    "dim": "dense.dim",
    "shortlist_size": "dense.shortlist_size",
    "epochs": "dense.epochs",
    "learning_rate": "dense.learning_rate",
    "linear": "linear.enabled",
    "tree": "tree.enabled",
    "names": "names.enabled",
    "beta": "blend.beta",
    "index": "dense.index",
}


def walk(config: Config | type[Config] = Config) -> Iterator[tuple[str, Field[Any], Any]]:
    """Yield every setting: its full name, its field, and its value.

    >>> next(walk())[0]
    'dense.train'
    """
    instance = config() if isinstance(config, type) else config
    for outer in fields(instance):
        value = getattr(instance, outer.name)
        if is_dataclass(value):
            for inner in fields(value):
                yield f"{outer.name}.{inner.name}", inner, getattr(value, inner.name)
        else:
            yield outer.name, outer, value


def full_name(name: str) -> str:
    """Return the full name of a setting.

    >>> full_name("epochs"), full_name("dense.epochs"), full_name("refit")
    ('dense.epochs', 'dense.epochs', 'refit')
    >>> full_name("epoch")
    Traceback (most recent call last):
    ValueError: there is no setting 'epoch': did you mean epochs?
    """
    import difflib

    full = SHORT_NAMES.get(name, name)
    known = [one for one, _, _ in walk()]
    if full in known:
        return full
    close = difflib.get_close_matches(name, [*SHORT_NAMES, *known], n=1)
    hint = f"did you mean {close[0]}?" if close else "`lightdxml train --help` lists all of them"
    raise ValueError(f"there is no setting {name!r}: {hint}")


def changed(config: Config, settings: dict[str, Any]) -> Config:
    """Return a configuration with some settings changed, by short or full name; strings are parsed.

    >>> changed(Config(), {"epochs": "8", "dense.dropout": 0.5}).dense.epochs
    8
    >>> changed(Config(), {"tree.cost": -1})
    Traceback (most recent call last):
    ValueError: tree.cost is -1: it must be a number above 0 and at most 1,000,000
    """
    by_name = {name: one for name, one, _ in walk()}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        full = full_name(name)
        group, _, inner = full.rpartition(".")
        groups.setdefault(group, {})[inner] = parsed = parse(by_name[full], value)
        check_value(name, by_name[full], parsed)
    top = groups.pop("", {})
    for group, values in groups.items():
        top[group] = replace(getattr(config, group), **values)
    return replace(config, **top)


def resolved(
    config: Config, n_documents: int, n_features: int, has_vectors: bool = False, has_names: bool = False
) -> Config:
    """Return a configuration that says whether dense views are trained, which may depend on the data.

    Next to the linear view they help if features or documents are few, or if word vectors are given. Few documents
    with names of labels are the exception: names help more, and dense views do not know them.

    >>> [resolved(Config(), 50_000, n).dense.train for n in (500, 50_000)]
    ['always', 'never']
    >>> [resolved(Config(), 1000, 500, has_names=names).dense.train for names in (False, True)]
    ['always', 'never']
    """
    if config.dense.train == "never" and not config.linear.enabled:
        raise ValueError("dense is 'never' and linear is False: one of them must be trained to propose labels")
    if config.dense.train == "never" and has_vectors:
        raise ValueError("word vectors are for the dense views, and dense is 'never': choose 'auto' or 'always'")
    if config.dense.train != "auto":
        return config
    few_documents, few_features = n_documents < config.dense.max_documents, n_features <= config.dense.max_features
    helpful = not has_names if few_documents else few_features
    wanted = helpful or has_vectors or not config.linear.enabled
    return changed(config, {"dense": "always" if wanted else "never"})


def from_json(content: Any) -> Config:
    """Return the configuration that `dataclasses.asdict` made; settings that are missing get their defaults."""
    if not isinstance(content, dict):
        raise ValueError("its settings have another form")
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    if unknown := sorted(set(flat) - {name for name, _, _ in walk()}):
        raise ValueError(f"it has settings that this version does not know: {', '.join(unknown[:5])}")
    return changed(Config(), {name: tuple(value) if isinstance(value, list) else value for name, value in flat.items()})


# The authors' own training on top of the paper's table: their encoder, batches and schedule, no random negatives.
_PAPER = {
    "dim": 300,
    "dense.vector_rate": 1.0,
    "dense.batch_size": 255,
    "dense.schedule": "steps",
    "dense.dropout": 0.5,
    "dense.relu": True,
    "dense.residual": True,
    "dense.random_negatives": 0,
    "dense": "always",
    "linear": False,
    "tree": False,
    "names": False,
}


# A model in a fraction of the time: linear classifiers and one label tree.
_FAST = {
    "dense": "never",
    "tree.max_trees": 1,
    "linear.work": 60_000_000,
    "linear.min_clusters": 20,
    "linear.tried_share": 0.05,
    "validation_limit": 2000,
}


def _paper(beta: float, k: int, rate: float, e_model: int, e_label: int, e_hat_label: int) -> Config:
    table = {
        "beta": beta,
        "shortlist_size": k,
        "learning_rate": rate,
        "epochs": e_model,
        "dense.label_epochs": e_label,
        "dense.refresh_every": e_hat_label,
    }
    return changed(Config(), _PAPER | table)


PRESETS: dict[str, Config] = {
    "default": Config(),
    "fast": changed(Config(), _FAST),
    "paper/EURLex-4K": _paper(0.75, 500, 0.006, 16, 8, 8),
    "paper/AmazonCat-13K": _paper(1.0, 500, 0.007, 21, 4, 4),
    "paper/Wiki10-31K": _paper(0.60, 600, 0.009, 21, 8, 6),
    "paper/WikiSeeAlsoTitles-350K": _paper(0.1, 500, 0.008, 21, 6, 7),
    "paper/AmazonTitles-670K": _paper(1.0, 650, 0.007, 21, 6, 9),
}

# The settings that decide whether dense views are trained.
_WHETHER = ("dense.train", "dense.max_documents", "dense.max_features")
# With few documents an epoch has few steps: smaller batches, a lower rate and more epochs make up for it.
SMALL_LIMIT = 20_000


def _small(documents: int) -> Config:
    small = {"learning_rate": 0.01, "epochs": 6, "dim": 128}
    return changed(PRESETS["default"], {"dense.batch_size": min(max(documents // 50, 8), 64), **small})


def configure(preset: str = "default", documents: int | None = None, settings: dict[str, Any] | None = None) -> Config:
    """Return a preset with some settings changed.

    Parameters
    ----------
    preset
        `default`, `fast`, or one of the paper's.
    documents
        The number of training documents; the default preset depends on it.
    settings
        What to change, by short or full name. Strings are parsed as on the command line.

    Examples
    --------
    >>> [configure("default", n).dense.batch_size for n in (100, 10_000, 1_000_000)]
    [8, 64, 512]
    >>> configure("paper/EURLex-4K", settings={"random_state": "7"}).random_state
    7
    >>> configure("mine")
    Traceback (most recent call last):
    ValueError: there is no preset 'mine': choose default, fast, paper/EURLex-4K, paper/AmazonCat-13K, \
paper/Wiki10-31K, paper/WikiSeeAlsoTitles-350K or paper/AmazonTitles-670K
    """
    if preset not in PRESETS:
        *first, last = PRESETS
        raise ValueError(f"there is no preset {preset!r}: choose {', '.join(first)} or {last}")
    small = preset == "default" and documents is not None and documents < SMALL_LIMIT
    base = _small(documents) if small and documents is not None else PRESETS[preset]
    given = {full_name(name): value for name, value in (settings or {}).items()}
    # Whoever changes a setting of the dense views wants to see its effect.
    if any(name.startswith("dense.") and name not in _WHETHER for name in given) and "dense.train" not in given:
        base = changed(base, {"dense": "always"})
    return changed(base, settings or {})
