"""The entities that a text names: quoted phrases, and runs of capitalised words.

An entity is known by its key: its words in lower case, joined by spaces. `"Acme Corp"`, Acme Corp and ACME CORP have
one key. Scripts without capitals have quoted phrases only, which is why an entry may state its entity itself.
German capitalises every noun, so its nouns count as names.
"""

import re
import unicodedata
from collections.abc import Iterator

from recallog_projections.models.facts.function_words import ACRONYMS, ARTICLES, COMMON_WORDS, FUNCTION_WORDS, TITLES
from recallog_projections.text_cache import cached_if_short
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits

VERSION = 1
"""Raised when some text gives other entities. It is part of the version of the projection, whose views are then
rebuilt."""

_PHRASE_WORDS_MAX = 8  # a longer quoted phrase is a sentence, and a longer run a heading in capitals
_PHRASE_CHARS_MAX = 80
_LOOK_BACK_CHARS = 8  # for the end of the sentence before

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without capitals whose words touch others: "在Google工作" names Google."""

# Patterns with many ranges of characters are compiled when they are first used, which takes milliseconds: every command
# imports this module.
_UNSPACED_RUN = f"[{_UNSPACED}]+"
_POSSIBLE_WORDS_MAX = 3
_POSSIBLE_LETTERS_MAX = 8

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "`": "'"})
_QUOTES = ('""', "\u201c\u201d", "\u201e\u201c", "\u201e\u201d", "«»", "「」", "『』", "《》")
_QUOTED = re.compile("|".join(rf"{pair[0]}([^{pair}\n]+){pair[1]}" for pair in _QUOTES))
_SPEECH = re.compile("[,;!?\uff0c\u3002\uff01\uff1f\uff1b\uff1a\u3001]")
_LABEL = re.compile(r"\s*(?:lesson|strategy|info|insight|note):", re.IGNORECASE)  # the type of a migrated text
_JOINERS = "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # invisible characters within words
_TRAILING = " \t,.;:\uff0c\u3002"
_WORD = rf"[^\W_{_UNSPACED}]+(?:['\-][^\W_{_UNSPACED}]+)*[+#]*"
_ASCII_WORD = re.compile(r"[a-z0-9][a-z0-9+#]*")
_CONTRACTION = re.compile(r"'(?:d|ll|m|re|t|ve)$", re.IGNORECASE)
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)
_JOINED = re.compile(r"[ \t\u00a0]+|[ \t\u00a0]*&[ \t\u00a0]*")
_JOINED_ABBREVIATION = re.compile(r"\.[ \t\u00a0]*")


@cached_if_short
def entities(text: str, stated: str | None = None) -> tuple[str, ...]:
    """The keys of the entities of a text, each once: the one that its entry states, then those in quotes, then the
    others. At most `facts_limits.GRAPH_ENTITIES_MAX`, of the first `facts_limits.GRAPH_TEXT_CHARS_MAX` characters.
    """
    text = _normal(text[: facts_limits.GRAPH_TEXT_CHARS_MAX])
    if (label := _LABEL.match(text)) is not None:
        text = text[label.end() :]
    phrases = [] if stated is None else [stated]
    rest = []
    end = 0
    for found in _QUOTED.finditer(text):
        phrase = found[found.lastindex or 0].strip(_TRAILING)
        if _is_name(phrase):
            phrases.append(phrase)
            rest.append(text[end : found.start()])
            end = found.end()
    rest.append(text[end:])
    phrases += [run for part in rest for run in _runs(part)]
    keys = dict.fromkeys(key for phrase in phrases if (key := key_of(phrase)))
    return tuple(keys)[: facts_limits.GRAPH_ENTITIES_MAX]


def possible(query: str) -> tuple[str, ...]:
    """The keys that a query without a marked name may mean: "what does acme prefer", 阿尔法和谁合作.

    These are its words, and up to `_POSSIBLE_WORDS_MAX` in sequence, without those that are function words alone; of
    scripts that write no spaces, all parts of 2 to `_POSSIBLE_LETTERS_MAX` of the first letters.
    """
    query = _normal(query)
    spaced = (key_of(found[0]) for found in re.finditer(_WORD, query))
    words = [word for word in spaced if word][: limits.RECALL_TERMS_MAX]
    keys = [
        " ".join(words[first : first + count])
        for count in range(1, _POSSIBLE_WORDS_MAX + 1)
        for first in range(len(words) - count + 1)
        if not FUNCTION_WORDS.issuperset(words[first : first + count])
    ]
    left = 2 * limits.RECALL_TERMS_MAX
    for found in re.finditer(_UNSPACED_RUN, query):
        run = found[0][:left]
        left -= len(run)
        for count in range(2, _POSSIBLE_LETTERS_MAX + 1):
            keys += [key_of(run[first : first + count]) for first in range(len(run) - count + 1)]
    return tuple(dict.fromkeys(filter(None, keys)))


def key_of(name: str) -> str:
    """The key of a name; "" for one without letters and digits. A leading article is dropped, and so is an `'s`."""
    normal = unicodedata.normalize("NFKC", name).translate(_APOSTROPHES)
    words = _words(_POSSESSIVE.sub("", normal.strip()))
    if len(words) > 1 and words[0] in ARTICLES:
        del words[0]
    return " ".join(words)[: facts_limits.GRAPH_KEY_CHARS_MAX].rstrip()


def words_of(key: str) -> frozenset[str]:
    """The words of a key."""
    return frozenset(key.split(" "))


def _normal(text: str) -> str:
    """`text` with composed letters and straight apostrophes."""
    if text.isascii() and "`" not in text:
        return text
    return unicodedata.normalize("NFC", text).translate(_APOSTROPHES)


def _words(name: str) -> list[str]:
    """The words of a name, case-folded. Marks belong to their letters: without them, Hindi has no vowels."""
    if name.isascii():
        return _ASCII_WORD.findall(name.lower())
    spaced = "".join(
        letter if letter.isalnum() or letter in "+#" or unicodedata.category(letter)[0] == "M" else " "
        for letter in name.casefold()
        if letter not in _JOINERS
    )
    return [word for each in spaced.split() if (word := each.lstrip("+#"))]


def _is_name(phrase: str) -> bool:
    """Whether a quoted phrase can be a name, and not speech."""
    if len(phrase) > _PHRASE_CHARS_MAX or _SPEECH.search(phrase) is not None:
        return False
    words = _words(phrase)
    return len(words) <= _PHRASE_WORDS_MAX and not FUNCTION_WORDS.issuperset(words)


def _runs(text: str) -> Iterator[str]:
    """The runs of capitalised words of a text without its quoted names."""
    run: list[str] = []
    start, end = 0, 0
    for found in re.finditer(_WORD, text):
        word = found[0]
        is_capitalised = word.lower() != word and word != "I" and _CONTRACTION.search(word) is None
        if run and not (is_capitalised and _continues(run[-1], text, end, found.start())):
            yield from _name(run, text, start)
            run = []
        if is_capitalised:
            name = _POSSESSIVE.sub("", word)
            start = start if run else found.start()
            run.append(name)
            end = found.end() if name == word else -1
    yield from _name(run, text, start)


def _continues(word: str, text: str, end: int, start: int) -> bool:
    """Whether the word at `start` belongs to the same run as `word`, which ends at `end`; -1: it ends the run."""
    if end < 0:
        return False
    if _JOINED.fullmatch(text, end, start) is not None:
        return True
    abbreviated = len(word) == 1 or word.lower() in TITLES
    return abbreviated and _JOINED_ABBREVIATION.fullmatch(text, end, start) is not None


def _name(run: list[str], text: str, start: int) -> Iterator[str]:
    """The name in a run, without leading function words."""
    first = next((number for number, word in enumerate(run) if not _leads(word)), len(run))
    name = run[first:]
    is_common = len(name) == 1 and name[0].lower() in COMMON_WORDS and not name[0].isupper()
    if 0 < len(name) <= _PHRASE_WORDS_MAX and not (is_common and _begins_sentence(text, start)):
        yield " ".join(name)


def _leads(word: str) -> bool:
    """Whether it does not belong to a name that follows it."""
    lower = word.lower()
    return lower in ACRONYMS or (lower in FUNCTION_WORDS and (len(word) == 1 or not word.isupper()))


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - _LOOK_BACK_CHARS) : start].rstrip(" \t\u00a0")
    return not before or not (before[-1].isalnum() or before[-1] in ",&")
