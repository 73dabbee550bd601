"""Cue tables of English: the words by which `heuristic` recognises a fact, each with the category of the fact.

A change of a table changes which facts are found: raise `heuristic.VERSION` with it.
"""

from collections.abc import Iterator, Mapping


def _table(**words: str) -> dict[str, str]:
    """The category of each word."""
    return dict(_pairs(words))


def _pairs(words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for category, of_category in words.items():
        for word in of_category.split():
            yield word, category


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
PASSING_WANTS = _words("savor say thank know hear see share keep make give ask feel show try hug tell express")
"""What somebody who "wants to" do it wants at this moment."""
PASSING = frozenset(["living my", "taking the", "taking care", "running into", "running out", "started with"])
"""A verb of the tables with its next word, where both say nothing that lasts."""
NOT_OWNED = _words(
    "lot bit few feeling question idea problem chance time blast look point doubt good great hard to ton while moment "
    "couple favor request surge issue thing things nice fun day light soft tough bunch"
)
"""What "I have a …" and "I had a …" say nothing lasting with."""
NOT_MINE = _words(
    "question point bad apologies pleasure mind heart day turn advice goal understanding guess bet gosh thoughts "
    "condolences answer suggestion recommendation only response take"
)
"""What "My … is" says nothing lasting with."""
NOT_A_NAME = _words(
    "everyone everybody someone somebody nobody anyone people nature life music art family god time today tomorrow "
    "yesterday thanks thank yes no yeah okay ok sure well great wow hey hi hello please maybe step option example "
    "note congrats congratulations sounds looks love hope here there what which who how why when where january "
    "february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday this that these those it he she they we you i my your our his her their its the a an and "
    "but or if so as also although because however while since after before each every another some any all both most "
    "many good nice glad happy best same"
)
"""Words that begin with a capital letter at the beginning of a sentence, and are no names."""

NOT_SAID_OF = _words(
    "so very pretty super always not to doing going looking getting feeling really better worse great good fine okay "
    "busy here over just the quite similar limited correct impossible already my"
)
"""Words behind "My … is" that say nothing lasting."""
KIN = _words(
    "mother mom mum father dad sister brother son daughter wife husband partner parents kids children child grandma "
    "grandmother grandpa grandfather aunt uncle cousin niece nephew family girlfriend boyfriend fiancé fiancée twins "
    "sisters brothers sons daughters"
)
"""Words for relatives."""
FILLERS = _words("just really actually even absolutely definitely totally honestly truly simply basically")
"""Adverbs that a fact goes without."""
CLAUSE_STARTS = _words(
    "i i'm i've i'd i'll my we we're we've it it's its that that's this they they're he he's she she's you you're "
    "your her his their there there's which who where but so because although though while when since then "
    "especially thanks thank what how if as yeah yes no lol haha hahaha also actually plus even just hope hoping let "
    "do does did is are was were can could would we'd they'd he'd she'd you'd it'd here's we'll they'll he'll she'll "
    "it'll that'll you'll"
)
"""Words behind a comma that begin a clause of their own."""
CLOSERS = _words("too lol haha hahaha though btw :) :d xd")
"""Words at the end that a fact goes without."""
ADVERBS = _words("also still currently recently always usually often never mostly finally already mainly once")
"""Adverbs that may stand before the verb."""
OPENERS = _words(
    "well actually also and but so yeah yes oh honestly currently btw anyway plus no wow hey hi thanks besides ah oof "
    "haha lol aww omg yep yup ooh hmm um hello then"
)
"""Words before the subject that a fact goes without."""
TIMES = _words(
    "week weekend month year morning evening afternoon summer winter spring fall autumn night season semester january "
    "february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday"
)
"""What "this" and "that" may stand before: no reference to what was said."""

UNCLEAR = _words(
    "it it's its this that that's these those them they they're he she he's she's him his her hers you you're you've "
    "you'll you'd your yours yourself ya u ur here there there's one ones something someone somebody anything "
    "everything thing things stuff such same i'm i've i'd i'll we we're we've who what whatever how why another other "
    "others else"
)
"""Words whose meaning depends on what was said before, or on who is addressed."""
DANGLING = _words("few bunch lot bit to for after of with and or but so a the in on at by as than from")
"""Words with which no whole clause ends."""
HEDGES = _words(
    "maybe perhaps probably possibly might would wouldn't could couldn't should shouldn't wish if guess suppose "
    "almost hopefully unless whether think imagine kinda sorta gonna wanna may must seems seem feels feel"
)
"""Words of what is not certain, or only felt."""

OWN_WORDS = {"my": "their", "me": "them", "myself": "themselves", "mine": "theirs", "our": "their", "us": "them"}
"""Words of the first person behind the verb, and what a fact says instead."""
