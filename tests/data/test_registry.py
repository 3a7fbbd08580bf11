"""The registry: plausible numbers, lookup by name, addresses, and the cache folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import platformdirs
import pytest

from lightdxml.data.errors import DataError
from lightdxml.data.registry import Entry, cache_folder, entries, find, propensity_constants


def test_all_data_sets_of_the_repository_are_there_once() -> None:
    names = [entry.name for entry in entries()]
    assert len(set(names)) == len(names) == 20
    assert (names[0], names[-1]) == ("Mediamill", "LF-AmazonTitles-1.3M")


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_numbers_are_plausible(entry: Entry) -> None:
    assert min(entry.n_features, entry.n_labels, entry.n_train, entry.n_test) > 0
    assert entry.n_test < entry.n_train
    assert entry.n_labels < 3_000_000
    # Some averages are over train and test, some over train only: the stated average lies between the two.
    least = entry.n_train * entry.labels_per_point / entry.n_labels
    most = (entry.n_train + entry.n_test) * entry.labels_per_point / entry.n_labels
    assert 0.9 * least < entry.points_per_label < 1.1 * most
    # The older ids of Google Drive require a key.
    assert entry.bow_id.startswith("0B") == (entry.resource_key is not None)


def test_columns_are_in_the_order_of_the_fields() -> None:
    eurlex = find("EURLex-4K")
    assert (eurlex.n_features, eurlex.n_labels, eurlex.n_train, eurlex.n_test) == (5000, 3993, 15539, 3809)
    assert (eurlex.points_per_label, eurlex.labels_per_point, eurlex.A, eurlex.B) == (25.73, 5.31, 0.55, 1.5)
    assert eurlex.raw_id is None


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_propensity_constants_depend_on_the_family_of_the_data_set(entry: Entry) -> None:
    expected = (0.55, 1.5)
    if entry.name in ("WikiLSHTC-325K", "WikiTitles-500K"):
        expected = (0.5, 0.4)
    elif "Amazon" in entry.name and entry.name != "AmazonCat-13K":
        expected = (0.6, 2.6)
    assert (entry.A, entry.B) == propensity_constants(entry.name.upper()) == expected


@pytest.mark.parametrize("name", ["EURLex-4K", "eurlex-4k", "EURLEX-4K", " EurLex-4K "])
def test_find_ignores_case(name: str) -> None:
    assert find(name).name == "EURLex-4K"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EURLex4K", r"perhaps EURLex-4K.*lightdxml data list shows all"),
        ("lf-amazon-131", r"LF-Amazon-131K"),
        ("zzzz", r"^zzzz: found no file or data set .*lightdxml data list shows all"),
    ],
)
def test_unknown_name_is_rejected_with_similar_names(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find(name)


def test_address_has_id_and_resource_key() -> None:
    address = urlsplit(find("Bibtex").url())
    assert (address.scheme, address.hostname) == ("https", "drive.google.com")
    assert parse_qs(address.query) == {
        "export": ["download"],
        "id": ["0B3lPMIHmG6vGcy1xM2pJZ09MMGM"],
        "resourcekey": ["0-UzogKsb6v7pz2Vf_1uooFA"],
    }
    assert "resourcekey" not in find("Amazon-3M").url()
    assert find("Amazon-3M").url(raw=True).endswith("id=1gsabsx8KR2N9jJz16jTcA0QASXsNuKnN")


def test_missing_raw_text_is_rejected() -> None:
    with pytest.raises(DataError, match=r"Bibtex: found no raw text in the repository"):
        find("bibtex").url(raw=True)


def test_environment_variable_sets_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path / "sets"))
    assert cache_folder() == tmp_path / "sets"
    monkeypatch.setenv("LIGHTDXML_DATA", str(Path("~") / "sets"))
    assert cache_folder() == Path.home() / "sets"
    monkeypatch.setenv("LIGHTDXML_DATA", "")
    assert cache_folder() == platformdirs.user_cache_path("lightdxml")
    monkeypatch.delenv("LIGHTDXML_DATA")
    assert cache_folder() == platformdirs.user_cache_path("lightdxml")
