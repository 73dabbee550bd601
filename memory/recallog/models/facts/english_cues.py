"""Cue tables of English: the words by which `heuristic` recognises a fact, each with the category of the fact.

`english_cues.toml` has the lists of words without a category. A change of a table or of a list changes which facts are
found: raise `heuristic.VERSION` with it.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

_LISTS: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _table(**words: str) -> dict[str, str]:
    """The category of each word."""
    return dict(_pairs(words))


def _pairs(words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for category, of_category in words.items():
        for word in of_category.split():
            yield word, category


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


PRESENT = _table(
    place="live reside rent",
    work="work manage lead supply sell serve hire employ",
    education="study teach attend learn",
    possession="own drive",
    preference="like love prefer enjoy hate dislike adore avoid",
    activity="play volunteer coach collect paint cook bake sing dance run swim hike write travel drink eat use "
    "practice",
    ability="speak",
    relation="belong depend",
    plan="want plan intend",
)
"""Verbs in their base form: what follows "I", and with an s what follows a name."""

NOUNS = frozenset(
    verb for verb, category in PRESENT.items() if category in ("activity", "plan") or verb in ("work", "love", "like")
)
"""Verbs whose form in the third person is a noun too: "hot drinks"."""

PAST = _table(
    place="moved lived grew settled",
    work="worked joined quit started founded opened launched managed retired applied hired acquired",
    education="studied graduated learned taught attended enrolled",
    possession="bought adopted sold received inherited rented",
    family="married divorced raised",
    event="went visited took won lost met finished signed ran painted made wrote read saw watched volunteered gave "
    "created built participated traveled published performed hosted organized began competed hiked camped had got "
    "celebrated completed donated passed broke injured planted booked ordered died set heard "
    "brought baked cooked danced played practiced earned recorded released discovered helped received chose decided "
    "developed contacted explored invited failed asked emailed dreamed",
    preference="loved enjoyed",
)
"""Verbs in the past tense."""

CONTINUOUS = _table(
    place="living moving",
    work="working managing running hiring expanding searching looking",
    education="studying learning teaching taking",
    activity="playing practicing volunteering training writing painting reading building volunteering",
    plan="planning hosting organizing",
)
"""What follows "am", and "have been"."""

PARTICIPLES = {word: category for word, category in PAST.items() if word.endswith("ed")} | _table(
    place="lived moved",
    work="worked started joined finished",
    education="studied learned graduated",
    possession="owned bought adopted",
    family="known",
    event="visited won read seen written signed painted made traveled completed",
)
"""What follows "have"."""

STATES = _table(
    identity="from married single divorced engaged retired pregnant vegetarian vegan left-handed bilingual adopted "
    "transgender gay lesbian bisexual nonbinary",
    health="allergic diabetic asthmatic lactose",
    preference="into passionate obsessed interested",
    place="based located",
    relation="responsible called named closed",
)
"""Adjectives that follow "am" or "is" and say something that lasts."""

IRREGULAR = {"have": "has", "do": "does", "go": "goes", "study": "studies", "teach": "teaches", "coach": "coaches",
             "supply": "supplies", "am": "is"}  # fmt: skip
"""The forms of verbs in the third person that do not only take an s."""

MUCH = frozenset({"few", "bit", "lot", "ton", "bunch"})
"""What follows "a" and says no thing."""
PASSING_WANTS = _words("passing_wants")
"""What somebody who "wants to" do it wants at this moment."""
PASSING = frozenset(["living my", "taking the", "taking care", "running into", "running out", "started with"])
"""A verb of the tables with its next word, where both say nothing that lasts."""
NOT_OWNED = _words("not_owned")
"""What "I have a …" and "I had a …" say nothing lasting with."""
NOT_MINE = _words("not_mine")
"""What "My … is" says nothing lasting with."""
NOT_A_NAME = _words("not_a_name")
"""Words that begin with a capital letter at the beginning of a sentence, and are no names."""

NOT_SAID_OF = _words("not_said_of")
"""Words behind "My … is" that say nothing lasting."""
KIN = _words("kin")
"""Words for relatives."""
FILLERS = _words("fillers")
"""Adverbs that a fact goes without."""
CLAUSE_STARTS = _words("clause_starts")
"""Words behind a comma that begin a clause of their own."""
CLOSERS = _words("closers")
"""Words at the end that a fact goes without."""
ADVERBS = _words("adverbs")
"""Adverbs that may stand before the verb."""
OPENERS = _words("openers")
"""Words before the subject that a fact goes without."""
TIMES = _words("times")
"""What "this" and "that" may stand before: no reference to what was said."""

UNCLEAR = _words("unclear")
"""Words whose meaning depends on what was said before, or on who is addressed."""
DANGLING = _words("dangling")
"""Words with which no whole clause ends."""
HEDGES = _words("hedges")
"""Words of what is not certain, or only felt."""

OWN_WORDS = {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs", "our": "their", "us": "them"}
"""Words of the first person behind the verb, and what a fact says instead."""
