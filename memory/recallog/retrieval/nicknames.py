"""Nicknames that people give themselves: after a memory says "call me Lulu", "Lulu" is a name of its author.

If a question names no agent, but has words that may be names, memories with such a word and a phrase of
`name_words.txt` are looked up by words. Nicknames are not in a view. A memory that the agent may not see, that was
erased, or that is later than the past in question, names nobody.
"""

import re
from collections.abc import Awaitable, Callable, Sequence

from recallog.retrieval.names import SHARED_MAX, WORDS, find_possible
from recallog_schemas.kinds.trust import is_untrusted
from recallog_schemas.own_words import own_words
from recallog_schemas.views import RecallView

MEMORIES_READ = 20

_BEFORE, _AFTER = (
    "|".join(WORDS[section].replace(" ", r"\s").splitlines()) for section in ("before the name", "after the name")
)
_QUOTE = "[\"'\u2018\u2019“”„«»「」『』]"


async def find_nicknames(question: str, ask: Callable[[str], Awaitable[RecallView]]) -> Sequence[tuple[str, str]]:
    """The possible names in a question that are nicknames, each with an agent that said so.

    `ask` returns the memories nearest to words. A nickname that several agents have names all of them, as a part of a
    name does. Only an agent's own words count: no quotations, no entries, and nothing from tools or imports.
    """
    possible = [word for _, _, word in find_possible(question)]
    if not possible:
        return ()
    pattern = _compile_pattern(possible)
    agents: dict[str, set[str]] = {}
    for hit in (await ask(f"{' '.join(possible)} {WORDS['search']}")).hits:
        if not hit.is_entry and not is_untrusted(hit.trust):
            for match in pattern.finditer(own_words(hit.text)):
                agents.setdefault(match[match.lastindex or 0].lower(), set()).add(hit.event.agent)
    return [(name, agent) for name, having in agents.items() if len(having) <= SHARED_MAX for agent in sorted(having)]


def _compile_pattern(possible: Sequence[str]) -> re.Pattern[str]:
    """The pattern of a phrase by which its author has one of these names."""
    spaced = r"(?!\w|['\u2019]s\b)"
    either = "|".join(re.escape(word) + (spaced if word[-1] < "\u3000" else "") for word in possible)
    before = rf"(?<!{_QUOTE})(?<![^\W\d_\u3000-\uffff])(?:{_BEFORE})[\s:\uff1a]*{_QUOTE}?ب?({either})"
    return re.compile(rf"{before}|({either}){_QUOTE}?(?:{_AFTER})", re.IGNORECASE)
