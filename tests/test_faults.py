"""The fault trials in their short form; `python -m tests.faults` is the long one."""

from __future__ import annotations

import sys

import pytest

if sys.platform == "win32":
    pytest.skip("the trials use signals and limits that this system does not have", allow_module_level=True)

from tests.faults import trials


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> trials.Place:
    return trials.Place(tmp_path_factory.mktemp("faults"))


def test_a_killed_training_goes_on_to_the_same_model(place: trials.Place) -> None:
    outcome = trials.kills(place, 2)
    assert outcome.held == outcome.tried


def test_a_stopped_training_says_how_to_go_on(place: trials.Place) -> None:
    assert trials.signals(place).held == 2


def test_a_truncated_checkpoint_is_passed_over(place: trials.Place) -> None:
    assert trials.truncations(place, cuts=(0.5,)).held == 2


def test_a_full_disk_loses_nothing(place: trials.Place) -> None:
    assert trials.full_disk(place).held == 1


def test_a_full_scratch_folder_is_one_sentence(place: trials.Place) -> None:
    assert trials.full_scratch(place).held == 1


def test_scratch_of_a_killed_training_is_removed_by_the_next(place: trials.Place) -> None:
    assert trials.killed_scratch(place).held == 1


def test_a_model_that_is_being_replaced_is_whole_at_any_moment(place: trials.Place) -> None:
    assert trials.replaced(place, 2).held == 2


def test_a_second_training_in_the_same_folder_refuses(place: trials.Place) -> None:
    assert trials.second_training(place).held == 1
