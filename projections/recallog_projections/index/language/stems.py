"""The terms of a word: its stem, or pairs of characters in scripts without spaces between words.

Stems are those of Snowball. Languages in Latin letters differ in theirs, and the language of a short text is uncertain:
a word of a text that is not English has the stem of its language and, if it differs, the English one, in memories and
questions alike, so that equal words match even if the language of one of them was not recognised.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from threading import local

import Stemmer

from recallog_projections.index.language import stop_words
from recallog_projections.index.language.stop_words import ENGLISH, VIETNAMESE
from recallog_projections.index.language.words import CJK, HAN, HANGUL, LATIN, SYLLABIC, Word, without_accents

_STEMMERS = {
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "pt": "portuguese",
    "it": "italian",
    "nl": "dutch",
    "sv": "swedish",
    "da": "danish",
    "no": "norwegian",
    "fi": "finnish",
    "pl": "polish",
    "cs": "czech",
    "ro": "romanian",
    "hu": "hungarian",
    "tr": "turkish",
    "id": "indonesian",
}
"""The algorithm of Snowball by language in Latin letters; Vietnamese words do not change."""

_ALPHABETS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u1f00", "\u1fff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
"""The first and last letter of each alphabet, and the algorithm of Snowball for it. One for all languages that share an
alphabet: Ukrainian, Bulgarian and Serbian have similar endings to Russian."""
_PERSIAN = re.compile("[پچژگکی]")
"""Letters of Persian and Urdu that Arabic lacks, yeh and kaf among them."""

_MARKS = (
    "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    "\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d1\u17d3"
)
_SYLLABLE = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]*"  # vowels that are written before their consonant
    f".[{_MARKS}]*(?:(?<=\u1039).[{_MARKS}]*|\u17d2.[{_MARKS}]*|[\u1000-\u1021](?=\u103a)[{_MARKS}]+)*"
)
"""A consonant with its vowels and tones, and with the consonants below or closing it (Burmese, Khmer)."""

_LONG_SYLLABLE = 3
"""Characters. Words of one such syllable are common in Khmer and Burmese, and water is one in Thai."""

_HIRAGANA = re.compile("[ぁ-ゟ]")

_PARTICLES = re.compile(
    "(?<=..)(?:에게서|한테서|으로부터|이라고|에서는|에게는|께서는|이라는|이지만|입니다|이에요|이다)$"
    "|(?<=.)(?:에서|에게|한테|으로|까지|부터|처럼|보다|마다|이랑|하고|라고|예요|을|를|은|는)$"
    "|(?<=..)(?:이|가|의|에|도|로|와|과|만|랑|께)$"
)
_ENDINGS = re.compile(
    "(?<=.)(?:했습니다|합니다|하세요|했어요|했었어|했다|했어|해요|하고|하는|하지|하면|하며|해서|하다|한다|하려고|할까|한|할|해)$"
    "|(?<=.)(?:[았었였]습니다|[았었였]어요|[았었였]던|[았었였]는데|[았었였]지만|[았었였]다|[았었였]어|습니다|습니까|고|지만|는데|으면|면서|어서|아서|네요"
    "|나요|까요|을까|어요|아요|지요|는다|던)$|(?<=..)다$"
)

_threads = local()


def is_persian(text: str) -> bool:
    """Whether a text in Arabic letters is Persian or Urdu."""
    return _PERSIAN.search(text) is not None


def content(word: Word, language: str) -> Iterable[Word]:
    """The parts of a word that are not function words: all of it, nothing, or the runs between function words."""
    if word.script in (CJK, SYLLABIC):
        return _between_function_words(word)
    return () if word.folded in _stop_words(word, language) else (word,)


def terms_of(word: Word, language: str, *, persian: bool = False) -> Iterable[tuple[int, int, str]]:
    """The terms of a content word as (start, end, term)."""
    if word.script == LATIN:
        return [(word.start, word.end, term) for term in latin_stems(word.folded, language)]
    if word.script == CJK:
        return _of_characters(word)
    if word.script == HANGUL:
        return _of_korean(word)
    if word.script == SYLLABIC:
        return _of_syllables(word)
    return [(word.start, word.end, _alphabet_stem(word.folded, persian))]


@lru_cache(maxsize=65_536)
def latin_stems(word: str, language: str) -> tuple[str, ...]:
    """The distinct stems of a folded word in Latin letters: that of its language, and the English one."""
    if language == ENGLISH:
        return (english(word),)
    own = word if language == VIETNAMESE else without_accents(_stem(_STEMMERS[language], word))
    return (own,) if own == english(word) else (own, english(word))


@lru_cache(maxsize=65_536)
def english(word: str) -> str:
    """The English stem of a folded word in Latin letters, without accents."""
    return without_accents(_stem("english", word))


@lru_cache(maxsize=65_536)
def _alphabet_stem(word: str, persian: bool) -> str:
    for first, last, algorithm in _ALPHABETS:
        if first <= word[0] <= last:
            return without_accents(_stem("persian" if persian and algorithm == "arabic" else algorithm, word)) or word
    return word


def _stem(algorithm: str, word: str) -> str:
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_threads, "stemmers", None)
    if stemmers is None:
        stemmers = _threads.stemmers = {}  # a stemmer is not thread-safe
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm, 0)
    return str(stemmers[algorithm].stemWord(word)) or word


def _stop_words(word: Word, language: str) -> frozenset[str]:
    if word.script == LATIN:
        return stop_words.stop_words(language)
    return stop_words.stop_words("ko") if word.script == HANGUL else stop_words.of_other_alphabets()


def _between_function_words(word: Word) -> Iterator[Word]:
    aligned = len(word.folded) == word.end - word.start
    first = 0
    cuts = [found.span() for found in stop_words.compile_unspaced().finditer(word.folded)]
    for cut, after in [*cuts, (len(word.folded), 0)]:
        if cut > first:
            start, end = (word.start + first, word.start + cut) if aligned else (word.start, word.end)
            yield Word(start, end, word.folded[first:cut], word.script)
        first = after


def _of_characters(word: Word) -> Iterable[tuple[int, int, str]]:
    """Pairs of adjacent characters, and each Chinese character: a word of one character is in no particular pair."""
    characters = word.folded
    bounds = [(at, at + 2) for at in range(len(characters) - 1)]
    single = stop_words.single_characters()
    if len(characters) == 1:
        bounds += [(0, 1)] if characters not in single and not _HIRAGANA.match(characters) else []
    else:
        bounds += [(at, at + 1) for at, one in enumerate(characters) if one not in single and HAN.match(one)]
    return _spans(word, characters, bounds)


def _of_korean(word: Word) -> Iterable[tuple[int, int, str]]:
    """Pairs of the syllables of a word without its particle or ending; the only syllable, if there is one."""
    stem = _korean_stem(word.folded)
    return _spans(word, stem, [(at, at + 2) for at in range(len(stem) - 1)] or [(0, 1)])


@lru_cache(maxsize=16_384)
def _korean_stem(word: str) -> str:
    return _ENDINGS.sub("", word) if _ENDINGS.search(word) else _PARTICLES.sub("", word)


def _of_syllables(word: Word) -> Iterable[tuple[int, int, str]]:
    """Pairs of adjacent syllables, and syllables that are long enough for a word; the only one, if there is one."""
    one = [found.span() for found in _SYLLABLE.finditer(word.folded)]
    pairs = [(start, end) for (start, _), (_, end) in pairwise(one)]
    long = [(start, end) for start, end in one if end - start >= _LONG_SYLLABLE]
    return _spans(word, word.folded, [*pairs, *long] if pairs else one)


def _spans(word: Word, characters: str, bounds: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int, str]]:
    """Parts of the characters of a word as (start, end, term); with the span of all of it if they do not align."""
    start, end, folded, _ = word
    if len(folded) == end - start:
        return [(start + first, start + last, characters[first:last]) for first, last in bounds]
    return [(start, end, characters[first:last]) for first, last in bounds]
