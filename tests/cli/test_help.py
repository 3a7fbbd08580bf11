"""`--help`, and the page of all settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lightdxml.cli import application
from lightdxml.cli.settings import TEXT_SETTINGS, plain
from lightdxml.config import Config, configure, full_name, walk
from lightdxml.text.tfidf import TextOptions
from tests.support.commands import run
from tests.support.settings_page import page

COMMANDS = (
    "demo",
    "train",
    "tune",
    "predict",
    "explain",
    "evaluate",
    "weigh",
    "report",
    "info",
    "compress",
    "learn",
    "forget retire",
    "forget merge",
    "forget document",
    "history",
    "rollback",
    "push",
    "pull",
    "card",
    "bench",
    "vocabulary info",
    "vocabulary update",
)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def train_options() -> dict[str, Any]:
    command: Any = get_command(application())
    return {option.name: option for option in command.commands["train"].params}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(command: str) -> None:
    assert (
        f"Example: lightdxml {command}" in re.sub(r"\s+", " ", run(*command.split(), "--help")) or command == "predict"
    )
    assert "Example: " in run(*command.split(), "--help")


def test_the_help_of_train_lists_all_settings() -> None:
    shown = run("train", "--help")
    for name, _, value in walk():
        assert re.search(rf"{re.escape(name)}\s+{re.escape(plain(value))}\s", shown), name


def test_defaults_in_the_help_of_train_are_those_of_the_settings() -> None:
    settings = {name: plain(value) for name, _, value in walk()}
    small = {name: plain(value) for name, _, value in walk(configure("default", 10_000))}
    checked = 0
    for name, option in train_options().items():
        stated = re.search(r"Default: ([\w.]+?)(?:; ([\d.]+) below 20,000 documents)?\.$", option.help or "")
        if stated is None or name in ("n_jobs", "every", *TEXT_SETTINGS):
            continue
        full = full_name(name)
        assert (stated[1], stated[2] or stated[1]) == (settings[full], small[full]), name
        checked += 1
    assert checked == 12


def test_text_options_of_train_have_the_defaults_of_the_vectorizer() -> None:
    assert TextOptions().language == "", "its help names no default"
    for name in set(TEXT_SETTINGS) - {"language"}:
        stated = f"{getattr(TextOptions(), name):,}".removesuffix(".0")
        assert train_options()[name].help.endswith(f" Default: {stated}."), name


def test_the_page_of_settings_is_up_to_date() -> None:
    """If it is not: `python -m tests.support.settings_page > docs/reference/settings.md`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_values_on_the_page_can_be_set() -> None:
    changed = configure(settings={name: plain(value) for name, _, value in walk()})
    assert changed == Config()
