"""Grammatical persons of a question: what "I", "my", "you" and "your" refer to, in several languages.

The subject of "what did I tell you about my mother" is the first person, that of "what book did you recommend me" the
second. `subject` finds it: the first subject pronoun, or else the first other pronoun. Courtesies, such as "can you
tell me", do not count. `meant` maps it to agents.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from recallog_projections.views.outline import Participant

Person = Literal["first", "second"]

PRESUMED = 1 / 3
"""How far a question without pronouns and names is about the user: what an assistant says answers users, and repeats
them."""


class Subject(NamedTuple):
    """The person that a question is about."""

    person: Person
    is_subject: bool
    """Whether its pronoun is a subject ("I"), and not an object or a possessive ("my")."""


_USERS = frozenset({"user", "human", "customer", "client", "visitor", "guest"})
_ASSISTANTS = frozenset(
    {"assistant", "ai", "bot", "chatbot", "model", "agent", "companion", "llm", "gpt", "chatgpt", "claude", "gemini"}
)
"""Parts of names, in lower case, by which formats and frameworks name the two sides of a dialogue."""
_NEITHER = frozenset({"system", "developer", "narrator", "tool", "function", "environment", "world"})

# Of each language: the subjects and the other forms of each person. French "mes" and Italian "ma" are left out, as they
# are words of other languages. Whole words, unless the script has no spaces.
_FIRST_SUBJECTS = (
    r"(?-i:I)(?!\.)|(?:did|do|have|had|was|am|can|could|would|will|should|shall|that|what|where|when|if)\s+i|i(?='(?:m|ve|d|ll)\b)"
    r"|yo|te\s+(?!acuerdas|recuerdas)\w+(?<!ste)(?<!stes)|je|j(?=')|ich|eu|io|ti\s+(?:ho|avevo)|я|ik"
)
_SECOND_SUBJECTS = (
    r"you|tú|tu|usted|vos|me\s+\w+[ai]ste|vous|t(?='(?:as|es|avais|étais|aurais)\b)|du|(?<=\s)(?-i:Sie)|você|mi\s+ha[i]?"
    r"|ты|вы|jij"
)
_FIRST_OTHERS = (
    r"me|my|mine|mí|mi|mis|míos?|mías?|conmigo|moi|mon|m(?=')|mich|mir|mein(?:e[mnrs]?)?|meus?|minhas?|mim|comigo|mio|mia"
    r"|miei|mie|мне|меня|мой|моя|моё|мои|моего|моей|моём|моих|mij|mijn"
)
_SECOND_OTHERS = (
    r"your|yours|tus?|ti|contigo|tuyos?|tuyas?|toi|ton|ta|tes|te|votre|vos|dich|dir|dein(?:e[mnrs]?)?"
    r"|(?-i:Ihnen)|(?<=\s)(?-i:Ihr(?:e[mnrs]?)?)|teus?|tuas?|contigo|tuo|tua|tuoi|tue|тебе|тебя|твой|твоя|твоё|твои|вам|вас"
    r"|ваш|ваша|ваше|ваши|jou|jouw"
)

# Chinese, Japanese and Korean have no cases that tell subjects from objects, except for particles.
_FIRST_UNSPACED = (
    r"(?<!自)我(?![们們])|私(?=[はがのもにを、])|僕|俺|わたし|(?<![가-힣])(?:나는|내가|내|나의|나에게|나한테|저는|제가|저의|저한테)(?![가-힣])"
    r"|(?<!\S)(?:मैं|मैंने|मेरा|मेरी|मेरे|मुझे)(?!\S)"
)
_SECOND_UNSPACED = (
    r"[你您妳](?![们們好])|あなた|貴方|くれた|くれました|くださった|くださいました"
    r"|(?<![가-힣])(?:너는|네가|니가|너의|너한테|당신[가-힣]?)(?![가-힣])|(?<!\S)(?:तुम|तुमने|तूने|आप|आपने|तुम्हारा|तुम्हारी|आपका|आपकी|आपके)(?!\S)"
)

_COURTESY = re.compile(
    r"""
    \b(?: (?:can|could|would|will)\s+(?:you|u)(?:\s+please)?
        | do\s+you\s+(?:still\s+|even\s+)?(?:remember|recall|know|think|have\s+any)
        | (?:tell|remind|show|help|give|let|walk|with)\s+me | thank\s+you
        | i\s+(?:want|need|would\s+like|wanted)\s+to\s+(?:know|ask|remember|find)
        | i(?:\s+am|'m|\s+was)?\s+(?:wonder(?:ing)?|trying\s+to\s+remember|curious)
        | i(?:'ve)?\s+(?:forgot|forget|forgotten|(?:can't|cannot|don't|do\s+not)\s+(?:remember|recall))
        | (?:puedes|podrías|puede|podría)\s+(?:decirme|recordarme|usted)? | te\s+acuerdas | (?:tú\s+)?recuerdas | dime
        | recuérdame | quiero\s+saber
        | peux-tu | pourrais-tu | pouvez-vous | pourriez-vous | te\s+souviens-tu | tu\s+te\s+souviens | sais-tu
        | (?:dis|rappelle|dites|rappelez)-moi
        | (?:kannst|könntest|weißt)\s+du(?:\s+mir)? | (?:können|könnten|wissen)\s+Sie(?:\s+mir)?
        | erinnerst\s+du\s+dich | erinnern\s+Sie\s+sich | (?:sag|zeig|hilf|sagen\s+Sie)\s+mir | erinnere\s+mich
        | você\s+(?:lembra|sabe|pode) | (?:puoi|potresti)\s+dirmi | ti\s+ricordi | dimmi
        | (?:можешь|можете|помнишь|помните|знаешь|знаете)(?:\s+ли)?(?:\s+(?:ты|вы))? | (?:скажи|напомни)(?:те)?\s+мне
    )\b
    | ^(?:请问|請問)?(?:请|請|麻烦|麻煩)?(?:[你您](?:能不能|能否|可不可以|可否|可以|能))?
      (?:告诉我|告訴我|提醒我|帮我|幫我|给我|給我)
    | [你您](?:还|還)?(?:记不记得|記不記得|记得|記得|知道|知不知道) | [你您](?:能不能|能否|可不可以|可否|可以|能)
    | 我(?:想|要)?(?:问问|问|問|知道|了解)
    | 我(?:忘了|忘记了?|忘記了?|不记得了?|不記得了?|记不清了?|记不得了?|想不起来了?)
    | 覚えて(?:い)?ますか | 教えて(?:くれ(?:る|ますか|ませんか)|ください)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SUBJECTS = re.compile(
    rf"\b(?:(?P<first>{_FIRST_SUBJECTS})|(?P<second>{_SECOND_SUBJECTS}))\b"
    rf"|(?P<first_unspaced>{_FIRST_UNSPACED})|(?P<second_unspaced>{_SECOND_UNSPACED})",
    re.IGNORECASE,
)
_OTHERS = re.compile(rf"\b(?:(?P<first>{_FIRST_OTHERS})|(?P<second>{_SECOND_OTHERS}))\b", re.IGNORECASE)
_PART = re.compile(r"[A-Za-z]+")


def subject(question: str) -> Subject | None:
    """The grammatical person that a question is about; None without a pronoun of the first or second person."""
    text = _COURTESY.sub(" ", question.replace("\u2019", "'").replace("`", "'"))
    for pattern, is_subject in ((_SUBJECTS, True), (_OTHERS, False)):
        found = pattern.search(text)
        if found is not None and found.lastgroup is not None:
            return Subject("first" if found.lastgroup.startswith("first") else "second", is_subject)
    return None


def meant(
    question: str, asker: str, named: Collection[str], participants: Collection[Participant]
) -> Mapping[str, float]:
    """The agents that a question is about when `asker` asks, among the `participants` of a space, each with how far.

    Between users and assistants, "I" is the user and "you" the assistant, also if the assistant asks its memory in the
    words of its user. Otherwise "I" is the asker, and "you" the other one of two. Of a question that names agents
    (`named`), only the subject counts: "what did Melanie tell me" is not about the asker.
    """
    found = subject(question)
    users, assistants = _sides(participants)
    if found is None:
        return dict.fromkeys(users, PRESUMED) if users and assistants and not named else {}
    if named and not found.is_subject:
        return {}
    if users and assistants:
        side = users if found.person == "first" else assistants
        return dict.fromkeys({asker} if asker in side else side, 1.0)
    speakers = {each.name for each in participants if not _parts(each.name) & _NEITHER}
    if found.person == "first":
        return dict.fromkeys(speakers & {asker}, 1.0)
    return dict.fromkeys(speakers - {asker}, 1.0) if len(speakers) == 2 and asker in speakers else {}


def _sides(participants: Iterable[Participant]) -> tuple[frozenset[str], frozenset[str]]:
    """The users and the assistants. If only one side is known by its names, a single other agent is the other side."""
    users, assistants, others = set(), set(), set()
    for each in participants:
        parts = _parts(each.name)
        if each.visitor or parts & _USERS:
            users.add(each.name)
        elif parts & _ASSISTANTS:
            assistants.add(each.name)
        elif not parts & _NEITHER:
            others.add(each.name)
    if len(others) == 1:
        if assistants and not users:
            users = others
        elif users and not assistants:
            assistants = others
    return frozenset(users), frozenset(assistants)


def _parts(name: str) -> frozenset[str]:
    return frozenset(part.lower() for part in _PART.findall(name))
