"""Grammatical persons of a question: what "I", "my", "you" and "your" refer to, in several languages.

The subject of "what did I tell you about my mother" is the first person, that of "what book did you recommend me" the
second. `subject` finds it: the first subject pronoun, or else the first other pronoun. Courtesies, such as "can you
tell me", do not count. `find_meant` maps it to agents.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from recallog.retrieval.sections import read_sections
from recallog_projections.views.outline import Participant

Person = Literal["first", "second"]

PRESUMED = 1 / 3
"""The weight of the user for a question without pronouns and names. The statements of an assistant answer users, and
repeat them."""


class Subject(NamedTuple):
    """The person that a question is about."""

    person: Person
    is_subject: bool
    """Whether its pronoun is a subject ("I"), and not an object or a possessive ("my")."""


_USERS = frozenset({"user", "human", "customer", "client", "visitor", "guest"})
_ASSISTANTS = frozenset(
    {"assistant", "ai", "bot", "chatbot", "model", "agent", "companion", "llm", "gpt", "chatgpt", "claude", "gemini"}
)
"""Parts of names, in lower case, that formats and frameworks give to the two sides of a dialogue."""
_NEITHER = frozenset({"system", "developer", "narrator", "tool", "function", "environment", "world"})
_FORMS = dict(read_sections("pronouns.txt"))


def _any(forms: str) -> str:
    """The forms of all languages in sections of `pronouns.txt`: whole words, and those that match anywhere."""
    return f"\\b(?:{_FORMS[forms]}\n)\\b|(?:{_FORMS.get(f'{forms} anywhere', '(?!)')}\n)"


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_COURTESY = _compile_pattern(_any("courtesies"))
_SUBJECTS = _compile_pattern(f"(?P<first>{_any('first subjects')})|(?P<second>{_any('second subjects')})")
_OTHERS = _compile_pattern(f"(?P<first>{_any('first others')})|(?P<second>{_any('second others')})")
_PART = re.compile(r"[A-Za-z]+")


def subject(question: str) -> Subject | None:
    """The grammatical person that a question is about; None without a pronoun of the first or second person."""
    text = _COURTESY.sub(" ", question.replace("\u2019", "'").replace("`", "'"))
    for pattern, is_subject in ((_SUBJECTS, True), (_OTHERS, False)):
        found = pattern.search(text)
        if found is not None:
            return Subject("first" if found["first"] is not None else "second", is_subject)
    return None


def find_meant(
    question: str, asker: str, named: Collection[str], participants: Collection[Participant]
) -> Mapping[str, float]:
    """The agents that a question of `asker` is about, among the `participants` of a space, each with its weight.

    Between users and assistants, "I" is the user and "you" the assistant, even if the assistant asks its memory in the
    words of its user. Otherwise "I" is the asker, and "you" the other one of two. If the question names agents
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
    """The users and the assistants. If only one side is known by its names, and there is one other agent, that agent is
    the other side."""
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
