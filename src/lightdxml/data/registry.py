"""The benchmark's data sets: their sizes, their propensity constants, and where they are fetched from."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import platformdirs

from lightdxml.data.errors import DataError

_PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
_DRIVE = "https://drive.google.com/uc"

# name, features, labels, train, test, points/label, labels/point, A, B, Drive ids of the bag of words and of
# the raw text, resource key of the former; a dash where there is none.
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
    """One data set of the Extreme Classification repository.

    Attributes
    ----------
    name
        What the repository calls it.
    n_features, n_labels, n_train, n_test
        V, L and the two N of the bag-of-words version.
    points_per_label, labels_per_point
        The averages that the repository states.
    A, B
        The constants of the propensity model.
    bow_id, raw_id
        Google Drive's ids of the bag of words and of the raw text; None where there is none.
    resource_key
        What Drive wants besides `bow_id` for its older files; None for the newer ones.

    Examples
    --------
    >>> entry = find("eurlex-4k")
    >>> entry.name, entry.n_labels, entry.A, entry.B
    ('EURLex-4K', 3993, 0.55, 1.5)
    """

    name: str
    n_features: int
    n_labels: int
    n_train: int
    n_test: int
    points_per_label: float
    labels_per_point: float
    A: float
    B: float
    bow_id: str | None
    raw_id: str | None
    resource_key: str | None

    @property
    def page(self) -> str:
        """The page from which a person can fetch the set by hand."""
        return _PAGE

    def url(self, raw: bool = False) -> str:
        """Return the address of the archive.

        Parameters
        ----------
        raw
            The raw text instead of the bag of words.

        Raises
        ------
        DataError
            The repository offers no such version of the set.

        Examples
        --------
        >>> find("Amazon-670K").url(raw=True)
        'https://drive.google.com/uc?export=download&id=16FIzX3TnlsqbrwSJJ2gDih69laezfZWR'
        """
        drive_id = self.raw_id if raw else self.bow_id
        if drive_id is None:
            kind, other = ("raw text", "bag of words") if raw else ("bag of words", "raw text")
            raise DataError(self.name, f"no {kind} in the repository", f"its {other} to be asked for")
        query = {"export": "download", "id": drive_id}
        if self.resource_key is not None and not raw:
            query["resourcekey"] = self.resource_key
        return f"{_DRIVE}?{urlencode(query)}"


def _entry(row: str) -> Entry:
    name, V, L, n_train, n_test, per_label, per_point, A, B, *drive = row.split()
    bow_id, raw_id, key = (None if cell == "-" else cell for cell in drive)
    counts = (int(V), int(L), int(n_train), int(n_test))
    return Entry(name, *counts, float(per_label), float(per_point), float(A), float(B), bow_id, raw_id, key)


_ENTRIES = tuple(_entry(row) for row in _TABLE.strip().splitlines())


def entries() -> tuple[Entry, ...]:
    """Return every data set of the registry, in the repository's order.

    Examples
    --------
    >>> [entry.name for entry in entries()][:3]
    ['Mediamill', 'Bibtex', 'Delicious']
    """
    return _ENTRIES


def find(name: str) -> Entry:
    """Return the data set of this name, upper and lower case being the same.

    Raises
    ------
    DataError
        There is none; the message lists those of a similar name.

    Examples
    --------
    >>> find("wiki10-31k").n_train
    14146
    >>> find("eurlex")
    Traceback (most recent call last):
    lightdxml.data.errors.DataError: eurlex: found no data set of this name, expected perhaps EURLex-4K or \
EURLex-4.3K (`lightdxml data list` shows all)
    """
    by_name = {entry.name.lower(): entry for entry in _ENTRIES}
    wanted = name.strip().lower()
    if wanted in by_name:
        return by_name[wanted]
    near = difflib.get_close_matches(wanted, list(by_name), n=4, cutoff=0.5)
    names = " or ".join(by_name[key].name for key in near)
    expected = f"perhaps {names}" if near else "one of the registry's"
    raise DataError(name, "no data set of this name", f"{expected} (`lightdxml data list` shows all)")


def propensity_constants(name: str) -> tuple[float, float]:
    """Return A and B of the propensity model, as the repository gives them for a data set of this name.

    >>> propensity_constants("AmazonTitles-670K"), propensity_constants("mine")
    ((0.6, 2.6), (0.55, 1.5))
    """
    return next(((entry.A, entry.B) for entry in _ENTRIES if entry.name.lower() == name.lower()), (0.55, 1.5))


def cache_folder() -> Path:
    """Return the folder that holds downloaded sets: `$LIGHTDXML_DATA`, or else the user's cache.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, LIGHTDXML_DATA="corpora"):
    ...     cache_folder().name
    'corpora'
    """
    chosen = os.environ.get("LIGHTDXML_DATA")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("lightdxml")
