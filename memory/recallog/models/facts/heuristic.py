"""An extractor without a model: facts in sentences of English and Chinese, recognised by tables of cues.

A sentence is split into clauses. A clause is a fact if it states something lasting about its speaker ("I live in
Berlin"), about somebody or something of the speaker ("My sister is a nurse") or about a name ("Acme Corp prefers
React"), and if it can be understood alone: questions, guesses and clauses with "it", "you" or "there" are left out. The
first person is replaced by the name of the speaker, and "last Friday" by a date. The same texts always give the same
facts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from recallog.models.facts import chinese_cues as chinese
from recallog.models.facts import english_cues as english
from recallog.models.facts.extractor import ExtractionRequest, Fact, FactExtractor, Utterance
from recallog.models.facts.relative_times import write_dates
from recallog_schemas import kinds

VERSION = 4
"""Raised with every change of the rules or of the tables of cues."""

_OF_SPEAKER = 0.9
"""The confidence of a fact that its speaker states about themselves."""
_OF_NAME = 0.7
"""The confidence of a fact about a name."""
_WORDS_MAX = 30
_WORDS_MIN = 3
_CHINESE_CHARS_MAX = 60
_CHINESE_CHARS_MIN = 3
_CHINESE_WHOLE_CHARS = 4
"""A longer cue contains its object, such as "对花生过敏"."""
_FACTS_OF_A_TEXT = 8
"""The most facts of one text. A long reply of an assistant contains little that lasts."""

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_ACTIONS = re.compile(r"（[^（）]*）|\([^()]*\)|\*[^*\n]*\*|\[[^\[\]\n]*\]")
"""Texts in brackets: stage directions and captions."""
_SPEECH = re.compile(r'(?:(?<=\w[:,] )|(?<=\w ))["“](?=[^"“”\n]*["”])[^"“”\n]*\b(?:I|[Mm]y)\b[^"“”\n]*["”]')
"""What somebody else said, as in `You told me: "I live in Oslo."`: its first person is not the speaker. The lookahead
bounds the time for a text without a closing quote."""
_LISTED = re.compile(r"\s*(?:[-*•#>|]|\d+[.)]\s)")
_SENTENCE = re.compile("[^.!?。！？\uff1b;\\n]+(?:\\.(?=\\S)[^.!?。！？\uff1b;\\n]*)*[.!?。！？\uff1b;]*")
_HAN = re.compile("[\u4e00-\u9fff]")

_CLAUSE = re.compile(
    r"\s*(?:;|:|\u2014|\u2013|\s-\s|\.\.\.|\u2026)\s*"
    r"|\s+but\s+|\s+(?:and|so)\s+(?=(?:I|im|ive|my|we|it|its|they|he|she|you|the|that|this)\b)",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\s+(?:because|cause|although|though|while|when|whenever|as soon as|so that"
    r"|(?:until|since)(?=\s+(?:i|we|you|they|he|she|it|my|our|the|that|this|then|last)\b))\s"
    r"[^,]*?(?=,|\s[-\u2013\u2014]\s|$)",
    re.IGNORECASE,
)
"""Clauses that hold only together with the clause before them."""
_WORD = re.compile(r"[^\s\"\u201c\u201d]+")
_SPELLINGS = {"i": "I", "im": "I'm", "Im": "I'm", "i'm": "I'm", "ive": "I've", "Ive": "I've", "i've": "I've"}
_NAME = re.compile(r"[A-Z][\w&.-]*(?:'s)?(?:\s+(?:of\s+|the\s+|&\s+)?[A-Z][\w&.-]*){0,3}")
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][\w-]+")
_EDGES = " ,.!?;:~\"'\u201c\u201d"
_REQUEST = re.compile(r"```|\b(?:can|could|would) you\b|\bhelp me\b", re.IGNORECASE)
"""A text that asks for help states what its speaker wants now, which is not a plan."""
_WITH_OTHERS = re.compile(r"^([Mm]y [\w'-]+(?: [\w'-]+)?) and (?=I\b)")
_INSTRUCTION = re.compile(r"(?P<said>(?:always|never) .+ (?:when|whenever|if) I .+)", re.IGNORECASE)
"""Something that the speaker wants every time, not only now."""

_CHINESE_CLAUSE = re.compile("[，,、：:…~\\s—]+")
_PARTICLES = "啊哦嘛呀啦哈呐哟喔噢嗯~ "
_CHINESE_CUE = re.compile("|".join(f"(?P<{category}>{cue})" for category, cue in chinese.CUES))
_CHINESE_NAME = re.compile("[A-Z][A-Za-z]*|《[^》]{1,20}》|「[^」]{1,20}」|“[^”]{1,20}”")
_WEAK_CUES = frozenset({"event", "plan", "possession"})


class _Clause(NamedTuple):
    """A clause that is a fact."""

    text: str
    entity: str
    category: str
    confidence: float


class HeuristicExtractor(FactExtractor):
    """Recognises facts by the tables `english_cues` and `chinese_cues`. Results of tools are left out."""

    name: ClassVar[str] = f"heuristic-{VERSION}"
    immediate: ClassVar[bool] = True

    async def extract(self, request: ExtractionRequest) -> Sequence[Fact]:
        names = _names(request)
        return [fact for said in request.utterances for fact in _facts_of(said, names)]

    async def close(self) -> None:
        """Does nothing: there are no connections."""


def _names(request: ExtractionRequest) -> frozenset[str]:
    """The known names: the speakers, and words with a capital letter inside a sentence."""
    inside = {word for said in request.utterances for word in _CAPITAL.findall(said.text)}
    return frozenset(inside | {said.agent for said in request.utterances})


def _facts_of(said: Utterance, names: frozenset[str]) -> Iterator[Fact]:
    if said.kind is not None and kinds.kind_of(said.kind).role == kinds.ACTION:
        return
    found = 0
    for sentence in _sentences(said.text):
        clauses = _chinese(sentence, said, names) if _HAN.search(sentence) else _english(sentence, said, names)
        for clause in clauses:
            if clause.category == "plan" and _REQUEST.search(said.text):
                continue
            sources = () if said.id is None else (said.id,)
            yield Fact(write_dates(clause.text, said.at), clause.entity, clause.category, clause.confidence, sources)
            found += 1
            if found == _FACTS_OF_A_TEXT:
                return


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text that are neither questions nor items of lists, without code, brackets and speech."""
    for line in _SPEECH.sub(" ", _ACTIONS.sub(" ", _CODE.sub("\n", text)).replace("\u2019", "'")).splitlines():
        if not _LISTED.match(line):
            # The patterns are slow on long white space.
            for sentence in _SENTENCE.findall(" ".join(line.split())):
                if not re.search("[?？]", sentence):
                    yield sentence.strip()


# English


def _english(sentence: str, said: Utterance, names: frozenset[str]) -> Iterator[_Clause]:
    if sentence.lower().startswith(("if ", "when ", "as if ", "let's ", "imagine ", "let me ")):
        return
    instruction = _INSTRUCTION.fullmatch(sentence.strip(_EDGES))
    if instruction is not None and said.agent:
        words = re.sub(r"\bI\b", "they", instruction["said"]).split()
        yield _clause([said.agent, "says:", words[0].lower(), *words[1:]], said.agent, "preference", _OF_SPEAKER)
        return
    for part in _clauses(sentence, names):
        words = _WORD.findall(part.strip(_EDGES))
        while words and words[0].strip(_EDGES).lower() in english.OPENERS:
            words = words[1:]
        words = _without_time([word for word in words if word.lower() not in english.FILLERS])
        while words and words[-1].lower() in english.CLOSERS:
            words = words[:-1]
        if not _WORDS_MIN <= len(words) <= _WORDS_MAX:
            continue
        clause = _of_speaker(words, said) or _of_speakers_own(words, said) or _of_name(words, said, names)
        if clause is not None:
            yield clause


def _clauses(sentence: str, names: frozenset[str]) -> Iterator[str]:
    """The clauses of a sentence. The words after a comma belong to the clause before it, unless they begin a clause or
    address somebody."""
    clause = ""
    for part in _CLAUSE.split(_WITH_OTHERS.sub(r"\1 & ", _SUBORDINATE.sub("", sentence))):
        pieces = re.split(r"\s*,(?!\d)\s*", part)
        for index, piece in enumerate(pieces):
            if (
                not index
                or not clause
                or piece.partition(" ")[0].lower() in english.CLAUSE_STARTS
                or (index == len(pieces) - 1 and piece.strip(_EDGES) in names)
            ):
                yield clause
                clause = piece
            else:
                clause = f"{clause}, {piece}"
        yield clause
        clause = ""


def _without_time(words: list[str]) -> list[str]:
    """The words, with a time such as "last Friday" moved from before the subject to the end."""
    for length in range(1, min(3, len(words))):
        ahead = [word.lower() for word in words[:length]]
        is_time = ahead == ["yesterday"] or (ahead[0] in ("last", "this", "next") and ahead[-1] in english.TIMES)
        if is_time and words[length] in ("I", "I'm", "I've"):
            return [*words[length:], ahead[0], *words[1:length]]
    return words


def _is_clear(words: Sequence[str]) -> bool:
    """Whether the words can be understood alone, and are not uncertain."""
    plain = [word.strip(_EDGES).lower() for word in words]
    if plain and plain[-1] in english.DANGLING:
        return False
    if english.HEDGES.intersection(plain[index] for index, word in enumerate(words) if not word.startswith("May")):
        return False
    for index, word in enumerate(plain):
        if word in english.UNCLEAR:
            of_time = word in ("this", "that") and plain[index + 1 : index + 2] and plain[index + 1] in english.TIMES
            if not of_time:
                return False
    return True


def _of_speaker(words: Sequence[str], said: Utterance) -> _Clause | None:
    """A clause of the first person as a fact about its speaker; None if it does not state one."""
    first, rest = _SPELLINGS.get(words[0], words[0]), list(words[1:])
    joined = {"I'm": "am", "I've": "have", "I'd": ""}.get(first)
    if not joined and (first != "I" or not rest):
        return None
    adverbs = []
    while rest and rest[0].lower() in english.ADVERBS:
        adverbs.append(rest.pop(0).lower())
    if joined:
        rest.insert(0, joined)
    found = _predicate(rest)
    if found is None or not _is_clear(rest):
        return None
    verbs, category = found
    return _clause([said.agent, *adverbs, *verbs], said.agent, category, _OF_SPEAKER)


def _predicate(rest: Sequence[str]) -> tuple[list[str], str] | None:
    """The words after "I" in the third person, and the category; None if they do not state anything lasting."""
    if len(rest) < 2:
        return None
    verb, after = rest[0].lower(), [word.lower() for word in rest[1:]]
    if after[0] == "a" and after[1:2] and after[1] in english.MUCH:
        return None
    if verb in ("am", "was"):
        is_name = verb == "am" and rest[1].istitle() and rest[1].endswith(",")
        category = "identity" if is_name else _category_of_state(after)
        return None if category is None else (["is" if verb == "am" else verb, *rest[1:]], category)
    if verb == "have":
        return _having(rest, after)
    if verb == "had":
        return None if len(after) < 2 or after[0] not in ("a", "an") or _is_vague(after) else ([*rest], "event")
    if verb in ("don't", "do") and len(after) > 1:
        negated = after[1:] if verb == "do" and after[0] == "not" else after
        if (verb == "do" and after[0] != "not") or negated[0] not in english.PRESENT:
            return None
        return ["doesn't", *rest[len(rest) - len(negated) :]], english.PRESENT[negated[0]]
    if verb == "used" and after[0] == "to":
        return [*rest], "event"
    if verb == "can" and after[0] in ("speak", "play", "sing", "swim", "cook", "drive", "ride"):
        return [*rest], "ability"
    if verb in english.PRESENT:
        category = english.PRESENT[verb]
        if verb in ("want", "love", "like", "plan", "intend") and after[0] == "to":
            category = "plan" if verb != "love" and verb != "like" else category
        # "the" and similar words refer to earlier sentences: "I love the idea".
        if after[0] in ("how", "when", "what", "hearing", "seeing", "the") or (category == "plan" and after[0] != "to"):
            return None
        if after[:2] == ["all", "the"] or (category == "plan" and after[1:2] and after[1] in english.PASSING_WANTS):
            return None
        return [_third(verb), *_conjoin(rest[1:])], category
    if verb in english.PAST and len(after) >= 2 and not (verb == "got" and _is_vague(after)):
        return None if english.PAST[verb] == "preference" and after[0] == "the" else ([*rest], english.PAST[verb])
    return None


def _having(rest: Sequence[str], after: Sequence[str]) -> tuple[list[str], str] | None:
    """The words after "have" in the third person, and the category."""
    if after[0] == "been" and len(after) > 2:
        if after[1] == "to":
            return ["has", *rest[1:]], "event"
        is_lasting = after[1] in english.CONTINUOUS and _lasts(after[1:])
        return (["has", *rest[1:]], english.CONTINUOUS[after[1]]) if is_lasting else None
    if after[0] in english.PARTICIPLES and len(after) > 1 and _lasts(after):
        return ["has", *rest[1:]], english.PARTICIPLES[after[0]]
    counted = after[0] in ("a", "an", "two", "three", "four", "five", "six", "my") or after[0].isdigit()
    return None if not counted or len(after) < 2 or _is_vague(after) else (["has", *rest[1:]], "possession")


def _lasts(words: Sequence[str]) -> bool:
    """Whether a verb of the tables with its next word states something lasting."""
    if words[0] == "looking" and words[1:2] not in (["into"], ["for"]):
        return False
    return not english.MUCH.intersection(words[2:3]) and " ".join(words[:2]) not in english.PASSING


def _is_vague(after: Sequence[str]) -> bool:
    return any(word.strip(_EDGES) in english.NOT_OWNED for word in after[1:3])


def _category_of_state(after: Sequence[str]) -> str | None:
    """The category of the words after "am" or "was"; None if they do not state anything lasting."""
    word = after[0]
    if word in ("a", "an"):
        vague = ("bit", "little", "lot", "big", "huge", "mess", "mix", "fan", "while", "few")
        if len(after) < 2 or (after[1] in vague and "fan" not in after[1:3]):
            return None
        return "preference" if "fan" in after[1:3] else "identity"
    if word == "the":
        return "identity"
    if word in english.CONTINUOUS:
        return english.CONTINUOUS[word] if len(after) > 1 and _lasts(after) else None
    if word == "born":
        return "identity"
    if word == "going" and after[1:2] == ["to"]:
        return "plan" if len(after) > 3 else None
    if word.isdigit() and "years" in after[1:2]:
        return "identity"
    return english.STATES.get(word)


def _third(verb: str) -> str:
    """The verb in the third person."""
    if verb in english.IRREGULAR:
        return english.IRREGULAR[verb]
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "o")) else f"{verb}s"


def _conjoin(words: Sequence[str]) -> list[str]:
    """The words after a verb in the present. A verb after "and" is put into the third person too."""
    return [
        _third(word) if index and words[index - 1] == "and" and word in english.PRESENT else word
        for index, word in enumerate(words)
    ]


def _of_speakers_own(words: Sequence[str], said: Utterance) -> _Clause | None:
    """A clause that begins with "My" or "One of my", as a fact about something of the speaker."""
    if [word.lower() for word in words[:3]] == ["one", "of", "my"]:
        own = _of_speakers_own(words[2:], said)
        return None if own is None else own._replace(text=f"One of {own.text}")
    if words[0].lower() != "my":
        return None
    for index in range(2, min(6, len(words) - 1)):
        verb = words[index].lower()
        plural = words[index - 1].lower()
        is_verb = _base(verb) in english.PRESENT and (
            verb != _base(verb) or plural.endswith("s") or plural in english.KIN
        )
        if is_verb or verb in english.PAST or verb in ("is", "are", "was", "were", "has", "have"):
            owned = words[1:index]
            said_of = words[index + 1 :]
            vague = {word.lower() for word in owned} & english.NOT_MINE
            if vague or not said_of or not _is_clear([*owned, *said_of]):
                return None
            if said_of[0].lower() in english.NOT_SAID_OF:
                return None
            kin = "family" if english.KIN.intersection(word.lower() for word in owned) else "relation"
            named = [word for word in owned if word[0].isupper()]
            entity = " ".join(named) or said.agent
            category = "preference" if owned[0].lower() in ("favorite", "favourite") else kin
            others = ["and" if word == "&" else word for word in words[1:]]
            return _clause([_possessive(said.agent), *others], entity, category, _OF_SPEAKER)
        if not re.fullmatch(r"[\w'&-]+", verb):
            return None
    return None


def _possessive(name: str) -> str:
    return f"{name}'s"


def _of_name(words: Sequence[str], said: Utterance, names: frozenset[str]) -> _Clause | None:
    """A clause about a name: capitalised words at the beginning, then a verb of the tables."""
    text = " ".join(words)
    name = _NAME.match(text)
    if name is None or name[0].endswith("'s"):
        return None
    parts = name[0].split()
    rest = text[name.end() :].split()
    if len(rest) < 2 or "I" in parts or any(part.lower().strip(_EDGES) in english.NOT_A_NAME for part in parts[:1]):
        return None
    verb, after = rest[0].lower(), [word.lower() for word in rest[1:]]
    is_known = len(parts) > 1 or parts[0] in names or said.id is None
    category: str | None = None
    if verb in ("is", "was"):
        category = _category_of_state(after) if is_known else None
        if category == "plan" or after[0] == "the":
            return None
    elif verb == "has":
        found = _having(rest, after)
        category = None if found is None else found[1]
    elif (base := _base(verb)) in english.PRESENT and verb != base and (is_known or base not in english.NOUNS):
        category = english.PRESENT[base]
    elif verb in english.PAST and is_known and len(after) >= 2:
        category = english.PAST[verb]
    if category is None or parts[0].endswith("ing") or not _is_clear(rest):
        return None
    return _clause([name[0], *rest], name[0], category, _OF_NAME)


def _base(verb: str) -> str:
    """The base form of a verb in the third person if the tables have it, else the verb itself."""
    for base, third in english.IRREGULAR.items():
        if verb == third:
            return base
    for ending in ("s", "es"):
        if verb.endswith(ending) and verb.removesuffix(ending) in english.PRESENT:
            return verb.removesuffix(ending)
    return verb


def _clause(words: Iterable[str], entity: str, category: str, confidence: float) -> _Clause:
    """The words as a sentence, with the first person replaced by the third."""
    said = [english.OWN_WORDS.get(word.lower().strip(_EDGES), word) for word in words]
    for index in range(1, len(said)):
        if said[index] == "I":
            said[index] = said[0].removesuffix("'s")
            following = said[index + 1 : index + 2]
            if following and (following[0] in english.PRESENT or following[0] in ("have", "am", "need")):
                said[index + 1] = _third(following[0])
    return _Clause(f"{' '.join(said).rstrip(_EDGES)}.", entity, category, confidence)


# Chinese


def _chinese(sentence: str, said: Utterance, names: frozenset[str]) -> Iterator[_Clause]:
    if chinese.HEDGES.search(sentence):
        return
    for part in _CHINESE_CLAUSE.split(sentence.strip("。！!.;\uff1b\"'“”")):
        words = chinese.OPENERS.sub("", part, count=1) if chinese.OPENERS.match(part) else part
        if not _CHINESE_CHARS_MIN <= len(words) <= _CHINESE_CHARS_MAX or chinese.UNCLEAR.search(words):
            continue
        clause = _chinese_fact(words, said, names)
        if clause is not None:
            yield clause


def _chinese_fact(words: str, said: Utterance, names: frozenset[str]) -> _Clause | None:
    own = chinese.OWN.fullmatch(words)
    if own is not None:
        cue = _chinese_cue(own["rest"])
        if cue is None or "我" in own["rest"]:
            return None
        return _chinese_clause(f"{said.agent}的{own['what']}{own['rest']}", said.agent, cue, _OF_SPEAKER)
    if words.startswith("我"):
        rest = re.sub("^[也就还]", "", words[1:])
        cue = _chinese_cue(rest)
        if cue is None:
            return None
        told = rest.replace("我的", "自己的").replace("我", "自己")
        return _chinese_clause(said.agent + told, said.agent, cue, _OF_SPEAKER)
    for name in _chinese_names(words, said, names):
        cue = _chinese_cue(words[len(name) :])
        if cue is not None and "我" not in words and (name in names or cue.lastgroup not in _WEAK_CUES):
            return _chinese_clause(words, name.strip("《》「」“”"), cue, _OF_NAME)
    return None


def _chinese_cue(rest: str) -> re.Match[str] | None:
    """The cue at the beginning of the words about a subject; None if they do not state anything lasting."""
    cue = _CHINESE_CUE.match(rest)
    if cue is None or chinese.NOT_A_FACT.match(rest):
        return None
    is_whole = cue.end() < len(rest) or len(cue[0]) > _CHINESE_WHOLE_CHARS or cue.lastgroup == "family"
    return cue if is_whole else None


def _chinese_names(words: str, said: Utterance, names: frozenset[str]) -> Iterator[str]:
    """The beginnings of `words` that may be a name."""
    marked = _CHINESE_NAME.match(words)
    if marked is not None:
        yield marked[0]
    for length in range(2, 5):
        if words[:length] in names or (said.id is None and _HAN.match(words)):
            yield words[:length]


def _chinese_clause(text: str, entity: str, cue: re.Match[str], confidence: float) -> _Clause:
    return _Clause(f"{text.rstrip(_PARTICLES)}。", entity, cue.lastgroup or "identity", confidence)
