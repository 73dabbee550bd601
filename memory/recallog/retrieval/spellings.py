"""Other spellings of a name: with mistakes, or in another script ("Мелани" or "メラニー" for `melanie`).

Words of other scripts are written in Latin letters by the package of the extra `multilingual`. Without the package they
are not recognised. Their consonants are compared, because scripts write vowels differently, or not at all. Differences
that many languages do not hear, such as that of l and r, do not count.
"""

import re
from functools import lru_cache

from recallog.retrieval.sections import read_sections

_SOUNDS = [each.split("=") for each in dict(read_sections("name_words.txt"))["sounds"].split()]
"""What is written in place of each spelling, one after the other."""
_SILENT = re.compile(r"r(?![aeiouywh])|(?<=.)h")
"""An r before a consonant, which Chinese, Japanese and Korean leave out, and an h that is not the first letter."""
_VOWELS = re.compile("[aeiouyw]+")
_REPEATED = re.compile(r"(.)\1+")
_CONSONANTS_MIN = 3
"""If two words have fewer consonants, their vowels are compared too: with two, one vowel may differ."""
_AFTER_LATIN = "\u0250"
"""The first character after the Latin letters with accents: "Brücke" is not in another script than "Blake"."""


def sound_alike(one: str, other: str) -> bool:
    """Whether two words in lower case may be one name, if one of them is in Latin letters and the other is not."""
    if (max(one) < _AFTER_LATIN) == (max(other) < _AFTER_LATIN):
        return False
    consonants = find_consonants(one)
    return (
        bool(consonants)
        and consonants == find_consonants(other)
        and (len(consonants) >= _CONSONANTS_MIN or count_edits(_romanize(one), _romanize(other)) < len(consonants))
    )


@lru_cache(maxsize=16_384)
def find_consonants(word: str) -> str:
    """The consonants of a word in lower case, after "a" if it begins with a vowel; "" if they are not known."""
    letters = _romanize(word)
    return _REPEATED.sub(r"\1", _VOWELS.sub("a", letters[:1]) + _VOWELS.sub("", letters[1:]))


def count_edits(one: str, other: str) -> int:
    """The number of letters to insert, delete, replace or swap with the next one, to turn one word into the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, another in enumerate(other, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != another)))
            if i > 1 and j > 1 and letter == other[j - 2] and another == one[i - 2]:
                row[j] = min(row[j], earlier[j - 2] + 1)
    return row[-1]


def _romanize(word: str) -> str:
    """A word in Latin letters, in one spelling for each sound; "" without the package."""
    try:
        from anyascii import anyascii  # few questions need its tables
    except ModuleNotFoundError:
        return ""
    letters = re.sub("[^a-z]", "", anyascii(word.replace("ッ", "")).lower())
    for spelling, sound in _SOUNDS:
        letters = letters.replace(spelling, sound)
    return _REPEATED.sub(r"\1", _SILENT.sub("", letters).replace("r", "l"))
