from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import platformdirs
import pytest

from lightdxml.data.errors import DataError
from lightdxml.data.registry import cache_folder, entries, find

NAMES = [
    "Mediamill",
    "Bibtex",
    "Delicious",
    "RCV1-2K",
    "EURLex-4K",
    "EURLex-4.3K",
    "AmazonCat-13K",
    "Wiki10-31K",
    "Delicious-200K",
    "WikiLSHTC-325K",
    "WikiSeeAlsoTitles-350K",
    "WikiTitles-500K",
    "AmazonTitles-670K",
    "Amazon-670K",
    "AmazonTitles-3M",
    "Amazon-3M",
    "LF-AmazonTitles-131K",
    "LF-Amazon-131K",
    "LF-WikiSeeAlsoTitles-320K",
    "LF-AmazonTitles-1.3M",
]


def test_every_set_of_the_repository_is_there_once_in_its_order() -> None:
    assert [entry.name for entry in entries()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_sensible(name: str) -> None:
    entry = find(name)
    assert min(entry.n_features, entry.n_labels, entry.n_train, entry.n_test) > 0
    assert entry.n_test < entry.n_train
    assert entry.n_labels < 3_000_000
    # Some rows average over train and test, some over train alone: the stated average lies between the two.
    least = entry.n_train * entry.labels_per_point / entry.n_labels
    most = (entry.n_train + entry.n_test) * entry.labels_per_point / entry.n_labels
    assert 0.9 * least < entry.points_per_label < 1.1 * most
    assert (entry.A, entry.B) in {(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)}
    # Drive's older ids are the ones that need a key.
    assert entry.bow_id is not None
    assert entry.bow_id.startswith("0B") == (entry.resource_key is not None)


def test_numbers_are_the_repositorys() -> None:
    eurlex = find("EURLex-4K")
    assert (eurlex.n_features, eurlex.n_labels, eurlex.n_train, eurlex.n_test) == (5000, 3993, 15539, 3809)
    assert (eurlex.points_per_label, eurlex.labels_per_point) == (25.73, 5.31)
    big = find("AmazonTitles-3M")
    assert (big.n_features, big.n_labels, big.n_train, big.n_test) == (165431, 2812281, 1712536, 739665)
    assert (big.points_per_label, big.labels_per_point) == (31.55, 36.18)
    features = find("LF-AmazonTitles-1.3M")
    assert (features.n_features, features.n_labels) == (128000, 1305265)
    assert (features.n_train, features.n_test) == (2248619, 970237)
    wiki = find("Wiki10-31K")
    assert (wiki.n_features, wiki.n_labels, wiki.n_train, wiki.n_test) == (101938, 30938, 14146, 6616)
    assert wiki.raw_id is None


@pytest.mark.parametrize(
    ("constants", "names"),
    [
        ((0.5, 0.4), {"WikiLSHTC-325K", "WikiTitles-500K"}),
        (
            (0.6, 2.6),
            {
                "AmazonTitles-670K",
                "Amazon-670K",
                "AmazonTitles-3M",
                "Amazon-3M",
                "LF-AmazonTitles-131K",
                "LF-Amazon-131K",
                "LF-AmazonTitles-1.3M",
            },
        ),
    ],
)
def test_propensity_constants_are_those_of_the_sets_family(constants: tuple[float, float], names: set[str]) -> None:
    found = {entry.name for entry in entries() if constants == (entry.A, entry.B)}
    assert found == names


@pytest.mark.parametrize("name", ["EURLex-4K", "eurlex-4k", "EURLEX-4K", " EurLex-4K "])
def test_find_does_not_mind_upper_and_lower_case(name: str) -> None:
    assert find(name).name == "EURLex-4K"


def test_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(DataError, match=r"EURLex-4K.*`lightdxml data list` shows all"):
        find("EURLex4K")
    with pytest.raises(ValueError, match=r"LF-Amazon-131K"):
        find("lf-amazon-131")


def test_name_without_near_ones_points_to_the_list() -> None:
    with pytest.raises(DataError, match=r"^zzzz: found no data set .*`lightdxml data list` shows all"):
        find("zzzz")


def test_addresses_carry_id_and_resource_key() -> None:
    address = urlsplit(find("Bibtex").url())
    assert (address.scheme, address.hostname) == ("https", "drive.google.com")
    assert parse_qs(address.query) == {
        "export": ["download"],
        "id": ["0B3lPMIHmG6vGcy1xM2pJZ09MMGM"],
        "resourcekey": ["0-UzogKsb6v7pz2Vf_1uooFA"],
    }
    assert "resourcekey" not in find("Amazon-3M").url()
    assert find("Amazon-3M").url(raw=True).endswith("id=1gsabsx8KR2N9jJz16jTcA0QASXsNuKnN")


def test_raw_text_that_does_not_exist_is_said_so() -> None:
    with pytest.raises(DataError, match=r"Bibtex: found no raw text in the repository"):
        find("bibtex").url(raw=True)


def test_page_is_one_that_a_person_can_open() -> None:
    assert {entry.page for entry in entries()} == {"http://manikvarma.org/downloads/XC/XMLRepository.html"}


def test_environment_variable_moves_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path / "sets"))
    assert cache_folder() == tmp_path / "sets"
    monkeypatch.setenv("LIGHTDXML_DATA", str(Path("~") / "sets"))
    assert cache_folder() == Path.home() / "sets"


@pytest.mark.parametrize("value", [None, ""])
def test_cache_is_the_users_without_the_variable(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("LIGHTDXML_DATA", raising=False)
    else:
        monkeypatch.setenv("LIGHTDXML_DATA", value)
    assert cache_folder() == platformdirs.user_cache_path("lightdxml")
