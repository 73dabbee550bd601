"""Cue tables of English: the words by which `heuristic` recognises a fact, each with the category of the fact.

`english_cues.toml` has the words. A change of a table or of a list changes which facts are found: raise
`heuristic.VERSION` with it.
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
"""Verbs in their base form: what follows "I", and with an s what follows a name."""

NOUNS = frozenset(
    verb for verb, category in PRESENT.items() if category in ("activity", "plan") or verb in ("work", "love", "like")
)
"""Verbs whose form in the third person is a noun too: "hot drinks"."""

PAST = _table("past")
"""Verbs in the past tense."""

CONTINUOUS = _table("continuous")
"""What follows "am", and "have been"."""

PARTICIPLES = {word: category for word, category in PAST.items() if word.endswith("ed")} | _table("participles")
"""What follows "have"."""

STATES = _table("states")
"""Adjectives that follow "am" or "is" and say something that lasts."""

IRREGULAR = {"have": "has", "do": "does", "go": "goes", "study": "studies", "teach": "teaches", "coach": "coaches",
             "supply": "supplies", "am": "is"}  # fmt: skip
"""The forms of verbs in the third person that do not only take an s."""

MUCH = frozenset({"few", "bit", "lot", "ton", "bunch"})
"""Words after "a" that give an amount and do not name a thing."""
PASSING_WANTS = _words("passing_wants")
"""Verbs after "wants to" that state a passing wish."""
PASSING = frozenset(["living my", "taking the", "taking care", "running into", "running out", "started with"])
"""A verb of the tables with its next word, where both say nothing that lasts."""
NOT_OWNED = _words("not_owned")
"""What "I have a …" and "I had a …" say nothing lasting with."""
NOT_MINE = _words("not_mine")
"""What "My … is" says nothing lasting with."""
NOT_A_NAME = _words("not_a_name")
"""Words that begin with a capital letter at the beginning of a sentence without being names."""

NOT_SAID_OF = _words("not_said_of")
"""Words after "My … is" that say nothing lasting."""
KIN = _words("kin")
"""Words for relatives."""
FILLERS = _words("fillers")
"""Adverbs that a fact omits."""
CLAUSE_STARTS = _words("clause_starts")
"""Words after a comma that begin a clause of their own."""
CLOSERS = _words("closers")
"""Words at the end that a fact omits."""
ADVERBS = _words("adverbs")
"""Adverbs that may come before the verb."""
OPENERS = _words("openers")
"""Words before the subject that a fact omits."""
TIMES = _words("times")
"""What "this" and "that" may precede without a reference to what was said."""

UNCLEAR = _words("unclear")
"""Words whose meaning depends on what was said before, or on who is addressed."""
DANGLING = _words("dangling")
"""Words that cannot end a clause."""
HEDGES = _words("hedges")
"""Words of uncertainty or feeling."""

OWN_WORDS = {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs", "our": "their", "us": "them"}
"""Words of the first person after the verb, and what a fact says instead."""
