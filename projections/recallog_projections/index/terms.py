"""The terms of a text for the channel `keyword`: stems of its content words, its exact strings, and their BM25 weights.

BM25 (Robertson and Zaragoza, 2009): a term that occurs tf times in a text has the weight
tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length)), times its idf among the texts that the agent may see.
The engine computes the idf for each query. Stored weights must not depend on other texts, so that the average length is
a constant; with a low b it has little influence.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

from recallog_projections.index import identifiers
from recallog_projections.index.engines.engine import Sparse
from recallog_projections.index.language import stems, stop_words
from recallog_projections.index.language.character_forms import find_other_forms
from recallog_projections.index.language.words import HAN, LATIN, UNSPACED, Word, ascii_words, words

K1 = 0.9
B = 0.4
AVERAGE_TERMS = 25.0
REPEATED_TERM_DISCOUNT = 0.6
"""The share of its weight that a term loses if the preceding text has it too."""
CHARACTER_WEIGHT = 0.5
"""The weight of a single Chinese character, as a share of that of a pair."""

_CACHED_CHARS_MAX = 64

FUNCTION_WORDS = stop_words.stop_words(stop_words.ENGLISH)


def terms(text: str) -> list[str]:
    """The content terms of `text` in order, with repetitions."""
    plain = ascii_words(text)
    if plain is not None and stop_words.language_of(plain, text) == stop_words.ENGLISH:
        # Most texts are English. This takes a third of the time.
        of_words = [stems.english(word) for word in plain if word not in FUNCTION_WORDS]
    else:
        of_words = [term for _, _, term in _of_words(text)]
    if not identifiers.may_occur(text):
        return of_words
    parts = [part for part in text.split() if not (part.islower() and part.isalpha())]
    return [*of_words, *chain.from_iterable(map(_strings_in, parts))]


def count_shares(query: str, texts: Iterable[str]) -> list[float]:
    """For each text, the share of the distinct terms of `query` that it contains, in any form of Chinese characters."""
    asked = {form: term for term in terms(query) for form in (*find_other_forms(term), term)}
    whole = max(1, len({*asked.values()}))
    return [len({asked[term] for term in asked.keys() & terms(text)}) / whole for text in texts]


def occurrences(text: str) -> Iterator[tuple[int, int, str]]:
    """The content terms of `text` as (start, end, term), in characters of `text`, end exclusive."""
    yield from _of_words(text)
    yield from _of_strings(text)


def _of_words(text: str) -> Iterator[tuple[int, int, str]]:
    found, language = _read(text)
    persian = stems.is_persian(text)
    for word in found:
        for part in stems.content(word, language):
            yield from stems.terms_of(part, language, persian=persian)


def _of_strings(text: str) -> Iterator[tuple[int, int, str]]:
    """The terms of exact strings, and the stems of the words of names in camel case."""
    for start, end, term in identifiers.occurrences(text):
        if identifiers.is_exact(term):
            yield start, end, term
        elif term not in FUNCTION_WORDS:
            yield start, end, stems.english(term)


def _strings_in(part: str) -> Sequence[str]:
    """The terms of `_of_strings` of a part of a text between white space, which no exact string has."""
    return _strings_in_short(part) if len(part) <= _CACHED_CHARS_MAX else _all_strings_in(part)


def _all_strings_in(part: str) -> Sequence[str]:
    return tuple(term for _, _, term in _of_strings(part))


_strings_in_short = lru_cache(maxsize=65_536)(_all_strings_in)


def content_words(text: str, begin: int = 0) -> Iterator[tuple[int, int, str]]:
    """The content words of `text` as (start, end, folded word), in characters of `text`, end exclusive: those from
    `begin` on, where a word may begin.

    In scripts without spaces between words, all characters between two function words are one word.
    """
    found, language = _read(text, begin)
    for word in found:
        for part in stems.content(word, language):
            yield part.start, part.end, part.folded


def is_english(text: str) -> bool:
    """Whether a text is in English, as far as can be seen: its letters are mostly Latin, and its words show no other
    language."""
    found, language = _read(text)
    latin = sum(len(word.folded) for word in found if word.script == LATIN)
    return language == stop_words.ENGLISH and 2 * latin >= sum(len(word.folded) for word in found)


def is_ngram(term: str) -> bool:
    """Whether a term is a part of a word of a script without spaces between words, mostly a pair of characters."""
    return UNSPACED.fullmatch(term) is not None


def is_character(term: str) -> bool:
    """Whether a term is a single Chinese character."""
    return len(term) == 1 and HAN.match(term) is not None


def _read(text: str, begin: int = 0) -> tuple[list[Word], str]:
    """The words of a text from `begin` on, and the language of all that are in Latin letters."""
    if text.isascii():
        return list(words(text, begin)), stop_words.language_of(ascii_words(text) or [], text)
    found = list(words(text))
    language = stop_words.language_of([word.folded for word in found if word.script == LATIN], text)
    return [word for word in found if word.start >= begin], language


@lru_cache(maxsize=65_536)
def dimension(term: str) -> int:
    """The dimension of a term in sparse vectors: 32 bits of its digest. Of 100,000 terms, about one pair shares one."""
    return int.from_bytes(blake2b(term.encode(), digest_size=4).digest(), "big")


def weights(found: Iterable[str]) -> dict[str, float]:
    """The BM25 weight of each distinct term of a text, without idf. Exact strings do not count as length."""
    counts = Counter(found)
    length = counts.total() - sum(count for term, count in counts.items() if term[0] == identifiers.MARK)
    floor = K1 * (1 - B + B * length / AVERAGE_TERMS)
    return {
        term: (CHARACTER_WEIGHT if len(term) == 1 and HAN.match(term) else 1.0) * count * (K1 + 1) / (count + floor)
        for term, count in counts.items()
    }


def repeated_term_discount(weighted: Mapping[str, float], preceding: Set[str]) -> dict[str, float]:
    """The weights, reduced by `REPEATED_TERM_DISCOUNT` for words that the preceding text has too."""
    return {
        term: weight * (1 - REPEATED_TERM_DISCOUNT) if term in preceding and not identifiers.is_exact(term) else weight
        for term, weight in weighted.items()
    }


def sparse(weighted: dict[str, float]) -> Sparse:
    """Weighted terms as a sparse vector."""
    dimensions: dict[int, float] = {}
    for term, weight in weighted.items():
        dimensions[dimension(term)] = dimensions.get(dimension(term), 0.0) + weight
    return Sparse(list(dimensions), list(dimensions.values()))
