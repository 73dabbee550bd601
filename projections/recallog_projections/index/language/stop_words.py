"""Function words by language, and the language of a text in Latin letters.

`stop_words/<language>.txt` has the function words of one language, question words included, separated by white space.
`english_lookalikes.txt` has those of other languages that English texts have too: two of them are evidence.
`letters.txt` has letters, each with the languages that it is evidence of.
The language of a text is the one that has most of them. That is enough for sentences; a text of a few content words
counts as English.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from recallog_projections.index.language.words import fold, without_accents

ENGLISH: Final = "en"
VIETNAMESE: Final = "vi"
LATIN_LANGUAGES: Final = (
    "de", "fr", "es", "pt", "it", "nl", "sv", "da", "no", "fi", "pl", "cs", "ro", "hu", "tr", "id", "vi",
)  # fmt: skip
"""The languages in Latin letters besides English. If two have the same evidence, the first one counts."""
_TYPED_WITHOUT_ACCENTS = frozenset({"es", "fr", "pt", "it", "ro", "pl", "cs", "tr"})
_OTHER_ALPHABETS = ("ru", "el", "hy", "ar", "fa", "he", "hi", "bn", "ta")
_UNSPACED = ("zh", "ja", "th")

_FOLDER = Path(__file__).with_name("stop_words")

_SURE = 2
"""The evidence of a word or letter that English texts do not have. That of any other is 1."""


@lru_cache(maxsize=64)
def stop_words(language: str) -> frozenset[str]:
    """The function words of a language, folded; those of some languages also without accents, as many people type."""
    folded = {fold(word) for word in (_FOLDER / f"{language}.txt").read_text("utf-8").split()}
    if language in _TYPED_WITHOUT_ACCENTS:
        folded |= {without_accents(word) for word in folded}
    return frozenset(folded)


@lru_cache(maxsize=1)
def of_other_alphabets() -> frozenset[str]:
    """The function words of the languages in other alphabets, together: few words of one occur in another one."""
    return frozenset().union(*map(stop_words, _OTHER_ALPHABETS))


def language_of(words: Collection[str], text: str) -> str:
    """The language of the Latin `words` of a text, folded: one of `LATIN_LANGUAGES`, or `ENGLISH` without evidence."""
    if text.isascii() and _markers().keys().isdisjoint(words):
        return ENGLISH
    distinct = set(words)
    evidence: Counter[str] = Counter()
    for word in _markers().keys() & distinct:
        evidence.update(_markers()[word])
    if not text.isascii():
        letters = _letters()
        for letter in letters.keys() & set(text.casefold()):
            evidence.update(dict.fromkeys(letters[letter], _SURE))
    language = max(LATIN_LANGUAGES, key=evidence.__getitem__)  # the first of equal ones
    if evidence[language] < _SURE:
        return ENGLISH
    english = (stop_words(ENGLISH) - stop_words(language)) & distinct
    return language if evidence[language] > _SURE * len(english) else ENGLISH


@lru_cache(maxsize=1)
def _letters() -> Mapping[str, Sequence[str]]:
    """Letters and signs that are evidence of languages."""
    lines = (line.split() for line in _FOLDER.with_name("letters.txt").read_text("utf-8").splitlines())
    return {letter: languages for letter, *languages in lines}


@lru_cache(maxsize=1)
def _markers() -> Mapping[str, Mapping[str, int]]:
    """Function words that are evidence: the amount of evidence by language, for each."""
    found: dict[str, dict[str, int]] = {}
    lookalikes = stop_words("english_lookalikes")
    for language in LATIN_LANGUAGES:
        for word in stop_words(language) - stop_words(ENGLISH):
            found.setdefault(word, {})[language] = 1 if len(word) == 1 or word in lookalikes else _SURE
    return found


@lru_cache(maxsize=1)
def single_characters() -> frozenset[str]:
    """Function words of Chinese and Japanese of one character. Pairs with other characters may still be words."""
    return frozenset(word for language in ("zh", "ja") for word in stop_words(language) if len(word) == 1)


@lru_cache(maxsize=1)
def compile_unspaced() -> re.Pattern[str]:
    """The function words of scripts without spaces, the longest first; kana particles between other characters."""
    found = {word for language in _UNSPACED for word in stop_words(language) if len(word) > 1}
    alternatives = "|".join(map(re.escape, sorted(found, key=lambda word: (-len(word), word))))
    thai_marks = "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e]"
    return re.compile(f"(?:{alternatives})(?!{thai_marks})|を|(?<![ぁ-ゟ])[はがにでともへのや](?![ぁ-ゟ])")
