"""Settings: ranges, names, presets, and how they are parsed and stored."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pytest

from lightdxml.config import PRESETS, SHORT_NAMES, Config, changed, configure, from_json, full_name, walk
from lightdxml.settings import check, expected, parse, setting


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shortlist_size": "many"}, "shortlist_size is 'many': it must be an integer of at least 1 and at most"),
        ({"dense.dropout": 1.5}, "dense.dropout is 1.5: it must be a number of at least 0 and at most 0.99"),
        ({"beta": -0.1}, "beta is -0.1: it must be a number of at least 0 and at most 1, or none"),
        ({"index": "magic"}, "index is 'magic': it must be one of auto, exact, rabitq"),
        ({"dim": True}, "dim is True: it must be an integer"),
        ({"dim": 16.0}, "dim is 16.0: it must be an integer"),
        ({"dim": None}, "dim is None: it must be an integer"),
        ({"learning_rate": float("nan")}, "learning_rate is nan: it must be a number above 0"),
        ({"learning_rate": "inf"}, "learning_rate is inf"),
        ({"dense.relu": 1}, "dense.relu is 1: it must be true or false"),
        ({"linear": "maybe"}, "linear is 'maybe': it must be true or false"),
        ({"linear.costs": 3}, "linear.costs is 3: it must be a list of numbers"),
        ({"linear.costs": ()}, "linear.costs is (): it must be numbers above 0"),
        ({"linear.costs": (0.5, 0.0)}, "linear.costs is (0.5, 0.0): it must be numbers above 0"),
        ({"tree.branching": 3}, "tree.branching is 3: it must be a power of 2"),
        ({"random_state": 2**64}, "random_state is 18446744073709551616"),
        ({"validation_fraction": 0.6}, "validation_fraction is 0.6: it must be a number of at least 0 and at most 0.5"),
        ({"precision": "float64"}, "precision is 'float64': it must be one of float16, float32"),
        ({"nonsense": 1}, "there is no setting 'nonsense'"),
        ({"epoch": 1}, "there is no setting 'epoch': did you mean epochs?"),
        ({"dense.epoch": 1}, "did you mean dense.epochs?"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_in_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^([\w.]+ is|there is no)") as refused:
        configure(settings=settings)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_setting_has_a_description_and_a_valid_default() -> None:
    for name, one, value in walk():
        assert one.metadata["about"].endswith("."), name
        assert expected(one), name
        if not isinstance(value, tuple):
            assert parse(one, str(value).lower() if isinstance(value, bool) else str(value)) == value, name


def test_values_of_the_command_line_and_of_numpy_are_parsed() -> None:
    text = {"epochs": "8", "learning_rate": "1e-2", "linear": "False", "beta": "none", "index": "exact"}
    text |= {"linear.costs": "0.5,2"}
    config = configure(settings=text | {"dim": np.int64(16), "dense.dropout": np.float32(0.5)})
    assert (config.dense.epochs, config.dense.learning_rate, config.linear.enabled) == (8, 0.01, False)
    assert (config.blend.beta, config.dense.index, config.dense.dim) == (None, "exact", 16)
    assert config.linear.costs == (0.5, 2.0)
    assert isinstance(config.dense.dim, int)
    assert isinstance(config.dense.dropout, float)


def test_short_names_are_those_of_settings_that_exist() -> None:
    known = {name for name, _, _ in walk()}
    assert set(SHORT_NAMES.values()) <= known
    for short, full in SHORT_NAMES.items():
        assert full_name(short) == full_name(full) == full


def test_presets_have_the_values_of_the_papers_table() -> None:
    table = {
        "EURLex-4K": (0.75, 500, 0.006, 16, 8, 8),
        "AmazonCat-13K": (1.0, 500, 0.007, 21, 4, 4),
        "Wiki10-31K": (0.60, 600, 0.009, 21, 8, 6),
        "WikiSeeAlsoTitles-350K": (0.1, 500, 0.008, 21, 6, 7),
        "AmazonTitles-670K": (1.0, 650, 0.007, 21, 6, 9),
    }
    for name, row in table.items():
        config = PRESETS[f"paper/{name}"]
        dense = config.dense
        epochs = dense.epochs, dense.label_epochs, dense.refresh_every
        assert (config.blend.beta, dense.shortlist_size, dense.learning_rate, *epochs) == row
        assert dense.dim == 300
        assert not config.linear.enabled
        assert not config.tree.enabled


def test_the_default_preset_depends_on_the_number_of_documents() -> None:
    small, large = configure("default", 1000), configure("default", 100_000)
    assert small.dense.batch_size < large.dense.batch_size
    assert large == Config() == configure()
    paper = "paper/EURLex-4K"
    assert configure(paper, 1000) == configure(paper, 100_000)
    assert configure("default", 1000, {"dense.batch_size": 7}).dense.batch_size == 7


def test_a_configuration_survives_json() -> None:
    config = configure("paper/Wiki10-31K", settings={"linear.costs": (0.5, 2.0), "random_state": 2**31})
    assert from_json(json.loads(json.dumps(asdict(config)))) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["dense"].update(mine=1), "dense.mine"),
        (lambda content: content.update(mine=1), "mine"),
        (lambda content: content["tree"].update(branching=0), "branching is 0"),
        (lambda content: content.update(dense=5), "settings that this version does not know: dense"),
    ],
)
def test_stored_settings_of_another_form_are_refused(change: Any, message: str) -> None:
    content = asdict(Config())
    change(content)
    with pytest.raises(ValueError, match=message):
        from_json(content)
    with pytest.raises(ValueError, match="its settings have another form"):
        from_json([content])


def test_stored_settings_that_are_missing_get_their_defaults() -> None:
    content = asdict(configure("default", settings={"epochs": 9}))
    del content["dense"]["dim"], content["refit"]
    assert from_json(content) == configure("default", settings={"epochs": 9})


def test_changing_a_configuration_leaves_it_as_it_was() -> None:
    config = Config()
    other = changed(config, {"epochs": 8, "dense.dropout": 0.5, "random_state": 3})
    assert (other.dense.epochs, other.dense.dropout, other.random_state) == (8, 0.5, 3)
    assert config == Config()


def test_options_of_a_new_view_are_described_by_the_same_fields() -> None:
    @dataclass(frozen=True)
    class Options:
        depth: int = setting(3, "Depth.", low=1)
        names: str = setting("none", "Names.")

        def __post_init__(self) -> None:
            check(self)

    assert Options(depth=2).depth == 2
    with pytest.raises(ValueError, match="depth is 0: it must be an integer of at least 1"):
        Options(depth=0)
    assert [expected(one) for one in fields(Options)] == ["an integer of at least 1", "text"]
