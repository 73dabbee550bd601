"""Writing and removing live entries together with the rows that follow from them.

These are its place among the entries with similar texts, its readers, its place among the dependents of its sources,
the count of its type, and its pin. Before an entry is added, its fold checks that it duplicates no other entry, and
that its sources have room.
"""

from typing import TypeVar

import msgspec

from recallog_projections.models.long_term import migration, tables, texts
from recallog_projections.models.long_term.tables import (
    AgentEntries,
    AuditEntry,
    Dependents,
    EntryId,
    EntryRef,
    EntryRow,
    Live,
    Mark,
    Owner,
    Twin,
    Twins,
)
from recallog_projections.models.long_term.texts import TextForm
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_schemas import Record, timestamps
from recallog_schemas.errors import InvariantViolation
from recallog_schemas.models.long_term import limits as long_term_limits

Found = TypeVar("Found")

PINNED = "pinned"
NORMAL = "normal"


def verdict(rows: Rows, space: str, id_: str) -> EntryRef:
    """The verdict on an event that must have one. Raises `InvariantViolation`."""
    return _existing(rows.get(tables.IDS, space, "", id_), id_)


def live(rows: Rows, space: str, ref: EntryRef) -> EntryRow:
    """The row of a live entry. Raises `InvariantViolation` if it does not exist."""
    return _existing(rows.get(tables.ROWS, space, ref.owner, tables.key_of(ref.offset)), ref)


def ended(rows: Rows, space: str, ref: EntryRef) -> EntryRow:
    """The row of a retracted or archived entry. Raises `InvariantViolation` if it does not exist."""
    return _existing(rows.get(tables.ENDED, space, ref.owner, tables.key_of(ref.offset)), ref)


def _existing(found: Found | None, what: object) -> Found:
    if found is None:
        raise InvariantViolation(f"the view of entries has no row for {what}")
    return found


def is_compared(row: EntryRow) -> bool:
    """Whether the entry may duplicate another one."""
    return row.type not in texts.NEVER_DEDUPLICATED


def twin(rows: Rows, row: EntryRow, rule: int) -> str | None:
    """The id of the oldest other live entry of the same owner, type, readers and person whose text equals that of `row`
    by a rule; None if there is none."""
    if not is_compared(row):
        return None
    form = texts.form_of(row.text)
    found = rows.get(tables.DIGESTS, *_twins_key(row, form)[1:])
    for each in found.entries if found is not None else ():
        other = TextForm(form.key, each.exact, each.layout, each.case)
        if each.id != row.id and texts.are_equal(rule, form, other):
            return each.id
    return None


def agent_of(rows: Rows, space: str, agent: str) -> AgentEntries:
    return rows.get(tables.AGENTS, space, agent) or AgentEntries()


def add(rows: Rows, row: EntryRow) -> None:
    """Write a live entry."""
    space, owner, key = row.space, row.owner, tables.key_of(row.offset)
    rows.put(tables.ROWS, row, space, owner, key)
    if is_compared(row):
        _add_twin(rows, row)
    for reader in _readers(row):
        rows.put(tables.READERS, Owner(owner), space, reader, key)
    for source in row.sources:
        known = rows.get(tables.SOURCES, space, "", source) or Dependents(())
        rows.put(tables.SOURCES, Dependents((*known.ids, row.id)), space, "", source)
    if row.subject is not None:
        rows.put(tables.SUBJECTS, EntryId(row.id), space, owner, tables.subject_key(row.subject, row.offset))
    if migration.qualifies(row.text):
        rows.put(tables.KEPT, Mark(), space, owner, texts.text_key(row.text))
    rows.put(tables.OF_TYPE, Mark(), space, owner, tables.type_key(row.type, row.offset))
    _count(rows, row, 1)
    if row.priority == PINNED:
        agent = agent_of(rows, space, owner)
        rows.put(tables.AGENTS, msgspec.structs.replace(agent, pinned=(*agent.pinned, row.id)), space, owner)


def remove(rows: Rows, row: EntryRow) -> None:
    """Delete a live entry. The row by its subject stays: content that has ended is still about this person."""
    space, owner, key = row.space, row.owner, tables.key_of(row.offset)
    rows.delete(tables.ROWS, space, owner, key)
    if is_compared(row):
        _remove_twin(rows, row)
    for reader in _readers(row):
        rows.delete(tables.READERS, space, reader, key)
    for source in row.sources:
        known = rows.get(tables.SOURCES, space, "", source) or Dependents(())
        others = tuple(id_ for id_ in known.ids if id_ != row.id)
        if others:
            rows.put(tables.SOURCES, Dependents(others), space, "", source)
        else:
            rows.delete(tables.SOURCES, space, "", source)
    rows.delete(tables.OF_TYPE, space, owner, tables.type_key(row.type, row.offset))
    _count(rows, row, -1)
    if row.priority == PINNED:
        agent = agent_of(rows, space, owner)
        others = tuple(id_ for id_ in agent.pinned if id_ != row.id)
        rows.put(tables.AGENTS, msgspec.structs.replace(agent, pinned=others), space, owner)


def replace(rows: Rows, before: EntryRow, after: EntryRow) -> None:
    """Write another form of a live entry, perhaps of another owner."""
    remove(rows, before)
    forget_subject(rows, before)
    add(rows, after)


def end(rows: Rows, record: Record, row: EntryRow, ended: EntryRef) -> None:
    """Retract or archive a live entry; `ended` is the verdict on it from now on."""
    remove(rows, row)
    rows.put(tables.ENDED, row, row.space, row.owner, tables.key_of(row.offset))
    rows.put(tables.IDS, ended, row.space, "", row.id)
    audit(rows, row, ended.status, record, ended.reason)


def restore(rows: Rows, record: Record, ref: EntryRef, row: EntryRow) -> None:
    """Make an archived entry live again. In the index this is a form of its own: the former one has ended."""
    rows.delete(tables.ENDED, row.space, row.owner, tables.key_of(row.offset))
    add(rows, msgspec.structs.replace(row, since=record.offset, since_at=timestamps.micros(record.event.at)))
    rows.put(tables.IDS, msgspec.structs.replace(ref, status=tables.LIVE, reason=None), row.space, "", row.id)
    audit(rows, row, "restored", record, record.event.payload.get("reason"))


def ended_now(rows: Rows) -> list[EntryRow]:
    """The entries that the record being folded has archived, retracted or erased."""
    written = rows.written(tables.ROWS)
    after = {row.offset for _, row in written if row is not None}
    return [row for row, _ in written if row is not None and row.offset not in after]


def forget_subject(rows: Rows, row: EntryRow) -> None:
    """Delete the row by the subject of an entry that is erased, or leaves its owner."""
    if row.subject is not None:
        rows.delete(tables.SUBJECTS, row.space, row.owner, tables.subject_key(row.subject, row.offset))


def audit(rows: Rows, row: EntryRow, operation: str, record: Record, reason: str | None = None) -> None:
    """Append a change of the entry to the log of its owner."""
    entry = AuditEntry(operation, row.id, timestamps.micros(record.event.at), record.event.agent, reason)
    rows.append(tables.AUDIT, entry, row.space, row.owner)


def is_lost(ref: EntryRef) -> bool:
    """Whether an entry is erased, or was retracted because one of its sources is."""
    return ref.status == tables.ERASED or (ref.status == tables.RETRACTED and ref.of is not None)


def _twins_key(row: EntryRow, form: TextForm) -> RowKey:
    key = texts.digest_key(row.type, form, row.audience, shared=row.shared, subject=row.subject)
    return RowKey(tables.DIGESTS.name, row.space, row.owner, key)


def _add_twin(rows: Rows, row: EntryRow) -> None:
    form = texts.form_of(row.text)
    key = _twins_key(row, form)[1:]
    known = rows.get(tables.DIGESTS, *key)
    others = () if known is None else known.entries
    if len(others) < long_term_limits.ENTRY_TWINS_MAX:
        twin = Twin(row.id, row.offset, form.exact, form.layout, form.case)
        rows.put(tables.DIGESTS, Twins(tuple(sorted((*others, twin), key=_offset))), *key)


def _offset(twin: Twin) -> int:
    return twin.offset


def _remove_twin(rows: Rows, row: EntryRow) -> None:
    key = _twins_key(row, texts.form_of(row.text))[1:]
    known = rows.get(tables.DIGESTS, *key)
    others = () if known is None else tuple(each for each in known.entries if each.id != row.id)
    if others:
        rows.put(tables.DIGESTS, Twins(others), *key)
    else:
        rows.delete(tables.DIGESTS, *key)


def _readers(row: EntryRow) -> tuple[str, ...]:
    return ("",) if row.shared else row.audience


def _count(rows: Rows, row: EntryRow, more: int) -> None:
    """Add `more` (1 or -1) to the live entries of the type."""
    counted = rows.get(tables.TYPES, row.space, row.owner, row.type) or Live(0)
    if counted.entries + more:
        rows.put(tables.TYPES, Live(counted.entries + more), row.space, row.owner, row.type)
    else:
        rows.delete(tables.TYPES, row.space, row.owner, row.type)
