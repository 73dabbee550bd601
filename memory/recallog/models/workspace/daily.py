"""The reactor of daily logs: when a turn ends, requests and results of its session become lines of documents."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.access import MemoryAccess
from recallog.models.workspace import daily_cues, daily_queries
from recallog.models.workspace.daily_cues import Speaker
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_schemas import Event
from recallog_schemas.models.workspace import limits as workspace_limits
from recallog_schemas.models.workspace.triggers import DAILY
from recallog_schemas.own_words import own_words

FACTS = "session_facts"
"""The key of the scratchpad to which the lines of a session are appended."""
_SPOKEN = "agent.spoke"


class Daily(Reactor):
    """Answers `daily.due` with up to three `item.appended`: lines for the document of the day, for the scratchpad of
    the session, and for MEMORY.md if there is one.

    They are independent: the view of items applies or refuses each by the rules of its document. The day is that of the
    event that ended the turn, so that the same history always gives the same documents.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({DAILY})
    pure: ClassVar[bool] = True
    priority: ClassVar[int] = -10

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        if trigger.session is None or trigger.at is None:
            return []
        session = await daily_queries.of_trigger(self._access, trigger, trigger.session)
        found: dict[str, Event] = {}
        trigger.read.update(session.said)
        for said in session.said.values():
            # Messages of others are messages of a user for this agent.
            speaker: Speaker = "agent" if said.kind == _SPOKEN and said.agent == trigger.agent else "user"
            line = daily_cues.line_of(speaker, own_words(said.text), session.language)
            if line is not None and len(found) < workspace_limits.DAILY_LINES_MAX:
                found.setdefault(line, said)
        if not found:
            return []
        lines, subjects = list(found), {event.subject for event in found.values()}
        subject = subjects.pop() if len(subjects) == 1 else None
        places: list[tuple[Sequence[str], str, Sequence[str]]] = [
            (fact_blocks.WORKSPACE, fact_blocks.daily_key(trigger.at), lines),
            (items.session_namespace(trigger.session), FACTS, lines),
        ]
        places += [(fact_blocks.WORKSPACE, key, lines[: workspace_limits.MEMORY_LINES_MAX]) for key in trigger.entries]
        return [
            Event(
                space=trigger.space,
                agent=trigger.agent,
                kind="item.appended",
                subject=subject,
                payload={"namespace": list(namespace), "key": key, "text": "\n".join(added), "block": True},
            )
            for namespace, key, added in places
        ]
