"""Replays conversations, and reads what the memory of the first speaker shows at the end of each session.

A memory holds a conversation in three forms:

    <space>       the turns as `recallog ingest --format locomo` publishes them. After each turn, the reflection that is
                  due is written: without a model it quotes.
    <space>/chat  the turns as messages of a conversation, the agent's as those of the assistant. A long session is
                  compacted by the reactor.
    <space>/chat  each turn as an entry in the fastest tier, at the time of the turn. At the end of each session plans
                  are made until they move nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any, cast

from recallog import Event, Memory
from recallog_eval import locomo
from recallog_eval.shown import NewestTurns, Shown, show_events, show_texts
from recallog_schemas import limits
from recallog_service.formats import derived_id

SPOKEN = "agent.spoke"
_RETAINED = "memory.retained"
_INSTANT = timedelta(microseconds=1)
_SUMMARY_ROLE = "system"
"""The role of the message that replaces compacted messages. Turns have the role user or assistant."""
_TIER = "fast"
_IMPORTANCE = 0.8
"""The least importance that the fastest tier keeps."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The views of an agent's memory at the end of a session, before questions are asked."""

    space: str
    session: str
    is_last: bool
    """Whether it is the last session of the space."""
    newest: NewestTurns
    shown: Sequence[Shown]


async def replay(
    memory: Memory,
    events: Sequence[Event],
    agents: Mapping[str, str],
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> AsyncIterator[SessionEnd]:
    """Publish the events of conversations, and yield the end of each session for the agent of its space.

    `settings` are those of each agent, as `configure_agent` takes them. `progress` is called with events (published,
    total). Raises `ModelMisconfigured`, and `InvalidArgument` for settings that are not valid.
    """
    done = 0
    for space, of_space in groupby(events, lambda event: event.space):
        replayed = _Replayed(memory, space, agents[space])
        await memory.configure_agent(space, agents[space], **settings)
        sessions = [list(together) for _, together in groupby(of_space, lambda event: event.session)]
        for number, session in enumerate(sessions, 1):
            for event in session:
                await replayed.publish(event)
                done += 1
                if progress is not None:
                    progress(done, len(events))
            if session[0].session is not None:
                await replayed.end_session(session)
                yield await replayed.read(session[0].session, is_last=number == len(sessions))


@dataclass(slots=True)
class _Replayed:
    """A conversation that is being replayed."""

    memory: Memory
    space: str
    agent: str
    stream: list[str] = field(default_factory=list)
    """The summary of the agent's stream for each session."""
    compactions: list[str] = field(default_factory=list)
    """The summary of each session that was compacted."""

    @property
    def chat(self) -> str:
        """The space of messages and entries."""
        return f"{self.space}/chat"

    async def publish(self, event: Event) -> None:
        await self.memory.publish(event)
        if event.kind != SPOKEN:
            return
        await self.memory.react(self.space)
        role = "assistant" if event.agent == self.agent else "user"
        message = {"role": role, "content": event.text}
        await self.memory.conversation.add(self.chat, self.agent, cast("str", event.session), [message], continues=True)
        await self.memory.publish(_make_entry(event, self.chat, self.agent))
        await self.memory.react(self.chat)

    async def end_session(self, events: Sequence[Event]) -> None:
        """Note the summaries of a session that has ended, and consolidate."""
        session, memory = cast("str", events[0].session), self.memory
        began, ended = events[0].at, events[-1].at
        self.stream.append((await memory.stream.summarize(self.space, self.agent, began, ended + _INSTANT)).text)
        messages = (await memory.conversation.messages(self.chat, self.agent, session)).messages
        self.compactions += [str(each["content"]) for each in messages if each["role"] == _SUMMARY_ROLE]
        while (await memory.tiers.consolidate(self.chat, self.agent, now=ended)).moves:
            pass

    async def read(self, session: str, *, is_last: bool) -> SessionEnd:
        memory, space, agent = self.memory, self.space, self.agent
        beliefs = (await memory.beliefs(space, agent)).beliefs
        archived = await memory.long_term.list(self.chat, agent, type="summary", limit=limits.PAGE_ITEMS_MAX)
        every = (await memory.episodic(space, agent, window=limits.LOG_EVENTS_KEPT)).memories
        return SessionEnd(
            space,
            session,
            is_last,
            NewestTurns([each for each in every if each.event.kind == SPOKEN], agent),
            (
                show_events("window", (await memory.episodic(space, agent)).memories, agent),
                show_events("salient events", (await memory.salient(space, agent)).memories, agent),
                show_events("beliefs", beliefs, agent),
                show_texts("quotes in beliefs", [each.line(agent) for each in beliefs]),
                show_texts("stream summaries", self.stream),
                show_texts("compactions", self.compactions),
                show_texts("summaries of archived entries", [each.text for each in reversed(archived.entries)]),
                show_texts("prompt", [(await memory.context(space, agent)).text]),
            ),
        )


async def ask(memory: Memory, space: str, agent: str, question: str) -> Sequence[Shown]:
    """The views that depend on the question."""
    salient = await memory.salient(space, agent, question)
    prompt = await memory.context(space, agent, query=question)
    return (
        show_events("salient events, asked", salient.memories, agent),
        show_texts("prompt, asked", [prompt.text]),
    )


def read_events(text: bytes, spaces: Mapping[str, str]) -> list[Event]:
    """The events of the conversations of a LoCoMo file that `spaces` has."""
    return [item.event for item in locomo.read(text) if item.event is not None and item.event.space in spaces]


def _make_entry(event: Event, space: str, agent: str) -> Event:
    payload = {"text": event.text, "type": "note", "tier": _TIER, "importance": _IMPORTANCE}
    return Event(
        id=derived_id(space, event.session, f"{_RETAINED} {event.id}"),
        space=space,
        agent=agent,
        kind=_RETAINED,
        session=event.session,
        turn=event.turn,
        at=event.at,
        payload=payload,
    )
