"""The fold of changes of entries: updates, retractions, archivals, restorations, erasures and transfers.

Only the owner of a live entry changes it, and only its owner erases it, or restores an archived one. There is one
exception: any agent may retract a live entry that has lost a source, because the reactor that continues an erasure
does so. A change that is refused changes nothing and is noted in the log of its agent. A change of several entries
is decided entry by entry.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from recallog_projections.models.long_term import linking, retaining, source_class, tables, texts
from recallog_projections.models.long_term.kinds import MOVED, RESTORED, changed_ids
from recallog_projections.models.long_term.tables import EntryRef, EntryRow, Erasure
from recallog_projections.refusals import Refusal
from recallog_projections.rows import Rows
from recallog_schemas import Record, kinds, rules

_LABELS = ("entity", "category", "source", "topic")


def apply(rows: Rows, record: Record) -> None:
    event = record.event
    refused = {id_: reason for id_ in changed_ids(event) if (reason := _change(rows, record, id_)) is not None}
    if refused:
        rows.append(tables.REFUSALS, Refusal(event.id, refused), event.space, event.agent)


def _change(rows: Rows, record: Record, id_: str) -> str | None:
    """Change one entry, or return why it is refused."""
    event = record.event
    ref = rows.get(tables.IDS, event.space, "", id_)
    if ref is None:
        return tables.UNKNOWN
    if event.kind == "memory.retracted" and (lost := _lost_source(rows, event.space, ref)) is not None:
        _retract_dependent(rows, record, id_, lost)
        return None
    if ref.owner != event.agent:
        return tables.NOT_OWNER
    if event.kind == "memory.erased":
        return _erase(rows, record, id_, ref)
    if event.kind == MOVED and ref.status == tables.LIVE:
        return None  # the view of tiers moves it
    if event.kind in (RESTORED, MOVED) and ref.status == tables.ARCHIVED:
        return _restore(rows, record, ref)
    if event.kind == RESTORED or ref.status != tables.LIVE:
        return ref.status
    row = linking.live(rows, event.space, ref)
    if event.kind in _FORMS:
        return _replace(rows, record, ref, row)
    payload = event.payload
    ended = msgspec.structs.replace(
        ref, status=_ENDS[event.kind], reason=payload.get("reason"), of=payload.get("duplicate_of")
    )
    linking.end(rows, record, row, ended)
    return None


_ENDS: Mapping[str, tables.Status] = {"memory.retracted": tables.RETRACTED, "memory.archived": tables.ARCHIVED}


def _restore(rows: Rows, record: Record, ref: EntryRef) -> str | None:
    """Make an archived entry live again, in its former form. It is refused for the same reasons as retaining the text,
    and if the agent has too many pins."""
    row = linking.read_ended(rows, record.event.space, ref)
    refusal = retaining.refusal(rows, row) or _conflict(rows, row, rules.rule_of(record.event))
    if refusal is None:
        linking.restore(rows, record, ref, row)
    return refusal


def _replace(rows: Rows, record: Record, before: EntryRef, row: EntryRow) -> str | None:
    """Give a live entry another form, or another owner."""
    after = _FORMS[record.event.kind](row, record)
    refusal = _refusal(rows, row, after, rules.rule_of(record.event))
    if refusal is not None:
        return refusal
    linking.replace(rows, row, after, rules.rule_of(record.event))
    ref = msgspec.structs.replace(before, owner=after.owner, trust=source_class.class_of(after))
    if ref != before:
        rows.put(tables.IDS, ref, row.space, "", row.id)
    if after.owner == row.owner:
        linking.audit(rows, row, "updated", record)
    else:
        linking.audit(rows, row, "transferred", record)
        linking.audit(rows, after, "received", record)
    return None


def _refusal(rows: Rows, before: EntryRow, after: EntryRow, rule: int) -> str | None:
    """Why a live entry cannot take this form; None if it can."""
    if after is before:
        return tables.OWN
    if retaining.is_too_large(after):
        return tables.TOO_LARGE
    is_said = rule < texts.NORMALISING or after.since != before.since
    return _conflict(rows, after, rule, was_pinned=before.priority == linking.PINNED, is_said=is_said)


def _conflict(rows: Rows, row: EntryRow, rule: int, *, was_pinned: bool = False, is_said: bool = True) -> str | None:
    """Why an entry cannot be live in this form among the others of its owner; None if it can. `is_said`:
    whether the event sets its text."""
    if is_said and linking.twin(rows, row, rule) is not None:
        return tables.EQUAL
    if row.priority == linking.PINNED and not was_pinned and linking.has_all_pins(rows, row):
        return tables.PINS
    return None


def _update_entry(row: EntryRow, record: Record) -> EntryRow:
    """The entry as `memory.updated` changes it: null resets a field to its default."""
    payload = record.event.payload
    changed: dict[str, Any] = {name: payload[name] for name in _LABELS if name in payload}
    if payload.get("text") is not None:
        changed["text"] = payload["text"]
    if "type" in payload:
        changed["type"] = payload["type"] or retaining.FACT
    if "importance" in payload:
        given = payload["importance"]
        changed["importance"] = kinds.kind_of("memory.retained").importance if given is None else float(given)
    if "confidence" in payload:
        changed["confidence"] = 1.0 if payload["confidence"] is None else float(payload["confidence"])
    if "priority" in payload:
        changed["priority"] = payload["priority"] or linking.NORMAL
    if "red_line" in payload:
        changed["red_line"] = bool(payload["red_line"])
    if "metadata" in payload:
        changed["metadata"] = source_class.stored_metadata(payload["metadata"])
    version = row.version + ("text" in changed and changed["text"] != row.text)
    at = record.time
    if version != row.version or changed.get("type", row.type) != row.type:
        changed |= {"since": record.offset, "since_at": at}
    after = source_class.lower_to_stated(
        msgspec.structs.replace(row, version=version, updated_at=at, **changed), payload
    )
    known = source_class.class_of(row)
    return after if known in (None, source_class.class_of(after)) else source_class.lower_class(after, known)


def _transfer_entry(row: EntryRow, record: Record) -> EntryRow:
    """The entry as its new owner receives it: with normal priority, and without the readers that the former owner
    chose.

    An entry that is shared with the space stays shared. A call of a tool becomes an entry like others: its new owner
    may not see the event.
    """
    to = record.event.payload["to"]
    if to == row.owner:
        return row
    at = record.time
    return msgspec.structs.replace(
        row,
        owner=to,
        priority=linking.NORMAL,
        audience=(),
        captured=False,
        updated_at=at,
        since=record.offset,
        since_at=at,
    )


_FORMS: Mapping[str, Callable[[EntryRow, Record], EntryRow]] = {
    "memory.updated": _update_entry,
    "memory.transferred": _transfer_entry,
}


def _erase(rows: Rows, record: Record, id_: str, ref: EntryRef) -> str | None:
    """Delete the content of an entry, and retract the live entries that name it as a source."""
    event = record.event
    found = tables.row_key(event.space, ref)
    if found is None:
        return ref.status
    if ref.status == tables.LIVE:
        row = linking.live(rows, event.space, ref)
        linking.remove(rows, row)
    else:
        row = linking.read_ended(rows, event.space, ref)
        rows.delete(tables.ENDED, event.space, ref.owner, found.key)
    linking.forget_subject(rows, row)
    dependents = _dependents(rows, event.space, id_)
    for dependent in dependents:
        _retract_dependent(rows, record, dependent, id_)
    erased = EntryRef(ref.owner, ref.offset, tables.ERASED, retracted=dependents, captured=ref.captured)
    rows.put(tables.IDS, erased, event.space, "", id_)
    reason = event.payload.get("reason")
    erasure = Erasure(record.time, event.agent, reason)
    rows.put(tables.ERASURES, erasure, event.space, ref.owner, id_)
    linking.audit(rows, row, "erased", record, reason)
    return None


def _dependents(rows: Rows, space: str, id_: str) -> tuple[str, ...]:
    known = rows.get(tables.SOURCES, space, "", id_)
    return () if known is None else known.ids


def _lost_source(rows: Rows, space: str, ref: EntryRef) -> str | None:
    """The first source of a live entry that is lost; None if it has none.

    Such an entry is about to be retracted by the reactor that continues an erasure.
    """
    return linking.lost_source(rows, linking.live(rows, space, ref)) if ref.status == tables.LIVE else None


def _retract_dependent(rows: Rows, record: Record, dependent: str, source: str) -> None:
    """Retract a live entry of any owner, because `source` is erased."""
    ref = linking.verdict(rows, record.event.space, dependent)
    row = linking.live(rows, record.event.space, ref)
    ended = msgspec.structs.replace(ref, status=tables.RETRACTED, reason=tables.SOURCE_ERASED, of=source)
    linking.end(rows, record, row, ended)
