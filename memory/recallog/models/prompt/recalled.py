"""The section RECALLED of a prompt: memories and entries that the other sections do not show, as set by the agent's
`rag`.

Without an index, words are compared. The setting `query_template` makes the query from these variables:

* `{current_state}`: the query of the caller, else the text of the scene, else the goal of the space;
* `{balance}`: the units that the agent may still spend; empty if it was never granted any;
* `{event_number}`: the number of the space's events;
* `{agent}`: the name of the agent;
* `{last_action}`: the text of its newest action; empty if it has none.

Automatic recall, the setting `auto_recall`, replaces all this: the newest messages of the user in a session are the
query, documents of the workspace are searched too, and the section has short snippets. Messages that are still in the
conversation are left out.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from recallog import retrieval
from recallog.index import delegation, messages, remote
from recallog.index.served_index import ServedIndex
from recallog.models.prompt.fitting import PromptLine
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.retrieval.searcher import Searcher
from recallog_projections.models.conversations import projection, rendering
from recallog_projections.models.conversations import tables as conversations
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.linking import NORMAL
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import Event, codec
from recallog_schemas.kinds import RagSettings
from recallog_schemas.models.prompt import limits as prompt_limits
from recallog_schemas.shortening import cut
from recallog_schemas.views import RecallHit, RecallView, Remembered, one_line
from recallog_schemas.views.grouping import group_hits

HEADING = "RECALLED"

_ELSEWHERE = 13
"""The number of hits that are requested beyond those shown, since other sections may already show some of them."""
_OWN_MESSAGES = 50
"""The number of hits that automatic recall requests beyond those shown, since most may be messages of the
conversation."""
_USER_SAID = b'"' + rendering.USER_SAID.encode() + b'"'
_DEFAULTS = RagSettings.model_construct()
_AUTOMATIC = RagSettings.model_construct(limit=prompt_limits.AUTO_RECALL_HITS)
_CONSIDERED = 4 * prompt_limits.AUTO_RECALL_MESSAGES
"""The number of the user's newest messages that are read, since some of them may have been removed."""
_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class MessagesOfSession:
    """The messages that a conversation returns."""

    agent: str
    session: str | None
    since: int
    """The offset after which the conversation contains its messages. Earlier ones were compacted."""

    @classmethod
    def read(cls, snapshot: Snapshot, space: str, agent: str, session: str) -> Self:
        """Read which messages of a session remain. The snapshot has the row `key`."""
        compacted = snapshot.row(conversations.COMPACTIONS, space, agent, session)
        return cls(agent, session, -1 if compacted is None else compacted.upto)

    @staticmethod
    def key(space: str, agent: str, session: str) -> RowKey:
        return RowKey(conversations.COMPACTIONS.name, space, agent, session)

    def has(self, event: Event, offset: int) -> bool:
        """Whether the conversation itself contains an event, as a message that was not compacted."""
        is_within = event.session == self.session and offset > self.since
        return is_within and projection.is_message_of(event, self.agent)


@dataclass(frozen=True, slots=True)
class Automatic:
    """The query of automatic recall."""

    query: str
    """The newest messages of the user; "" if there are none."""
    messages: MessagesOfSession
    """The messages of the session that the query is from."""


def query_of(texts: Sequence[str]) -> str:
    """The query of automatic recall: the last 5 of `texts`, the messages of a user, 200 characters each, and of the
    joined text the last 500."""
    newest = [
        text.strip()[: prompt_limits.AUTO_RECALL_MESSAGE_CHARS] for text in texts[-prompt_limits.AUTO_RECALL_MESSAGES :]
    ]
    return "\n".join(text for text in newest if text)[-prompt_limits.AUTO_RECALL_QUERY_CHARS :]


async def automatic(reading: AgentReading, snapshot: Snapshot, session: str | None) -> Automatic:
    """The query of automatic recall in a session. If `session` is None, it is that of the user's newest message among
    the memories of the snapshot."""
    space, agent = reading.space, reading.agent
    said = [
        codec.decode(memory.data)
        for memory in reversed(snapshot.memories(space, agent))
        if _USER_SAID in memory.data  # checked before decoding, since most events are not messages of the user
    ]
    said = [event for event in said if event.kind == rendering.USER_SAID and event.session is not None]
    chosen = session if session is not None else next((event.session for event in said), None)
    if chosen is None:
        return Automatic("", MessagesOfSession(agent, None, -1))
    newest = [event for event in said if event.session == chosen][:_CONSIDERED]
    removed = [RowKey(conversations.REMOVED.name, space, agent, event.id) for event in newest]
    found = await reading.snapshot([*removed, MessagesOfSession.key(space, agent, chosen)])
    texts = [event.text for event in newest if found.row(conversations.REMOVED, space, agent, event.id) is None]
    return Automatic(query_of(texts[::-1]), MessagesOfSession.read(found, space, agent, chosen))


def rows(space: str, agent: str) -> list[RowKey]:
    """The rows that the variables of a template need."""
    return [RowKey(activity.SPACES.name, space), RowKey(tables.AGENTS.name, space, agent)]


def settings_of(own: AgentSettings) -> RagSettings:
    """The settings of the section RECALLED for an agent with these settings."""
    if own.auto_recall:
        return _AUTOMATIC
    return _DEFAULTS if own.rag is None else RagSettings.model_validate(own.rag)


@dataclass(frozen=True, slots=True)
class RecalledRequest:
    """The input of the section RECALLED."""

    query: str
    """The query of the prompt."""
    rag: RagSettings
    is_given: bool
    """Whether the caller gave the query. Otherwise the query is the scene."""
    actions: Sequence[Remembered]
    """The agent's own newest actions."""
    auto: Automatic | None
    """The query of automatic recall, which replaces `query`."""
    passed: MessagesOfSession | None
    """The messages that the caller passes beside the prompt."""


async def recall_for_prompt(reading: AgentReading, snapshot: Snapshot, asked: RecalledRequest) -> RecallView | None:
    """Memories related to the query, best first; None if there is no query, or no section.

    If the prompt is composed in this process, and another process serves the semantic index, the other process answers
    this part.
    """
    rag, auto = asked.rag, asked.auto
    searcher: Searcher = reading.searcher
    text = asked.query if auto is None else auto.query
    if rag.enabled and rag.query_template is not None:
        text = _fill_template(rag.query_template, text, snapshot, reading, asked.actions)
    if not rag.enabled or snapshot.processed < 0 or not text.strip():
        return None
    # More hits are requested than are shown, since other sections of the prompt may show some of them.
    question = retrieval.query.RecallQuery.from_text(
        reading.space,
        reading.agent,
        text,
        reading.as_of,
        top_k=rag.limit + (_ELSEWHERE if auto is None else _OWN_MESSAGES),
        asked=asked.is_given or auto is not None,
        documents=auto is not None,
    )
    if question.offset_until is None:  # one prompt has one checkpoint: the views may have moved on
        question = replace(question, offset_until=snapshot.processed)
    index = searcher.index
    retained = reading.log_events
    compared = retained if index is not None else min(retained, prompt_limits.PROMPT_RECALLED_EVENTS)

    async def recall_in_time() -> RecallView:
        return await retrieval.recall.recall(reading, question, compared)

    if not isinstance(index, ServedIndex):
        return await recall_in_time()

    async def recall_by_index() -> RecallView:
        past = reading.as_of is not None
        message = messages.Recall(delegation.encode(question), compared, retained, past, list(searcher.added))
        answer = await remote.call(index.home, message, deadline_seconds=index.deadline_seconds)
        return RecallView.model_validate_json(answer)

    return await delegation.answer(recall_by_index, index.serve, recall_in_time)


def plain(text: str) -> str:
    """A text in a form that is equal for different spellings of one message."""
    return " ".join(text.casefold().split()).strip(" .!?。！？…")


@dataclass(frozen=True, slots=True)
class RecalledSection:
    """The content of the section RECALLED."""

    hits: Sequence[RecallHit]
    """Best first."""
    notes: Sequence[str] = ()
    """Notes on the times that the query names, to show before the hits."""


def section_of(
    found: RecallView | None, asked: RecalledRequest, elsewhere: Collection[int], query: str | None
) -> RecalledSection:
    """The hits to show, and notes on the times that the caller's `query` names and that have no hits."""
    hits = choose_hits(found, asked, elsewhere, query)
    return RecalledSection(hits, () if found is None or asked.auto is not None else found.notes)


def in_groups(hits: Sequence[RecallHit]) -> list[tuple[RecallHit, bool]]:
    """The hits, the oldest group first, each with whether it follows another hit of its group."""
    oldest_first = sorted(group_hits(hits), key=lambda group: min(hit.position.offset for hit in group))
    return [(hit, number > 0) for group in oldest_first for number, hit in enumerate(group)]


def choose_hits(
    found: RecallView | None, asked: RecalledRequest, elsewhere: Collection[int], query: str | None
) -> list[RecallHit]:
    """The hits that the section shows, best first: those that are not weak and not at one of the offsets `elsewhere`.

    An event that only repeats the `query` of the caller, or a message of the user, is left out: it is not an answer.
    Messages that the conversation itself contains are left out too.
    """
    hits, auto, rag = [] if found is None else found.hits, asked.auto, asked.rag
    queries = {plain(text) for text in ([query or ""] if auto is None else auto.query.splitlines())}
    close = [hit for hit in hits if not hit.weak and hit.position.offset not in elsewhere]
    close = [hit for hit in close if hit.is_entry or plain(hit.event.text) not in queries]
    for known in (asked.passed, None if auto is None else auto.messages):
        if known is not None:
            close = [hit for hit in close if not known.has(hit.event, hit.position.offset)]
    if auto is None:
        return close[: rag.limit]
    left, chosen = prompt_limits.AUTO_RECALL_CHARS, list[RecallHit]()
    for hit in close:
        left -= len(_snippet(hit))
        if left < 0 or len(chosen) == rag.limit:
            break
        chosen.append(hit)
    return chosen


def _snippet(hit: RecallHit) -> str:
    return cut(one_line(hit.quote), prompt_limits.AUTO_RECALL_MESSAGE_CHARS)


def entries_of(hits: Sequence[RecallHit], offsets: Collection[int]) -> tuple[str, ...]:
    """The ids of the entries among `hits` that are at one of the offsets."""
    entries = (hit for hit in hits if hit.event.kind == entry_reading.KIND)
    return tuple(hit.event.id for hit in entries if hit.position.offset in offsets)


def line(hit: RecallHit, reader: str, *, dated: bool, auto: bool = False, follows: bool = False) -> PromptLine:
    """A hit as a line; for automatic recall a snippet after "- ". A hit that follows another one of its group is
    indented.

    An entry whose priority is not normal shows it: `[turn 003][memory.retained][critical] …`.
    """
    indent = "  " if follows else ""
    if auto:
        return PromptLine(hit.quote_data(_snippet(hit)), f"{indent}- ", hit.position.offset)
    prefix = indent + hit.line_prefix(reader, dated=dated)
    label = _label(hit.event)
    prefix = prefix if label is None else f"{prefix[:-1]}[{label}] "
    return PromptLine(hit.quote_data(hit.quote), prefix, hit.position.offset)


def _label(event: Event) -> str | None:
    priority = event.payload.get("priority") if event.kind == entry_reading.KIND else None
    return None if priority is None or priority == NORMAL else str(priority)


def _fill_template(
    template: str, state: str, snapshot: Snapshot, reading: AgentReading, actions: Sequence[Remembered]
) -> str:
    """The template with the values of its variables. Variables inside the texts of variables are not replaced."""
    space, agent = reading.space, reading.agent
    own, span = snapshot.row(tables.AGENTS, space, agent), snapshot.row(activity.SPACES, space)
    balance = own.balance if own is not None else None
    values = {
        "current_state": state,
        "balance": "" if balance is None else f"{balance:g}",
        "event_number": str(span.events if span is not None else 0),
        "agent": agent,
        "last_action": one_line(actions[-1].text) if actions else "",
    }
    return _VARIABLE.sub(lambda found: values[found[1]], template)
