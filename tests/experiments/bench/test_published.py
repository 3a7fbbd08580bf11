"""Published results."""

from __future__ import annotations

import pytest

from lightdxml.experiments.bench.published import module_times, rows, same_name

PAPER = "LightDXML paper"


def test_the_papers_eurlex_row_is_as_printed() -> None:
    (row,) = (row for row in rows("EURLex-4K") if row.method == "LightDXML")
    assert row.P == (82.38, 67.94, 56.18)
    assert row.PSP == (38.51, 44.57, 47.39)
    assert (row.train_seconds, row.size_mb, row.query_ms) == (75.0, 23.2, 0.42)
    assert (row.kind, row.source, row.hardware) == ("DL", PAPER, "2 RTX 2080 Ti, 20 cores")


@pytest.mark.parametrize(
    ("data", "methods"),
    [
        ("EURLex-4K", "AnnexML SLEEC PfastreXML FastXML Bonsai Astec LightDXML"),
        ("AmazonCat-13K", "AnnexML SLEEC PfastreXML FastXML Bonsai Astec LightDXML"),
        ("Wiki10-31K", "AnnexML SLEEC PfastreXML FastXML Bonsai Astec LightDXML"),
        ("WikiSeeAlsoTitles-350K", "AnnexML PfastreXML FastXML Bonsai Parabel Astec LightDXML"),
        ("AmazonTitles-670K", "AnnexML PfastreXML FastXML Bonsai Parabel Astec LightDXML"),
    ],
)
def test_all_methods_of_the_papers_table_are_listed(data: str, methods: str) -> None:
    assert [row.method for row in rows(data) if row.source == PAPER] == methods.split()


def test_every_row_is_plausible() -> None:
    for row in rows():
        for measures in (row.P, row.PSP):
            assert len(measures) == 3
            assert all(value is None or 0 < value < 100 for value in measures)
        assert any(value is not None for value in (*row.P, *row.PSP))
        known = [value for value in row.P if value is not None]
        assert known == sorted(known, reverse=True)
        assert row.source in (PAPER, "XC repository, 2024-08", "XC, copied from the publication")
        assert row.source == PAPER or row.hardware is None


def test_no_row_is_listed_twice() -> None:
    keys = [(row.data, row.method, row.source) for row in rows()]
    assert len(set(keys)) == len(keys)


def test_units_are_seconds_and_megabytes() -> None:
    (astec,) = (row for row in rows("AmazonTitles-670K") if row.method == "Astec" and row.source != PAPER)
    assert (astec.train_seconds, astec.size_mb) == (3.9 * 3600, 10_900.0)


def test_unpublished_values_are_none() -> None:
    (annexml,) = (row for row in rows("Wiki10-31K") if row.method == "AnnexML")
    assert annexml.query_ms is None
    (light,) = (row for row in rows("AmazonCat-13K") if row.method == "LightXML")
    assert light.PSP == (None, None, None)


def test_cautions_are_attached_to_their_rows() -> None:
    (bonsai,) = (row for row in rows("AmazonCat-13K") if row.method == "Bonsai")
    assert bonsai.train_seconds == 75.6
    assert any("1.26 h" in note for note in bonsai.notes)
    shifted = {row.method for row in rows("EURLex-4K") if any("shifted" in note for note in row.notes)}
    assert shifted == {"AnnexML", "SLEEC", "PfastreXML", "FastXML"}


def test_rows_that_the_paper_copied_have_no_hardware() -> None:
    (parabel,) = (row for row in rows("AmazonTitles-670K") if row.method == "Parabel")
    assert parabel.hardware is None
    assert parabel.notes == ("the paper took this row from the XC repository",)


def test_published_values_have_the_names_of_measured_ones() -> None:
    (row,) = (row for row in rows("EURLex-4K") if row.method == "LightDXML")
    names = ("P@1", "PSP@5", "train_seconds", "size_mb", "batch_ms", "single_ms.p50", "nDCG@1", "P@2")
    assert [row.value(name) for name in names] == [82.38, 47.39, 75.0, 23.2, 0.42, None, None, None]


def test_punctuation_in_names_of_data_sets_does_not_matter() -> None:
    assert rows("wiki10_31k") == rows("Wiki10-31K") != []
    assert rows("eurlex57k") == []
    assert not same_name("Delicious", "Delicious-200K")


def test_module_times_are_the_papers() -> None:
    found = {(times.data, times.method): tuple(times.seconds.values()) for times in module_times()}
    assert len(found) == 6
    assert found["EURLex-4K", "Astec"] == (67.6, 4.1, 43.0, 24.0)
    assert found["WikiSeeAlsoTitles-350K", "LightDXML"] == (303.0, 136.0, 963.0, 0.0)
