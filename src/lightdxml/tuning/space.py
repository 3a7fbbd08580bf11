"""Which settings trials vary, and between which values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightdxml import presets
from lightdxml.config import Config, changed, full_name, resolved, walk
from lightdxml.data.dataset import Texts
from lightdxml.label_names import label_texts
from lightdxml.presets import TEXT_NAMES, Preset
from lightdxml.survey import survey
from lightdxml.text.tfidf import TextOptions

if TYPE_CHECKING:
    import optuna

    from lightdxml.tuning.documents import Documents

# With fewer documents, texts have fewer different words than are kept.
_MANY_DOCUMENTS = 10_000
# Texts that a guess of their length is taken from.
_SAMPLE = 200
_DENSE = "dense.train"
_WHETHER = (_DENSE, "dense.max_documents", "dense.max_features")


@dataclass(frozen=True)
class Dimension:
    """A setting that trials vary: some values, or all from `low` to `high`.

    Attributes
    ----------
    name
        The full name of the setting.
    choices
        The values; empty if there is a range.
    low, high
        The ends of the range.
    log
        Whether ratios matter rather than differences.

    Examples
    --------
    >>> Dimension("ngrams", (1, 2)), Dimension("linear.prior", low=0.5, high=8.0, log=True).low
    (Dimension(name='ngrams', choices=(1, 2), low=0.0, high=0.0, log=False), 0.5)
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def suggest(self, trial: optuna.Trial) -> Any:
        """Return the value of a trial."""
        if self.choices:
            return trial.suggest_categorical(self.name, self.choices)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(self.name, self.low, self.high, log=self.log)
        value = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        # People read and edit it later.
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def near(self, value: Any) -> Any:
        """Return the value of the dimension that is closest to a default; None if there is none."""
        if isinstance(value, tuple):
            value = value[len(value) // 2]
        if self.name == _DENSE and value == "auto":
            # They are varied where `auto` trains them.
            value = "always"
        if self.choices:
            return value if value in self.choices else None
        return min(max(value, self.low), self.high) if isinstance(value, int | float) else None


class Space(tuple[Dimension, ...]):
    """The settings that trials vary, in the order in which they are chosen.

    Settings of the dense views are varied only in trials that train these views.

    Examples
    --------
    >>> space = Space([Dimension("linear.costs", low=0.1, high=4.0, log=True)])
    >>> space.near(Preset(), 50_000), space.settings({"linear.costs": 0.25})
    ({'linear.costs': 0.5}, {'linear.costs': (0.25,)})
    """

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """Return the settings of a trial."""
        values: dict[str, Any] = {}
        for one in self:
            if _applies(one.name, values):
                values[one.name] = one.suggest(trial)
        return self.settings(values)

    def settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as settings: a single C is a list of one."""
        defaults = _values(Preset(), None)
        return {name: (one,) if isinstance(defaults[name], tuple) else one for name, one in values.items()}

    def near(self, preset: Preset, documents: int) -> dict[str, Any]:
        """Return the point of the space that is closest to the settings of a preset.

        The sampler learns from it. Settings that depend on the data, such as the cost C, have no point of their own.
        """
        defaults, found = _values(preset, documents), dict[str, Any]()
        for one in self:
            if _applies(one.name, found) and (value := one.near(defaults[one.name])) is not None:
                found[one.name] = value
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the content of a file of the space."""
        return {
            one.name: list(one.choices) if one.choices else {"low": one.low, "high": one.high, "log": one.log}
            for one in self
        }


def _applies(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a setting has an effect, given those before it."""
    return not name.startswith("dense.") or name in _WHETHER or values.get(_DENSE, "always") == "always"


def _values(preset: Preset, documents: int | None) -> dict[str, Any]:
    """Return the values of all settings of a preset."""
    texts = vars(preset.text_options())
    return {name: value for name, _, value in walk(preset.config(documents))} | texts


def default_space(data: Documents, preset: Preset) -> Space:
    """Return the settings that matter for these documents, around the defaults: those are good on many data sets.

    Settings of the dense views are among them where these are trained by default.
    """
    config, train = preset.config(len(data.train)), data.train
    found: list[Dimension] = []
    if train.texts is not None:
        found += _of_texts(train.texts)
    named = _has_names(data, config, preset.text_options())
    if _trains_dense(data, config, named):
        found += _of_dense(config)
    if config.linear.enabled:
        found += [
            Dimension("linear.costs", low=0.1, high=2.0, log=True),
            Dimension("linear.prior", low=0.5, high=6.0, log=True),
        ]
        if config.names.enabled and named:
            found.append(Dimension("names.documents", low=1.0, high=25.0, log=True))
        if config.tree.enabled and _work(data, config) > config.linear.work:
            # Settings of clusters and matchers are left out: trials share these steps, which take long.
            found.append(Dimension("tree.max_trees", low=1, high=4))
    return Space(found)


def _of_texts(texts: Texts) -> list[Dimension]:
    found = [Dimension("ngrams", (1, 2)), Dimension("min_df", low=1, high=5)]
    if texts.titles is not None and any(texts.titles):
        found.append(Dimension("title_weight", low=0.5, high=4.0, log=True))
    if len(texts) >= _MANY_DOCUMENTS:
        found.append(Dimension("max_features", (50_000, 100_000, 200_000, 400_000)))
    return found


def _of_dense(config: Config) -> list[Dimension]:
    # Without a linear view they are all that there is.
    whether = [Dimension(_DENSE, ("always", "never"))] if config.linear.enabled else []
    return [
        *whether,
        Dimension("dense.dim", (64, 128, 192, 300)),
        Dimension("dense.epochs", low=3, high=16, log=True),
        Dimension("dense.learning_rate", low=0.004, high=0.04, log=True),
        Dimension("dense.dropout", low=0.0, high=0.6),
        Dimension("dense.shortlist_size", low=100, high=400, log=True),
    ]


def _has_names(data: Documents, config: Config, texts: TextOptions) -> bool:
    """Return whether labels have names that share words with the documents, as training finds out."""
    if not config.names.enabled or data.label_names is None:
        return False
    if data.vocabulary is not None:
        return True
    texts_or_none = data.train.texts
    words = frozenset(data.feature_names or ()) if texts_or_none is None else survey(texts_or_none).words
    return label_texts(data.label_names, words, None, texts.language) is not None


def _trains_dense(data: Documents, config: Config, named: bool) -> bool:
    n_features = config.dense.max_features + 1 if data.train.X is None else data.train.X.shape[1]
    return resolved(config, len(data.train), n_features, has_names=named).dense.enabled


def _work(data: Documents, config: Config) -> float:
    """Return about how many features a pass of the linear view over all documents reads, without trees."""
    X, texts = data.train.X, data.train.texts
    if X is not None:
        length = float(X.nnz / max(1, X.shape[0]))
    else:
        assert texts is not None
        some = [len(set(texts[i].split())) for i in range(0, len(texts), max(1, len(texts) // _SAMPLE))]
        length = sum(some) / max(1, len(some))
    n_labels: int = data.train.Y.shape[1]
    return n_labels / 16 * len(data.train) * (length + config.linear.document_work)


def read_space(path: Path) -> Space:
    """Read which settings to vary. Mistakes raise a `ValueError` that says what to change.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "space.json"
    ...     _ = path.write_text('{"ngrams": [1, 2], "linear.prior": {"low": 0.5, "high": 8, "log": true}}')
    ...     [one.name for one in read_space(path)]
    ['ngrams', 'linear.prior']
    """
    content = presets.read_json(path, "space", '{"ngrams": [1, 2], "linear.prior": {"low": 0.5, "high": 8}}')
    if not content:
        raise ValueError(f"{path} varies no setting: name at least one")
    try:
        space = Space(_dimension(name, value) for name, value in content.items())
        names = [one.name for one in space]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{repeated[0]} is there twice: keep one of them")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    # Whether dense views are trained decides about their other settings.
    return Space(sorted(space, key=lambda one: one.name not in _WHETHER))


def _dimension(name: str, value: Any) -> Dimension:
    full = name if name in TEXT_NAMES else full_name(name)
    if isinstance(value, list) and value:
        for one in value:
            if not isinstance(one, str | int | float | bool | None):
                raise ValueError(f"{name} has the value {one!r}: give text, numbers, true, false or null")
            _check(full, one)
        return Dimension(full, tuple(value))
    if not isinstance(value, dict) or set(value) - {"log"} != {"low", "high"}:
        raise ValueError(f'{name} is {value!r:.50}: give values, such as [1, 2], or a range: {{"low": 1, "high": 4}}')
    low, high, log = value["low"], value["high"], value.get("log", False)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (low, high))
    if not numbers or not isinstance(log, bool) or not low < high or (log and low <= 0):
        raise ValueError(f"{name} has no range from {low} to {high}: low must be below high, and above 0 with log")
    _check(full, low)
    _check(full, high)
    if isinstance(_values(Preset(), None)[full], int):
        return Dimension(full, low=int(low), high=int(high), log=log)
    return Dimension(full, low=float(low), high=float(high), log=log)


def _check(name: str, value: Any) -> None:
    if name in TEXT_NAMES:
        TextOptions(**{name: value})
    else:
        wrapped: Sequence[Any] = (value,) if isinstance(_values(Preset(), None)[name], tuple) else value
        changed(Config(), {name: wrapped})
