"""Due work: the tables in which a reactor finds the triggers that are due, at the cost of those that are due.

Positions, times and counts do not sort together, so there are three tables. `due.now` holds, for the whole partition,
the triggers that one event made due, in the order of the ledger. A row has all that a reactor needs, and is deleted
when the trigger is closed. `due.at` belongs to the view `tiers`: its rows stand under the time at which an agent falls
due, for the whole partition. Whether that time has come is judged by who reads them, by the time of each space.
`due.count` belongs to the view `reflection`: its rows stand under the count at which an agent falls due, and a reader
stops at the first row beyond the present count.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

import msgspec

from recallog_projections.models.conversations import projection as conversations
from recallog_projections.models.long_term import migration
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.kinds import PLAN, changed_ids
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.long_term.texts import text_key
from recallog_projections.models.workspace import daily
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings
from recallog_schemas import Event, Record, limits, timestamps, triggers
from recallog_schemas.triggers import Trigger

Item = TypeVar("Item")


class Work(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trigger that is due, with what its reactor needs."""

    kind: str
    space: str
    agent: str
    trigger: str
    """The id of the trigger."""
    offset: int
    """The offset of the event that made it due."""
    cause: str
    """The id of that event."""
    at: int
    """When it happened, in microseconds since 1970."""
    turn: int
    session: str | None = None
    texts: tuple[tuple[str, str], ...] = ()
    """Of a migration: the texts to keep, each with the path where it stands in working memory."""
    entries: tuple[str, ...] = ()
    """Of a retraction: the ids of the entries that name a retracted one as a source. Of a summary: those of the
    archived entries, in the order of the plan. Of a daily log: the documents that get lines besides that of the day."""
    since: int = -1
    """Of an extraction: the offset at which the agent's turn before ended in the session; -1 if it is the first one. Of
    a daily log: the offset behind which the messages are that it has not looked at; -1 for all of the session."""


class Scheduled(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One trigger that falls due at a time."""

    kind: str
    space: str
    agent: str
    trigger: str
    """The id of the trigger."""
    at: int
    """From when on it is due, in microseconds since 1970."""


class Turn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest end of a turn."""

    offset: int


class Standing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The key of a trigger's row in `due.now`."""

    key: str


class Count(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An empty row: the address names the agent and when it falls due, see `count_key`."""


NOW = Table("due.now", Work)
"""At ("", "", `now_key`)."""
STANDING = Table("due.standing", Standing)
"""At (space, "", id of the trigger)."""
AT = Table("due.at", Scheduled, write_only=True)
"""At ("", "", `at_key`)."""
TURNS = Table("due.turns", Turn)
"""At (space, agent, session); the session is "" for turns of none."""
COUNT = Table("due.count", Count, write_only=True)
"""Agents with a threshold of reflections, at (space, `count_key`, agent)."""

_SUMMARY = "summary"
_ENDING = "session.ended"
_TURN = "turn.ended"
_RETRACTING = frozenset({"memory.erased", "memory.retracted"})


class Due:
    """Folds causes and closing events into `due.now`. It follows `entries`, `items` and `conversations`, whose rows it
    reads, and is followed by the settings: those before the event hold."""

    name: ClassVar[str] = "due"
    version: ClassVar[int] = 3
    kinds = _RETRACTING | triggers.CLOSINGS | conversations.KINDS | {_ENDING, _TURN, PLAN}
    tables = (NOW, STANDING, TURNS, daily.LOGGED)

    def needs(self, record: Record) -> Iterable[RowKey]:
        event = record.event
        if event.kind == _ENDING:
            return [each for agent in _leaving(event) for each in migration.needs(event.space, agent, event.session)]
        if event.kind in _RETRACTING:
            return [entries.ref_key(event.space, id_) for id_ in changed_ids(record.event)]
        if event.kind == _TURN:
            configured = RowKey(settings.AGENTS.name, event.space, event.agent)
            return (_turn_key(event), configured, *daily.needs(event))
        if event.kind == PLAN or event.kind in conversations.KINDS:
            return ()
        return closing_needs(record)

    def further_needs(self, rows: Rows, record: Record) -> Iterable[RowKey]:
        event = record.event
        if event.kind == _ENDING:
            for agent in _leaving(event):
                yield from migration.further_needs(rows, event.space, agent, event.session)
            for agent in _leaving(event):  # whose items are loaded by the second time
                for _, text in migration.texts_in(rows, event.space, agent, event.session):
                    yield _kept_key(event.space, agent, text)
            return
        if event.kind in _RETRACTING:
            for lost in _retracted(rows, record):
                yield RowKey(entries.SOURCES.name, event.space, "", lost)
                yield RowKey(STANDING.name, event.space, "", _retraction(record, lost).id)
            return
        if event.kind == _TURN:
            if _extracts(rows, event):
                yield RowKey(STANDING.name, event.space, "", _extraction(event).id)
            yield RowKey(STANDING.name, event.space, "", _log(event).id)
            return
        if event.kind in conversations.KINDS:
            for _, trigger in conversations.made_due(rows, record):
                yield RowKey(STANDING.name, event.space, "", trigger.id)
            return
        yield from closed_needs(rows, record)

    def apply(self, rows: Rows, record: Record) -> None:
        if not record.reached:
            return
        if record.event.kind == _ENDING:
            _migrate(rows, record)
        elif record.event.kind in _RETRACTING:
            _continue_erasure(rows, record)
        elif record.event.kind == _TURN:
            _extract(rows, record)
            _write_log(rows, record)
        elif record.event.kind == PLAN:
            _summarise(rows, record)
        elif record.event.kind in conversations.KINDS:
            for agent, trigger in conversations.made_due(rows, record):
                put(rows, work_of(record, trigger, agent), trigger)
        else:
            close(rows, record)


def now_key(offset: int, space: str, trigger: Trigger, agent: str, part: int = 0) -> str:
    """The key of a trigger in `due.now`; sorts like the offset of its cause, then the parts of one agent's work."""
    return f"{now_prefix(offset, space, trigger.kind, agent)}{part:05d}/{trigger.cause}"


def now_prefix(offset: int, space: str, kind: str, agent: str) -> str:
    """How the keys in `due.now` begin of one agent's triggers of a kind that one event made due."""
    return f"{offset:020d}/{space}/{kind}/{agent}/"


def at_key(at: int, space: str, trigger: Trigger, agent: str) -> str:
    """The key of a trigger in `due.at`; sorts like the time at which it falls due."""
    return f"{before(at)}/{space}/{trigger.kind}/{agent}/{trigger.cause}"


def before(at: int) -> str:
    """The least key of the triggers that fall due at the time `at`, in microseconds since 1970, or later."""
    return f"{max(0, at):020d}"


def count_key(total: int) -> str:
    """The owner of the `due.count` rows of agents that fall due at `total` shared entries; sorts like `total`."""
    return f"{total:020d}"


def put(rows: Rows, work: Work, trigger: Trigger, part: int = 0) -> None:
    """Make a trigger due, unless it is due already."""
    if rows.get(STANDING, work.space, "", trigger.id) is None:
        key = now_key(work.offset, work.space, trigger, work.agent, part)
        rows.put(NOW, work, "", "", key)
        rows.put(STANDING, Standing(key), work.space, "", trigger.id)


def work_of(record: Record, trigger: Trigger, agent: str) -> Work:
    """The work that the event of `record` makes due for `agent`."""
    event = record.event
    at = timestamps.micros(event.at)
    return Work(trigger.kind, event.space, agent, trigger.id, record.offset, event.id, at, event.turn, event.session)


def closing_needs(record: Record) -> Iterable[RowKey]:
    """The rows that say whether the trigger stands that the event closes."""
    trigger = triggers.named_by(record.event)
    return () if trigger is None else (RowKey(STANDING.name, record.event.space, "", trigger.id),)


def closed_needs(rows: Rows, record: Record) -> Iterable[RowKey]:
    """The row of the trigger that the event closes."""
    for need in closing_needs(record):
        standing = rows.get(STANDING, *need[1:])
        if standing is not None:
            yield RowKey(NOW.name, "", "", standing.key)


def close(rows: Rows, record: Record) -> None:
    """Delete the row of the trigger that the event closes."""
    for need in closing_needs(record):
        standing = rows.get(STANDING, *need[1:])
        if standing is not None:
            rows.delete(NOW, "", "", standing.key)
            rows.delete(STANDING, *need[1:])


# Migration: when a session ends, what its agents want to keep of their working memory becomes entries.


def _migrate(rows: Rows, record: Record) -> None:
    event = record.event
    for agent in _leaving(event):
        # What the agent has had as an entry would be refused.
        texts = [
            (path, text)
            for path, text in migration.texts_in(rows, event.space, agent, event.session)
            if rows.get(entries.KEPT, *_kept_key(event.space, agent, text)[1:]) is None
        ]
        for number, part in enumerate(migration.parts_of(texts)):
            trigger = triggers.caused_by(triggers.MIGRATION, event.space, agent, str(number), event.id)
            put(rows, msgspec.structs.replace(work_of(record, trigger, agent), texts=tuple(part)), trigger, number)


def _kept_key(space: str, agent: str, text: str) -> RowKey:
    """The row that says whether the agent has, or once had, an entry with this text."""
    return RowKey(entries.KEPT.name, space, agent, text_key(text))


def _leaving(event: Event) -> Iterable[str]:
    """The agents whose session the event ends: its own, and those that it is addressed to."""
    return dict.fromkeys((event.agent, *(event.audience or ())))


# The cascade of erasures: the view of entries retracts the dependents of an erased entry, one level an event. If those
# have dependents of their own, a trigger is due for each, whose answer retracts these.


def _continue_erasure(rows: Rows, record: Record) -> None:
    event, ended = record.event, _ended(rows)
    ended_now = {row.id for row in ended}
    for lost in _retracted(rows, record):
        if lost not in ended_now:  # it was lost before, and its dependents were made due then
            continue
        dependents = rows.get(entries.SOURCES, event.space, "", lost)
        if dependents is not None:
            trigger = _retraction(record, lost)
            work = work_of(record, trigger, event.agent)
            put(rows, msgspec.structs.replace(work, entries=dependents.ids), trigger)
    for row in ended:
        if row.type == _SUMMARY:
            _summarise_again(rows, record, row)


def _retraction(record: Record, lost: str) -> Trigger:
    return triggers.caused_by(triggers.RETRACTION, record.event.space, record.event.agent, lost)


def _retracted(rows: Rows, record: Record) -> list[str]:
    """The ids of the entries that are retracted because a source is erased, among those that the event names."""
    space = record.event.space
    found: list[str] = []
    for id_ in changed_ids(record.event):
        ref = rows.get(entries.IDS, space, "", id_)
        if ref is None:
            continue
        if record.event.kind == "memory.erased":
            found += ref.retracted
        elif ref.status == entries.RETRACTED and ref.of is not None:
            found.append(id_)
    return found


# Summaries: what a plan has archived is summarised, if it was more than one entry. When one of them is erased, which
# retracts the summary, the others are summarised again.


def _summarise(rows: Rows, record: Record) -> None:
    for number, (trigger, ids) in enumerate(_summaries(rows, record)):
        work = work_of(record, trigger, record.event.agent)
        put(rows, msgspec.structs.replace(work, entries=ids), trigger, number)


def _summaries(rows: Rows, record: Record) -> list[tuple[Trigger, tuple[str, ...]]]:
    """The summaries that the part of a plan makes due: each with the entries that this record has archived."""
    event = record.event
    ended = {row.id for row in _ended(rows)}
    archived = [each["id"] for each in event.payload.get("archived", ()) if each["id"] in ended]
    return [
        (triggers.caused_by(triggers.SUMMARY, event.space, event.agent, str(number), event.id), tuple(ids))
        for number, ids in enumerate(in_equal_parts(list(dict.fromkeys(archived)), limits.ENTRY_SOURCES_MAX))
        if len(ids) > 1
    ]


def _summarise_again(rows: Rows, record: Record, summary: EntryRow) -> None:
    """Make a summary due of what is left of the archived entries of one that an erasure has retracted."""
    space, left = summary.space, []
    for id_ in summary.sources:
        ref = rows.get(entries.IDS, space, "", id_)
        if ref is not None and ref.status == entries.ARCHIVED and ref.owner == summary.owner:
            left.append(id_)
    ref = rows.get(entries.IDS, space, "", summary.id)
    if len(left) > 1 and ref is not None and ref.status == entries.RETRACTED and ref.of is not None:
        trigger = triggers.caused_by(triggers.SUMMARY, space, summary.owner, summary.id)
        work = work_of(record, trigger, summary.owner)
        put(rows, msgspec.structs.replace(work, entries=tuple(left)), trigger)


def _ended(rows: Rows) -> list[EntryRow]:
    """The entries that the record has archived, retracted or erased."""
    written = rows.written(entries.ROWS)
    after = {row.offset for _, row in written if row is not None}
    return [row for row, _ in written if row is not None and row.offset not in after]


def in_equal_parts(ids: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """`ids` in as few parts of at most `most` as possible, of about the same size: none is a rest of one."""
    count = -(-len(ids) // most)
    bounds = [len(ids) * number // count for number in range(count + 1)] if count else [0]
    return [ids[first:end] for first, end in itertools.pairwise(bounds)]


# Extraction: when a turn of an agent that is set to it ends, facts are drawn from what it could see in it.


def _extract(rows: Rows, record: Record) -> None:
    event = record.event
    _, *address = _turn_key(event)
    before = rows.get(TURNS, *address)
    rows.put(TURNS, Turn(record.offset), *address)
    if _extracts(rows, event):
        trigger = _extraction(event)
        since = -1 if before is None else before.offset
        put(rows, msgspec.structs.replace(work_of(record, trigger, event.agent), since=since), trigger)


def _turn_key(event: Event) -> RowKey:
    return RowKey(TURNS.name, event.space, event.agent, event.session or "")


def _extracts(rows: Rows, event: Event) -> bool:
    """Whether the agent is set to it."""
    configured = rows.get(settings.AGENTS, event.space, event.agent)
    return configured is not None and configured.extract_facts is True


def _extraction(event: Event) -> Trigger:
    return triggers.caused_by(triggers.EXTRACTION, event.space, event.agent, event.id)


# The daily log: when a turn ends in a session with enough new messages, what was asked for and done becomes lines.


def _write_log(rows: Rows, record: Record) -> None:
    since = daily.log(rows, record)
    if since is not None:
        trigger = _log(record.event)
        work = work_of(record, trigger, record.event.agent)
        documents = daily.documents(rows, record.event)
        put(rows, msgspec.structs.replace(work, since=since, entries=documents), trigger)


def _log(event: Event) -> Trigger:
    return triggers.caused_by(triggers.DAILY, event.space, event.agent, event.id)
