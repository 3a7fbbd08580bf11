"""The data sets of the Extreme Classification repository: sizes, propensity constants and download addresses."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import platformdirs

from lightdxml.data.errors import DataError

PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
_DRIVE = "https://drive.google.com/uc"

# Name, features, labels, training documents, test documents, points per label, labels per point, A, B, then Google
# Drive's ids of the bag of words and of the raw text, and the resource key of the first; - for none.
_TABLE = """
Mediamill                     120     101   30993  12914 1902.15  4.38 .55 1.5 0B3lPMIHmG6vGY3B4TXRmZnZBTkk      -                                 0-Hv7nA6NTsIJshWk2gJwTYw
Bibtex                       1836     159    4880   2515  111.71  2.40 .55 1.5 0B3lPMIHmG6vGcy1xM2pJZ09MMGM      -                                 0-UzogKsb6v7pz2Vf_1uooFA
Delicious                     500     983   12920   3185  311.61 19.03 .55 1.5 0B3lPMIHmG6vGdG1jZ19VS2NWRVU      -                                 0-viF3jLCBFuBSDjdlKL_32g
RCV1-2K                     47236    2456  623847 155962 1218.56  4.79 .55 1.5 0B3lPMIHmG6vGdnEzRWZWQWJMRnc      -                                 0-dmBYwZpWZck3oL0DGKMdwg
EURLex-4K                    5000    3993   15539   3809   25.73  5.31 .55 1.5 0B3lPMIHmG6vGU0VTR1pCejFpWjg      -                                 0-SurjZ4z_5Tr38jENzf2Iwg
EURLex-4.3K                200000    4271   45000   6000   60.57  5.07 .55 1.5 1b3mWgaKIAmc9Ae3E0QrokiIFA9Qj1K9r -                                 -
AmazonCat-13K              203882   13330 1186239 306782  448.57  5.04 .55 1.5 11bI2oHQlK9wnvYdFN9IILd8ilHDqe-j1 17rVRDarPwlMpb3l5zof9h34FlwbpTu4l -
Wiki10-31K                 101938   30938   14146   6616    8.52 18.64 .55 1.5 1-sE0GoT-eE18S9e-B8nQr8j7LdYexGHX -                                 -
Delicious-200K             782585  205443  196606 100095   72.29 75.54 .55 1.5 0B3lPMIHmG6vGR3lBWWYyVlhDLWM      -                                 0-ghyb4ko9PlDHlEVBb-_9IA
WikiLSHTC-325K            1617899  325056 1778351 587084   17.46  3.19  .5  .4 0B3lPMIHmG6vGSHE1SWx4TVRva3c      -                                 0-ZGNqdLuqttRdnAj-U0bktA
WikiSeeAlsoTitles-350K      91414  352072  629418 162491    5.24  2.33 .55 1.5 1bHtiLVF5EFsVL3qyU7y5e3M-fYHvXsG9 1sxPHzlnotUKjbtVRe0GuXGfSI7YhBSdc -
WikiTitles-500K            185479  501070 1699722 722678   23.62  4.89  .5  .4 11U4qDWKvsR6pCzLvY3APckx-R_ihyMih -                                 -
AmazonTitles-670K           66666  670091  485176 150875    5.11  5.39  .6 2.6 1OKnaLu4SDMOQ69rHdwF8ExKkeF2SZw7z 1FPqD8Wns7NXTSYDAcK4ZsqUUGABLyZMn -
Amazon-670K                135909  670091  490449 153025    3.99  5.45  .6 2.6 1TLaXCNB_IDtLhk4ycOnyud0PswWAW6hR 16FIzX3TnlsqbrwSJJ2gDih69laezfZWR -
AmazonTitles-3M            165431 2812281 1712536 739665   31.55 36.18  .6 2.6 1DD9cL85SN9EZd-CmOdXv0lPO1Yhl7Fns 1YHhQEYUXBxpdfP0Dcab5JL79SyVuzmW1 -
Amazon-3M                  337067 2812281 1717899 742507   31.64 36.17  .6 2.6 1X9CzbgyB-x1dFbPSWUpkbKvKG9TrAU0y 1gsabsx8KR2N9jJz16jTcA0QASXsNuKnN -
LF-AmazonTitles-131K        40000  131073  294805 134835    5.15  2.29  .6 2.6 1VlfcdJKJA99223fLEawRmrXhXpwjwJKn 1WuquxCAg8D4lKr-eZXPv4nNw2S2lm7_E -
LF-Amazon-131K              80000  131073  294805 134835    5.15  2.29  .6 2.6 1YNGEifTHu4qWBmCaLEBfjx07qRqw9DVW 1WuquxCAg8D4lKr-eZXPv4nNw2S2lm7_E -
LF-WikiSeeAlsoTitles-320K   40000  312330  693082 177515    4.67  2.11 .55 1.5 1edWtizAFBbUzxo9Z2wipGSEA9bfy5mdX 1QZD4dFVxDpskCI2kGH9IbzgQR1JSZT-N -
LF-AmazonTitles-1.3M       128000 1305265 2248619 970237   38.24 22.20  .6 2.6 1Davc6BIfoTIAS3mP1mUY5EGcGr2zN2pO 12zH4mL2RX8iSvH0VCNnd3QxO4DzuHWnK -
"""  # noqa: E501


@dataclass(frozen=True)
class Entry:
    """A data set of the Extreme Classification repository."""

    name: str
    n_features: int  # of the bag of words
    n_labels: int
    n_train: int
    n_test: int
    points_per_label: float  # as the repository states them
    labels_per_point: float
    A: float  # the constants of the propensity model
    B: float
    bow_id: str  # Google Drive's id of the bag of words
    raw_id: str | None  # Google Drive's id of the raw text; None if there is none
    resource_key: str | None  # required with `bow_id` for Drive's older files

    def url(self, raw: bool = False) -> str:
        """Return the address of the archive with the bag of words, or of the one with the raw text."""
        drive_id = self.raw_id if raw else self.bow_id
        if drive_id is None:
            raise DataError(self.name, "no raw text in the repository", "a request for its bag of words")
        query = {"export": "download", "id": drive_id}
        if self.resource_key is not None and not raw:
            query["resourcekey"] = self.resource_key
        return f"{_DRIVE}?{urlencode(query)}"


def _entry(row: str) -> Entry:
    name, V, L, n_train, n_test, per_label, per_point, A, B, bow_id, *drive = row.split()
    raw_id, key = (None if cell == "-" else cell for cell in drive)
    counts = (int(V), int(L), int(n_train), int(n_test))
    return Entry(name, *counts, float(per_label), float(per_point), float(A), float(B), bow_id, raw_id, key)


_ENTRIES = {entry.name.lower(): entry for entry in map(_entry, _TABLE.strip().splitlines())}


def entries() -> list[Entry]:
    """Return all data sets of the registry, in the order of the repository."""
    return list(_ENTRIES.values())


def find(name: str, other_names: Iterable[str] = ()) -> Entry:
    """Return the data set with this name, ignoring case.

    If there is none, the error suggests similar names of the registry and of `other_names`.

    >>> find("wiki10-31k").n_train
    14146
    >>> find("eurlex")
    Traceback (most recent call last):
    lightdxml.data.errors.DataError: eurlex: found no file or data set with this name, expected perhaps EURLex-4K or \
EURLex-4.3K (lightdxml data list shows all names)
    """
    wanted = name.strip().lower()
    if wanted in _ENTRIES:
        return _ENTRIES[wanted]
    near = difflib.get_close_matches(wanted, [*_ENTRIES, *other_names], n=4, cutoff=0.5)
    similar = " or ".join(_ENTRIES[key].name if key in _ENTRIES else key for key in near)
    expected = f"perhaps {similar}" if near else "a path or a known name"
    raise DataError(name, "no file or data set with this name", f"{expected} (lightdxml data list shows all names)")


def propensity_constants(name: str) -> tuple[float, float]:
    """Return A and B of the propensity model for a data set of the repository, and the defaults for any other.

    >>> propensity_constants("AmazonTitles-670K"), propensity_constants("mine")
    ((0.6, 2.6), (0.55, 1.5))
    """
    entry = _ENTRIES.get(name.lower())
    return (0.55, 1.5) if entry is None else (entry.A, entry.B)


def cache_folder() -> Path:
    """Return the folder of downloaded data sets: `$LIGHTDXML_DATA`, or the user's cache folder."""
    chosen = os.environ.get("LIGHTDXML_DATA")
    try:
        return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("lightdxml")
    except RuntimeError as error:
        raise ValueError(f"there is no folder for data sets ({error}): set LIGHTDXML_DATA to one") from error
