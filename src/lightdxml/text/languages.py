"""Words in their base form: lemmas of simplemma where it knows the language, else stems of Snowball.

Languages that bend words need it: in Finnish, a word has hundreds of forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock

_WORD = re.compile(r"[^\W\d_]{2,}")
# The names of Snowball's algorithms, for languages of which simplemma has no lemmas.
_SNOWBALL = {"eu": "basque", "ne": "nepali", "no": "norwegian", "ta": "tamil", "yi": "yiddish", "sr": "serbian"}
# Words that are remembered, each about 200 bytes.
_REMEMBERED = 1 << 20
_EXTRA = 'pip install "lightdxml[languages]"'


def base_forms(language: str, text: str) -> str:
    """Return a text in lower case with every word in its base form.

    >>> base_forms("en", "Two Cats")
    'two cat'
    """
    return _WORD.sub(lambda found: _base_form(language, found[0]), text.lower())


@lru_cache(maxsize=_REMEMBERED)
def _base_form(language: str, word: str) -> str:
    return _analyzer(language)(word).lower()


def check_language(language: str) -> None:
    """Raise a `ValueError` if there are no base forms of a language, or what computes them is not installed.

    >>> check_language("xx")
    Traceback (most recent call last):
    ValueError: there are no base forms of words for language 'xx': give a code such as en, de or fi
    """
    _analyzer(language)


@lru_cache(maxsize=8)
def _analyzer(language: str) -> Callable[[str], str]:
    try:
        import simplemma
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    except ImportError as error:
        raise ValueError(f"base forms of words need simplemma: {_EXTRA}") from error
    if language in SUPPORTED_LANGUAGES:
        return lambda word: str(simplemma.lemmatize(word, lang=language))
    if language not in _SNOWBALL:
        what = f"there are no base forms of words for language {language!r:.20}"
        raise ValueError(f"{what}: give a code such as en, de or fi")
    try:
        import snowballstemmer
    except ImportError as error:
        raise ValueError(f"base forms of words need snowballstemmer: {_EXTRA}") from error
    stemmer, lock = snowballstemmer.stemmer(_SNOWBALL[language]), Lock()

    def stem(word: str) -> str:
        # A stemmer holds the word that it works on.
        with lock:
            return str(stemmer.stemWord(word))

    return stem


def language_shares(text: str, languages: Sequence[str]) -> list[tuple[str | None, float]]:
    """Return the share of a text's words that are known in each language, the highest first; None for unknown words.

    >>> language_shares("the cat sleeps on the sofa", ["en", "fi"])[0]
    ('en', 1.0)
    """
    try:
        import simplemma
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    except ImportError as error:
        raise ImportError(f"detecting languages needs simplemma: {_EXTRA}") from error
    if unknown := [language for language in languages if language not in SUPPORTED_LANGUAGES]:
        raise ValueError(f"language {unknown[0]!r:.20} is not supported: give codes such as en, de or fi")
    found = simplemma.LanguageDetector(tuple(languages)).proportion_in_each_language(text)
    shares = [(None if language == "unk" else language, float(share)) for language, share in found.items()]
    return sorted(shares, key=lambda one: (-one[1], one[0] or "~"))
