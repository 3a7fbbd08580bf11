"""Published results."""

from __future__ import annotations

import pytest

from lightdxml.experiments.bench.published import rows

PAPER = "LightDXML paper"
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
OTHERS = ("RP@5", "nDCG@5")
SOURCES = (
    PAPER,
    "XC repository, 2024-08",
    "XC, copied from the publication",
    "README of craftml-rs",
    "Chalkidis et al. 2019, Large-Scale Multi-Label Text Classification on EU Legislation",
)


def test_the_papers_eurlex_row_is_as_printed() -> None:
    (row,) = (row for row in rows("EURLex-4K") if row.method == "LightDXML")
    assert row.values == {
        "P@1": 82.38, "P@3": 67.94, "P@5": 56.18, "PSP@1": 38.51, "PSP@3": 44.57, "PSP@5": 47.39,
        "train_seconds": 75.0, "size_mb": 23.2, "batch_ms": 0.42,
        "phases.M1": 21.6, "phases.M2": 7.7, "phases.M3+M4": 45.0, "phases.re-ranker": 0.0,
    }  # fmt: skip
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
        names = {name for name in row.values if not name.startswith("phases.")}
        assert names <= {*METRICS, *OTHERS, "train_seconds", "size_mb", "batch_ms"}
        metrics = [row.values[name] for name in (*METRICS, *OTHERS) if name in row.values]
        assert metrics
        assert all(0 < value < 100 for value in metrics)
        precision = [row.values[name] for name in METRICS[:3] if name in row.values]
        assert precision == sorted(precision, reverse=True)
        assert row.source in SOURCES
        assert row.source == PAPER or row.hardware is None


def test_no_row_is_listed_twice() -> None:
    keys = [(row.data, row.method, row.source) for row in rows()]
    assert len(set(keys)) == len(keys)


def test_units_are_seconds_and_megabytes() -> None:
    (astec,) = (row for row in rows("AmazonTitles-670K") if row.method == "Astec" and row.source != PAPER)
    assert (astec.values["train_seconds"], astec.values["size_mb"]) == (3.9 * 3600, 10_900.0)


def test_unpublished_values_are_missing() -> None:
    (annexml,) = (row for row in rows("Wiki10-31K") if row.method == "AnnexML")
    assert "batch_ms" not in annexml.values
    (light,) = (row for row in rows("AmazonCat-13K") if row.method == "LightXML")
    assert "PSP@1" not in light.values


def test_cautions_are_attached_to_their_rows() -> None:
    (bonsai,) = (row for row in rows("AmazonCat-13K") if row.method == "Bonsai")
    assert bonsai.values["train_seconds"] == 75.6
    assert any("1.26 h" in note for note in bonsai.notes)
    shifted = {row.method for row in rows("EURLex-4K") if any("shifted" in note for note in row.notes)}
    assert shifted == {"AnnexML", "SLEEC", "PfastreXML", "FastXML"}


def test_rows_with_permuted_names_say_so() -> None:
    permuted = {row.method for row in rows() if any("permuted" in note for note in row.notes)}
    assert permuted == {"FastXML", "PfastreXML", "SLEEC"}


def test_berts_row_of_eurlex57k_is_as_published() -> None:
    (bert,) = rows("eurlex57k")
    assert bert.values == {"P@5": 68.7, "RP@5": 79.6, "nDCG@5": 82.3}


def test_rows_that_the_paper_copied_have_no_hardware() -> None:
    (parabel,) = (row for row in rows("AmazonTitles-670K") if row.method == "Parabel")
    assert parabel.hardware is None
    assert parabel.notes == ["the paper took this row from the XC repository"]


def test_punctuation_in_names_of_data_sets_does_not_matter() -> None:
    assert rows("wiki10_31k") == rows("Wiki10-31K") != []
    assert rows("eurlex57k") == rows("EURLEX57K") != rows("EURLex-4K")
    assert rows("Delicious") != [] == rows("Delicious-200K")


def test_module_seconds_are_the_papers() -> None:
    found = {
        (row.data, row.method): [value for name, value in row.values.items() if name.startswith("phases.")]
        for row in rows()
        if "phases.M1" in row.values
    }
    assert len(found) == 6
    assert found["EURLex-4K", "Astec"] == [67.6, 4.1, 43.0, 24.0]
    assert found["WikiSeeAlsoTitles-350K", "LightDXML"] == [303.0, 136.0, 963.0, 0.0]
