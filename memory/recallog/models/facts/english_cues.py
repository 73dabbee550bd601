"""Cue tables of English: the words by which `heuristic` recognises a fact, each with the category of the fact.

`english_cues.toml` has the words. If you change a table or a list, other facts are found: raise `heuristic.VERSION`
too.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LISTS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _table(name: str) -> dict[str, str]:
    """The category of each word."""
    return {word: category for category, words in _LISTS[name].items() for word in words.split()}


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


PRESENT = _table("present")
"""Verbs in their base form: they follow "I", and with an s they follow a name."""

NOUNS = frozenset(
    verb for verb, category in PRESENT.items() if category in ("activity", "plan") or verb in ("work", "love", "like")
)
"""Verbs whose third person is also a noun: "hot drinks"."""

PAST = _table("past")
"""Verbs in the past tense."""

CONTINUOUS = _table("continuous")
"""Words after "am" and "have been"."""

PARTICIPLES = {word: category for word, category in PAST.items() if word.endswith("ed")} | _table("participles")
"""Words after "have"."""

STATES = _table("states")
"""Adjectives after "am" or "is" that state something lasting."""

IRREGULAR = {"have": "has", "do": "does", "go": "goes", "study": "studies", "teach": "teaches", "coach": "coaches",
             "supply": "supplies", "am": "is"}  # fmt: skip
"""The third person of verbs that do not just take an s."""

MUCH = frozenset({"few", "bit", "lot", "ton", "bunch"})
"""Words after "a" that give an amount and do not name a thing."""
PASSING_WANTS = _words("passing_wants")
"""Verbs after "wants to" that state a passing wish."""
PASSING = frozenset(["living my", "taking the", "taking care", "running into", "running out", "started with"])
"""A verb of the tables with its next word, if both do not state anything lasting."""
NOT_OWNED = _words("not_owned")
"""Nouns after "I have a …" and "I had a …" that do not state anything lasting."""
NOT_MINE = _words("not_mine")
"""Nouns in "My … is" that do not state anything lasting."""
NOT_A_NAME = _words("not_a_name")
"""Words that begin with a capital letter at the beginning of a sentence without being names."""

NOT_SAID_OF = _words("not_said_of")
"""Words after "My … is" that do not state anything lasting."""
KIN = _words("kin")
"""Words for relatives."""
FILLERS = _words("fillers")
"""Adverbs that are left out of a fact."""
CLAUSE_STARTS = _words("clause_starts")
"""Words after a comma that begin a separate clause."""
CLOSERS = _words("closers")
"""Words at the end that are left out of a fact."""
ADVERBS = _words("adverbs")
"""Adverbs that may come before the verb."""
OPENERS = _words("openers")
"""Words before the subject that are left out of a fact."""
TIMES = _words("times")
"""Words after "this" and "that" that name a time and do not refer to earlier sentences."""

UNCLEAR = _words("unclear")
"""Words whose meaning depends on earlier sentences, or on the addressee."""
DANGLING = _words("dangling")
"""Words that cannot end a clause."""
HEDGES = _words("hedges")
"""Words of uncertainty or feeling."""

OWN_WORDS = {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs", "our": "their", "us": "them"}
"""Words of the first person after the verb, and their replacements in a fact."""
