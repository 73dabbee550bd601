"""One space in ledger order: its records, the reflections that fall due, and the events that answer them."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import msgspec

from recallog.following.entries import LedgerEntry, entries_of
from recallog.memory import Memory
from recallog_schemas import Event, Position, triggers
from recallog_schemas.errors import InvariantViolation
from recallog_schemas.models.beliefs.triggers import ANSWERS, REFLECTION
from recallog_schemas.models.beliefs.views import ReflectionView
from recallog_schemas.triggers import Trigger
from recallog_streams.ledgers.ledger import Batch

EVENTS_REFOLDED_MAX = 50_000
"""How many events one step folds again for reflections that were answered before the step saw them due. On a machine
with two cores, this takes about two seconds. If more events would be needed, the reflection is reported without its
counts."""


@dataclass(frozen=True, slots=True)
class ReflectionDue:
    """A reflection that fell due. The counts are None if it was answered first and the past was not folded again."""

    space: str
    agent: str
    trigger: str
    after: int
    """The offset of the record after which it is reported."""
    events: int | None = None
    threshold: int | None = None
    since: Position | None = None
    last: Position | None = None
    last_turn: int | None = None


@dataclass(frozen=True, slots=True)
class ReflectionAnswered:
    """The event that answered a reflection which was reported as due: `agent.reflected` or `reflection.failed`."""

    due: ReflectionDue
    event: Event
    position: Position


class SpaceFollower:
    """The records and reflections of a space, in ledger order, from `begin` on. Every trigger is reported as due at
    most once."""

    def __init__(self, memory: Memory, space: str, begin: Position) -> None:
        self._memory = memory
        self._space = space
        self._begin = begin
        self._reflections = _Reflections(memory, space)
        self._started = False

    async def step(self) -> AsyncIterator[LedgerEntry | ReflectionDue | ReflectionAnswered]:
        """The records that were appended since the last step. The first step also reports reflections that were due
        before `begin`."""
        # A reflection that falls due after this end is reported by the next step, together with its records.
        ledger_end = (await self._memory.admin.ledger_ends())[self._begin.partition]
        end = Position(self._begin.partition, max(self._begin.offset, ledger_end))
        if not self._started or await self._has_records(end):
            await self._reflections.update(self._begin)
            async for item in self._until(end):
                yield item
        self._begin, self._started = end, True

    async def _has_records(self, end: Position) -> bool:
        if self._begin >= end:
            return False
        return any([bool(batch.records) async for batch in self._memory.admin.records(self._begin, self._space)])

    async def _until(self, end: Position) -> AsyncIterator[LedgerEntry | ReflectionDue | ReflectionAnswered]:
        for due in self._reflections.take_due(self._begin.offset - 1):
            yield due
        async for batch in self._memory.admin.records(self._begin, self._space):
            for entry in entries_of(batch):
                if entry.position >= end:
                    break
                yield entry
                answered = self._reflections.take_answered(entry)
                if answered is not None:
                    yield answered
                for due in self._reflections.take_due(entry.position.offset):
                    yield due


class _Reflections:
    """The due reflections of a space that are not reported yet, and the reported ones that are not answered yet."""

    def __init__(self, memory: Memory, space: str) -> None:
        self._memory = memory
        self._space = space
        self._unreported: list[ReflectionDue] = []
        self._reported: dict[str, int] = {}
        """By agent: the ordinal of the newest trigger that was reported."""
        self._unanswered: dict[str, ReflectionDue] = {}
        """By agent: the reflection that was reported and is not answered."""

    async def update(self, begin: Position) -> None:
        """Find the reflections that have fallen due up to now. `begin` is the first record that is not reported yet."""
        for pending in await self._memory.pending(self._space):
            if pending.kind == REFLECTION and self._is_new(pending.agent, pending.trigger):
                view = await self._memory.reflection(self._space, pending.agent)
                if view.trigger == pending.trigger:
                    self._unreported.append(await self._due(view))
        # The answers are read after the pending reflections, so every reflection that was due before and is not pending
        # has its answer among them.
        await self._add_answered_meanwhile(await self._answers(begin))
        self._unreported.sort(key=lambda due: due.after)

    async def _answers(self, begin: Position) -> list[LedgerEntry]:
        kinds = [kind.encode() for kind in ANSWERS]
        found: list[LedgerEntry] = []
        async for batch in self._memory.admin.records(begin, self._space):
            # Few records are answers, and only those are decoded.
            candidates = [record for record in batch.records if any(kind in record[1] for kind in kinds)]
            found += entries_of(msgspec.structs.replace(batch, records=candidates))
        return [entry for entry in found if entry.event is not None and entry.event.kind in ANSWERS]

    async def _add_answered_meanwhile(self, answers: Sequence[LedgerEntry]) -> None:
        """Add the reflections that fell due and were answered between two updates, as a fast reactor does."""
        missed = await self._answers_to_unknown(answers)
        if not missed:
            return
        space = (await self._memory.space(self._space)).activity
        affordable = len(missed) * (space.events if space else 0) <= EVENTS_REFOLDED_MAX
        for entry, trigger in missed:
            before = Position(entry.position.partition, entry.position.offset - 1)
            if affordable:
                view = await self._memory.reflection(self._space, entry.agent, as_of=before)
                if view.trigger is not None and self._is_new(entry.agent, view.trigger):
                    self._unreported.append(await self._due(view))
            elif trigger is not None and self._is_new(entry.agent, trigger.id):
                self._unreported.append(ReflectionDue(self._space, entry.agent, trigger.id, before.offset))

    async def _answers_to_unknown(self, answers: Sequence[LedgerEntry]) -> list[tuple[LedgerEntry, Trigger | None]]:
        """The answers whose trigger may not be known here, each with the trigger that it names."""
        known, found = set(self._unanswered), []
        for entry in answers:
            trigger = triggers.named_by(entry.event) if entry.event is not None else None
            if entry.agent in known:
                known.discard(entry.agent)
            elif entry.position.offset > 0 and (trigger is None or self._is_new(entry.agent, trigger.id)):
                found.append((entry, trigger))
        # An agent without a threshold has no triggers, so its reflections do not answer one.
        unprompted = {entry.agent for entry, trigger in found if trigger is None}
        unprompted = {
            agent for agent in unprompted if (await self._memory.reflection(self._space, agent)).threshold is None
        }
        return [(entry, trigger) for entry, trigger in found if trigger is not None or entry.agent not in unprompted]

    def _is_new(self, agent: str, trigger: str) -> bool:
        return _ordinal(trigger) > self._reported.get(agent, -1) and all(
            due.trigger != trigger for due in self._unreported
        )

    async def _due(self, view: ReflectionView) -> ReflectionDue:
        if view.trigger is None:
            raise InvariantViolation(f"no reflection of {view.agent!r} is due")
        since = -1 if view.since is None else view.since.offset
        newer = sum(shown.position.offset > since for shown in view.on)
        return ReflectionDue(
            view.space,
            view.agent,
            view.trigger,
            after=since,
            # The count when the reflection fell due; the view also counts later events. If the view does not show all
            # of them, the count was at least the threshold.
            events=view.events - newer if newer < len(view.on) else view.threshold,
            threshold=view.threshold,
            since=view.since,
            last=view.last,
            last_turn=None if view.last is None else await self._turn_at(view.last),
        )

    async def _turn_at(self, position: Position) -> int | None:
        batches = cast(AsyncGenerator[Batch], self._memory.admin.records(position, self._space))
        async with aclosing(batches):
            async for batch in batches:
                for entry in entries_of(batch):
                    return entry.event.turn if entry.event is not None else None
        return None

    def take_due(self, offset: int) -> list[ReflectionDue]:
        """The reflections that were due after the record at `offset`. They count as reported from now on."""
        taken = [due for due in self._unreported if due.after <= offset]
        self._unreported = [due for due in self._unreported if due.after > offset]
        for due in taken:
            self._reported[due.agent] = _ordinal(due.trigger)
            self._unanswered[due.agent] = due
        return taken

    def take_answered(self, entry: LedgerEntry) -> ReflectionAnswered | None:
        """The reported reflection that `entry` answers, if any. It counts as answered from now on."""
        event = entry.event
        if event is None or event.kind not in ANSWERS or event.agent not in self._unanswered:
            return None
        # A reflection that does not name a trigger is an answer too. One that names an older trigger is not.
        named = triggers.named_by(event)
        if named is not None and named.ordinal < _ordinal(self._unanswered[event.agent].trigger):
            return None
        return ReflectionAnswered(self._unanswered.pop(event.agent), event, entry.position)


def _ordinal(trigger: str) -> int:
    parsed = triggers.parse(trigger)
    if parsed is None:
        raise InvariantViolation(f"{trigger!r} is not the id of a trigger")
    return parsed.ordinal
