"""Nicknames that people give themselves: after a memory says "call me Lulu", "Lulu" is a name of its author.

If a question names no agent, but has words that may be names, the memories that contain such a word are read for the
phrases of `name_words.txt`. Nicknames are not in a view. A memory that the agent may not see, that was erased, or that
is later than the past in question, names nobody.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from recallog.index.indexer import IndexSnapshot
from recallog.reading.read_session import Snapshot
from recallog.retrieval import by_index, persons
from recallog.retrieval.names import SHARED_MAX, WORDS, find_possible
from recallog.retrieval.query import RecallQuery
from recallog_projections.index import terms
from recallog_projections.views import settings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import codec, limits
from recallog_schemas.kinds.trust import is_untrusted
from recallog_schemas.own_words import own_words

_MEMORIES_READ = 20
"""From an index: those in which the words and the phrases are rarest."""
_QUOTE = "[\"'\u2018\u2019“”„«»「」『』]"
_BEFORE, _AFTER = (
    "|".join(WORDS[section].replace(" ", r"\s").splitlines()) for section in ("before the name", "after the name")
)
_BEGINS = re.compile(rf"(?<![^\W\d_\u3000-\uffff])(?P<said>{_BEFORE})[\s:\uff1a]*{_QUOTE}?(?:ب(?=\w))?", re.IGNORECASE)
_ENDS = re.compile(f"{_QUOTE}?(?P<said>{_AFTER})")
_GOES_ON = re.compile(
    r"[^\W_\u3000-\uffff]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f]|['\u2019]s\b|(?![吧呢啊呀哦喔啦嘛就])[一-鿿]"
)
"""After a word that is not the whole name, or not a name: "call me Lulu's friend", "我叫妈妈来" ("I had Mum come")."""
_DENIED = re.compile(WORDS["denied by"], re.VERBOSE)
_DENIED_CHARS = 100
"""Characters before a phrase that are searched for what denies it."""


async def find_nicknames(
    query: RecallQuery, snapshot: Snapshot, index: IndexSnapshot | None
) -> Sequence[tuple[str, str]]:
    """The words of a question that are nicknames, each with an agent that has it. Without an index, the memories of the
    views are read.

    A nickname that several agents have names all of them, as a part of a name does. Only an agent's own words count: no
    quotations, no entries, and nothing from tools or imports. If a pronoun is the subject of the question, no word is.
    """
    possible = [word.lower() for _, _, word in islice(find_possible(query.text), limits.RECALL_TERMS_MAX)]
    about = persons.subject(query.text)
    if not possible or (about is not None and about.is_subject):
        return ()
    if index is None:
        read: Iterable[tuple[bytes, str | None]] = [
            (each.data, each.text)
            for each in snapshot.memories(query.space, query.agent)
            if any(map(str(each.data, "utf-8").lower().__contains__, possible))
        ]
    else:
        searched = terms.terms(f"{' '.join(possible)} {WORDS['search']}")
        read = await by_index.read_by_words(index, query, searched, _MEMORIES_READ)
    sources = SourceClasses(snapshot.row(settings.SPACES, query.space))
    agents: dict[str, set[str]] = {}
    for data, text in read:
        event = codec.decode(data)
        shown = event.text if text is None else text
        if any(_find_claimed(shown.lower(), possible)) and not is_untrusted(sources.class_of(event)):
            for word in _find_claimed(own_words(shown).lower(), possible):
                agents.setdefault(word, set()).add(event.agent)
    return [(name, agent) for name, having in agents.items() if len(having) <= SHARED_MAX for agent in sorted(having)]


def _find_claimed(text: str, possible: Sequence[str]) -> Iterator[str]:
    """The words of `possible` that the author of a text in lower case is called."""
    found = [
        (phrase, word)
        for phrase in _BEGINS.finditer(text)
        for word in possible
        if text.startswith(word, phrase.end()) and not _GOES_ON.match(text, phrase.end() + len(word))
    ]
    found += [
        (each, word) for each in _ENDS.finditer(text) for word in possible if text.endswith(word, 0, each.start())
    ]
    for phrase, word in found:
        end = phrase.start("said")
        if not _DENIED.search(text, max(0, end - _DENIED_CHARS), end):
            yield word
