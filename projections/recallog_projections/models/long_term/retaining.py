"""The fold of `memory.retained` and `experience.recorded`: whether the event becomes an entry, or duplicates one.

The first of these that applies decides: a source that is erased, or has too many dependents; an entry that exceeds a
row; a live entry whose text is equal by the rule of the event; an earlier entry with this text, for a text from the
end of a session; the balance of its agent.

By rule 1 only, the nearest live entry decides before the balance, by the similarity that the event states. It counts
only if it has the same owner, type, readers and subject, and still the compared text.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from recallog_projections.models.long_term import linking, source_class, tables, texts
from recallog_projections.models.long_term.tables import EntryRef, EntryRow
from recallog_projections.rows import Rows
from recallog_projections.views import settings, visibility
from recallog_schemas import Event, Record, kinds, limits, rules, triggers
from recallog_schemas.kinds import SourceClass, trust
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term.triggers import MIGRATION

FACT = "fact"
EXPERIENCE = "experience"

_EXPERIENCE_FIELDS = ("action_type", "score", "agent_role", "model", "cost")
_MERGED_FIELDS = ("entity", "category", "source", "topic", "importance", "confidence", "metadata", "sources")
_SMALL_BYTES = limits.EVENT_BYTES_MAX // 2


def apply(rows: Rows, record: Record) -> None:
    event = record.event
    rows.put(tables.IDS, _verdict(rows, _entry(rows, record), record), event.space, "", event.id)


def is_too_large(row: EntryRow) -> bool:
    """Whether the entry exceeds a row. It may, though no event does: an entry gets its fields from several events."""
    if 4 * len(row.text) + len(row.metadata) <= _SMALL_BYTES:
        return False
    return len(msgspec.msgpack.encode(row)) > limits.ROW_BYTES_MAX


def _entry(rows: Rows, record: Record) -> EntryRow:
    """The entry that the event would retain. A source that is a duplicate stands for the entry that it duplicates."""
    event = record.event
    fields = _experience(event) if event.kind == "experience.recorded" else event.payload
    text = kinds.kind_of(event.kind).text(event.payload)
    row = entry_of(record, text, fields, shared=visibility.is_shared(event, rows.get(settings.SPACES, event.space)))
    row = source_class.lower_to_stated(row, event.payload)
    if not row.sources:
        return row
    refs: dict[str, EntryRef | None] = {}
    for source in row.sources:
        ref = rows.get(tables.IDS, event.space, "", source)
        if ref is not None and ref.status == tables.DUPLICATE and ref.of:
            source, ref = ref.of, rows.get(tables.IDS, event.space, "", ref.of)
        refs[source] = ref
    row = msgspec.structs.replace(row, sources=tuple(refs))
    of_sources = {_class_of_source(ref) for ref in refs.values() if ref is not None} - {None}
    return source_class.lower_class(row, trust.find_least(each for each in of_sources if each)) if of_sources else row


def _class_of_source(ref: EntryRef) -> SourceClass | None:
    return "tool" if ref.captured else ref.trust


def entry_of(record: Record, text: str, fields: Mapping[str, Any], *, shared: bool) -> EntryRow:
    """The entry with a text and the `fields` of a payload of `memory.retained`, which the event retains."""
    event = record.event
    kind, at = kinds.kind_of(event.kind), record.time
    importance, confidence = fields.get("importance"), fields.get("confidence")
    return EntryRow(
        space=event.space,
        owner=event.agent,
        id=event.id,
        offset=record.offset,
        at=at,
        turn=event.turn,
        session=event.session,
        text=text,
        type=fields.get("type", FACT),
        entity=fields.get("entity"),
        category=fields.get("category"),
        source=fields.get("source"),
        topic=fields.get("topic"),
        importance=kind.importance if importance is None else float(importance),
        confidence=1.0 if confidence is None else float(confidence),
        tier=fields.get("tier"),
        priority=fields.get("priority") or linking.NORMAL,
        red_line=bool(fields.get("red_line")),
        metadata=source_class.stored_metadata(fields.get("metadata")),
        sources=tuple(dict.fromkeys(fields.get("sources") or ())),
        subject=event.subject,
        version=1,
        updated_at=at,
        audience=_audience(event),
        shared=shared,
        preseeded=bool(fields.get("preseeded")),
        since=record.offset,
        since_at=at,
    )


def _experience(event: Event) -> Mapping[str, Any]:
    """The fields of the entry that records an experience; its text is that of the event."""
    payload = event.payload
    metadata = {name: payload[name] for name in _EXPERIENCE_FIELDS if payload.get(name) is not None}
    return {"type": EXPERIENCE, "metadata": metadata}


def _audience(event: Event) -> tuple[str, ...]:
    """The readers besides its agent, sorted."""
    return () if event.audience is None else tuple(sorted({*event.audience} - {event.agent}))


def _verdict(rows: Rows, row: EntryRow, record: Record) -> EntryRef:
    """Store the entry, unless it is refused or a duplicate. By rule 1 a fact may update one that it nearly equals."""
    refused = refusal(rows, row)
    if refused is not None:
        return EntryRef(row.owner, row.offset, tables.REFUSED, refused)
    rule = rules.rule_of(record.event)
    twin = linking.twin(rows, row, rule, record.event.payload.get("dedup"))
    if twin is not None:
        return EntryRef(row.owner, row.offset, tables.DUPLICATE, tables.EQUAL, twin, 1.0)
    if _is_migrated(record.event) and rows.get(tables.KEPT, *_kept_key(record.event)) is not None:
        return EntryRef(row.owner, row.offset, tables.REFUSED, tables.KEPT_BEFORE)
    near = _near(rows, row, _nearest(record.event))
    if near is not None:
        return _duplicate(rows, row, near, record)
    agent = linking.agent_of(rows, row.space, row.owner)
    cost = _cost(record.event)
    if agent.balance is not None and cost > 0:
        if agent.balance < cost:
            return EntryRef(row.owner, row.offset, tables.REFUSED, tables.BALANCE)
        agent = msgspec.structs.replace(agent, balance=agent.balance - cost, spent=agent.spent + cost)
        rows.put(tables.AGENTS, agent, row.space, row.owner)
    reason = None
    if row.priority == linking.PINNED and linking.has_all_pins(rows, row):
        row, reason = msgspec.structs.replace(row, priority=linking.NORMAL), tables.PINS
    linking.add(rows, row, rule)
    linking.audit(rows, row, "retained", record)
    superseded = linking.superseded_by(rows, row)
    return EntryRef(row.owner, row.offset, tables.LIVE, reason, supersedes=superseded, trust=source_class.class_of(row))


def refusal(rows: Rows, row: EntryRow) -> str | None:
    """Why the entry can neither be stored nor update another one; None if it can."""
    if linking.lost_source(rows, row) is not None:
        return tables.SOURCE_ERASED
    known = (rows.get(tables.SOURCES, row.space, "", source) for source in row.sources)
    if any(each is not None and len(each.ids) >= long_term_limits.ENTRY_DEPENDENTS_MAX for each in known):
        return tables.DEPENDENTS
    return tables.TOO_LARGE if is_too_large(row) else None


def _is_migrated(event: Event) -> bool:
    """Whether the end of a session has retained the text, and not an agent."""
    trigger = triggers.answered_by(event)
    return trigger is not None and trigger.kind == MIGRATION


def _kept_key(event: Event) -> tuple[str, str, str]:
    """The address in `tables.KEPT` of the text that an event would retain."""
    return event.space, event.agent, texts.text_key(event.payload["text"])


def _nearest(event: Event) -> Mapping[str, Any] | None:
    """The nearest entry that an event of rule 1 states."""
    return event.payload.get("nearest") if rules.rule_of(event) == 1 else None


def _near(rows: Rows, row: EntryRow, nearest: Mapping[str, Any] | None) -> EntryRow | None:
    """The live entry that the event nearly equals, by what it says about its nearest one."""
    if nearest is None or row.type in texts.NEVER_DEDUPLICATED:
        return None
    if _similarity(nearest) <= (
        long_term_limits.SIMILARITY_OF_FACTS if row.type == FACT else long_term_limits.SIMILARITY_OF_ENTRIES
    ):
        return None
    ref = rows.get(tables.IDS, row.space, "", nearest["id"])
    if ref is None or ref.status != tables.LIVE or ref.owner != row.owner:
        return None
    near = linking.live(rows, row.space, ref)
    if source_class.is_less_trusted(source_class.class_of(row), source_class.class_of(near)):
        return None
    compared = (nearest["version"], row.type, row.audience, row.shared, row.subject)
    return near if (near.version, near.type, near.audience, near.shared, near.subject) == compared else None


def _similarity(nearest: Mapping[str, Any]) -> float:
    return round(float(nearest["similarity"]), 6)


def _duplicate(rows: Rows, row: EntryRow, near: EntryRow, record: Record) -> EntryRef:
    """The verdict on an event that nearly equals the live entry `near`; a fact takes over what the event says."""
    payload = record.event.payload
    reason = tables.SIMILAR
    if row.type == FACT:
        reason = tables.UPDATED
        updated = _merge_entry(near, row, payload)
        if is_too_large(updated):
            return EntryRef(row.owner, row.offset, tables.REFUSED, tables.TOO_LARGE)
        linking.replace(rows, near, updated, rules.rule_of(record.event))
        ref = msgspec.structs.replace(linking.verdict(rows, near.space, near.id), trust=source_class.class_of(updated))
        rows.put(tables.IDS, ref, near.space, "", near.id)
        linking.audit(rows, updated, "updated", record)
    return EntryRef(row.owner, row.offset, tables.DUPLICATE, reason, near.id, _similarity(payload["nearest"]))


def _merge_entry(near: EntryRow, row: EntryRow, payload: Mapping[str, Any]) -> EntryRow:
    """`near` with the text of `row`, and with those other fields that the event gives."""
    given = {name: getattr(row, name) for name in _MERGED_FIELDS if payload.get(name) is not None}
    merged = msgspec.structs.replace(
        near,
        text=row.text,
        version=near.version + 1,
        updated_at=row.at,
        since=row.since,
        since_at=row.since_at,
        **given,
    )
    known = source_class.class_of(row)
    return merged if known is None else source_class.lower_class(merged, known)


def _cost(event: Event) -> float:
    """The price of the entry for its agent. The cost of an experience is not the price of recording it."""
    if event.kind == "experience.recorded":
        return 0.0
    cost = event.payload.get("cost")
    return long_term_limits.ENTRY_COST if cost is None else float(cost)
