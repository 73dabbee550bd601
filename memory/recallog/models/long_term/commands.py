"""Changes of entries. Each change is published, and its answer contains the verdict of the views."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from recallog.access import MemoryAccess
from recallog.commands.command import Judge, Reasons
from recallog.commands.making import make_event
from recallog.models.long_term import queries, standing
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.long_term.parameters import ExperienceOptions, RetainOptions, UpdateOptions
from recallog.models.long_term.similar import compared_by, similar
from recallog.operations.parameters import At
from recallog.queries import event_lookup
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading, SpaceReading
from recallog.reading.source_classes import read_sources
from recallog_projections.index.terms import terms
from recallog_projections.models.long_term import linking, tables, texts
from recallog_projections.models.long_term.kinds import changed_ids
from recallog_projections.models.long_term.tables import EntryRef, EntryRow
from recallog_projections.models.long_term.views import make_entries
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import (
    IndexUnavailable,
    InvalidArgument,
    InvariantViolation,
    Refused,
)
from recallog_schemas.kinds import QualitySettings, SourceClass, trust
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term import seeding
from recallog_schemas.models.long_term.views import (
    Comparison,
    EntriesChange,
    EntryStats,
    NearestEntry,
    Retained,
    Seeded,
)

_PREFIX = re.compile(r"\s*([A-Za-z]+):")
_ACTION = "action"
_MIN_TERMS = "min_terms"

_NOT_OWNER = "{agent} owns no entry {id}. List its entries: recallog long-term list"
_WHY = {
    tables.PINS: f"{{agent}} has pinned {long_term_limits.ENTRY_PINS_MAX} entries, the most that an agent may pin. "
    "Give one of "
    "them another priority first: {pinned}",
    tables.EQUAL: "the entry {twin} of {owner} has this text already; change, archive or retract that one first",
    tables.TOO_LARGE: "the entry would become too large; keep it in parts",
    tables.OWN: "the entry belongs to {owner} already",
    tables.UNKNOWN: _NOT_OWNER,
    tables.NOT_OWNER: _NOT_OWNER,
    tables.RETRACTED: "the entry {id} is retracted, and cannot be changed any more; retain a new one",
    tables.ARCHIVED: "the entry {id} is archived; restore it first, or retain a new one",
    tables.ERASED: "the entry {id} is erased; retain a new one",
    tables.DUPLICATE: "{id} is not an entry: another entry has its text. Find that one: recallog long-term list",
    tables.REFUSED: "{id} is not an entry: it was refused. List the entries: recallog long-term list",
    tables.SOURCE_ERASED: "the entry {id} was made from one that is erased; retain a new one without it",
    tables.DEPENDENTS: "a source of {id} has the maximum number of dependents; forget or retract one of them first",
}
JUDGE = Judge(make_entries, tables.REFUSALS, [settings.SPACES])
"""The verdicts on events that retain and change entries."""
_NOT_OWNED = frozenset({tables.UNKNOWN, tables.NOT_OWNER})
_PAYLOAD_OF_OPTION = {"based_on": "sources"}
_ENVELOPE = ("at", "subject", "session", "audience")


# Retaining


@dataclass(frozen=True, slots=True)
class _Look:
    """The verdict that the views would give on a text now."""

    answer: Retained | None
    """The answer if nothing has to be written."""
    nearest: NearestEntry | None = None
    """The entry that is most similar to the one that would be stored."""
    supersedes: tuple[str, ...] = ()
    """The entries that the stored entry would supersede."""


async def retain(access: MemoryAccess, event: Event) -> Retained:
    """Publish an entry, and return the outcome. Raises `Refused` for one pinned entry too many."""
    event = await _lower_to_sources(access, event)
    look = await _look(access, event, compares=access.components.index is not None)
    if look.answer is not None:
        return look.answer
    return _make_retained(event, *await _publish_entry(access, event), look.nearest)


async def _lower_to_sources(access: MemoryAccess, event: Event) -> Event:
    """`event` with the class of the least trusted event that it names as a source. The fold adds that of entries.

    Raises `ViewsBehind` if workers fold the views and do not reach a source that was published before. An unknown id
    lowers nothing.
    """
    ids = event.payload.get("sources")
    if not ids:
        return event
    ledger = access.components.ledger
    known = partial(event_lookup.have_processed, ledger=ledger, space=event.space, ids=ids)
    if ledger.folded_by_workers and not await access.of_space(event.space, At(), known):
        await access.catch_up(access.components.views, ledger.partition_of(event.space))
    least = await access.of_agent(event.space, event.agent, At(), _find_class, event)
    return event.model_copy(update={"payload": {**event.payload, **trust.state_class(least)}})


async def _find_class(reading: AgentReading, event: Event) -> SourceClass:
    sources = await read_sources(reading)
    seen = await event_lookup.read_visible(reading, event.payload["sources"])
    return trust.find_least((trust.read_stated(event.payload), *map(sources.class_of, seen)))


def entry_event(
    space: str, agent: str, text: str, entry_type: str, entry_id: str | None, options: RetainOptions
) -> Event:
    """The event that keeps a text as an entry. Raises `InvalidArgument`."""
    if options.get("dedup") not in (None, "off") and entry_type in texts.NEVER_DEDUPLICATED:
        raise InvalidArgument(f"dedup: entries of the type {entry_type} are never compared", path="dedup", rule="type")
    given, envelope = _split_options(options)
    fields = {
        _PAYLOAD_OF_OPTION.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
    }
    return _event(space, agent, "retained", {"text": text, "type": entry_type, **fields}, entry_id, **envelope)


def _split_options(options: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The options that are not None: those for the payload, and those for the envelope."""
    given = {name: value for name, value in options.items() if value is not None}
    return given, {name: given.pop(name) for name in _ENVELOPE if name in given}


def experience_event(
    space: str, agent: str, action_type: str, summary: str, entry_id: str | None, options: ExperienceOptions
) -> Event:
    """The event that keeps an experience. Raises `InvalidArgument`."""
    given, envelope = _split_options(options)
    payload = {"action_type": action_type, "summary": summary, **given}
    return make_event(space, agent, "experience.recorded", payload, entry_id, **envelope)


async def record_experience(access: MemoryAccess, event: Event) -> Retained:
    """Publish an experience, and return the outcome."""
    return _make_retained(event, *await _publish_entry(access, event), None)


async def compare(
    access: MemoryAccess, space: str, agent: str, text: str, entry_type: str, options: RetainOptions
) -> Comparison:
    """The answer that `retain` would give now."""
    event = entry_event(space, agent, text, entry_type, None, options)
    look = await _look(access, event, compares=access.components.index is not None)
    if look.answer is None:
        return Comparison(outcome="stored", id=None, reason=None, nearest=look.nearest, supersedes=look.supersedes)
    return Comparison(outcome=look.answer.outcome, id=look.answer.id, reason=look.answer.reason, nearest=None)


async def would_store(access: MemoryAccess, event: Event) -> bool:
    """Whether `retain` would store the entry of an event now."""
    return (await _look(access, event, compares=False)).answer is None


async def _look(access: MemoryAccess, event: Event, *, compares: bool) -> _Look:
    """The verdict of the views on an event now; with `compares`, also the nearest entry, if the index answers."""
    return await access.of_agent(event.space, event.agent, At(), _look_at, event, compares=compares)


async def _look_at(reading: AgentReading, event: Event, *, compares: bool) -> _Look:
    own = await reading.snapshot(
        [
            RowKey(settings.AGENTS.name, event.space, event.agent),
            tables.ref_key(event.space, event.id),
            RowKey(tables.AGENTS.name, event.space, event.agent),
        ]
    )
    if own.row(tables.IDS, event.space, "", event.id) is not None:
        return _Look(None)  # a repeat: the ledger compares both events, and the first verdict counts
    configured = own.row(settings.AGENTS, event.space, event.agent)
    gate = QualitySettings.model_validate((configured.quality if configured is not None else None) or {})
    if gate.enabled and (rejected := _explain_rejection(event.payload["text"], gate)) is not None:
        return _Look(Retained(id=None, outcome="rejected", similarity=None, reason=rejected, position=None))
    rows = await JUDGE.fold_now(reading, [event])
    ref = _ref(rows, event)
    if ref.status == tables.LIVE and ref.reason == tables.PINS:
        agent = own.row(tables.AGENTS, event.space, event.agent)
        raise _refusal(event, event.id, tables.PINS, () if agent is None else agent.pinned)
    if ref.status != tables.LIVE:
        return _Look(_make_retained(event, ref, None, None))
    stored = rows.get(tables.ROWS, event.space, event.agent, tables.key_of(ref.offset))
    if not compares or stored is None or stored.type in texts.NEVER_DEDUPLICATED:
        return _Look(None, supersedes=ref.supersedes)
    return _Look(None, await _nearest(reading, stored), ref.supersedes)


async def _nearest(reading: AgentReading, row: EntryRow) -> NearestEntry | None:
    """The most similar live entry with the same owner, type, readers and subject; None if there is none, or if no index
    answers."""
    try:
        found = await similar(
            reading,
            row.text,
            owned=True,
            types=[row.type],
            wants=lambda near: compared_by(near) == compared_by(row),
            limit=1,
        )
    except IndexUnavailable:
        return None
    if not found.found:
        return None
    near, similarity = found.found[0]
    return NearestEntry(id=near.id, version=near.version, similarity=max(-1.0, min(similarity, 1.0)), model=found.model)


def _explain_rejection(text: str, gate: QualitySettings) -> str | None:
    """Why the quality gate rejects a text; None if it accepts it."""
    prefix = _PREFIX.match(text)
    if prefix is not None and prefix[1].lower() == _ACTION:
        return _ACTION
    said = text if prefix is None else text[prefix.end() :]
    return _MIN_TERMS if len(set(terms(said))) < gate.min_terms else None


def _make_retained(event: Event, ref: EntryRef, position: Position | None, nearest: NearestEntry | None) -> Retained:
    if ref.status == tables.DUPLICATE:
        updated = ref.reason == tables.UPDATED
        return Retained(
            id=ref.of,
            outcome="updated" if updated else "skipped",
            similarity=ref.similarity,
            reason=None if updated else ref.reason,
            position=position,
        )
    if ref.status == tables.REFUSED:
        return Retained(id=None, outcome="refused", similarity=None, reason=ref.reason, position=position)
    return Retained(
        id=event.id,
        outcome="unpinned" if ref.reason == tables.PINS else "stored",
        similarity=None if nearest is None else nearest.similarity,
        reason=ref.reason if ref.status == tables.LIVE else ref.status,
        position=position,
        nearest=nearest,
        supersedes=ref.supersedes,
    )


async def _publish_entry(access: MemoryAccess, event: Event) -> tuple[EntryRef, Position]:
    """The verdict on an event that retains an entry, and its position."""
    key = tables.ref_key(event.space, event.id)
    verdict = await JUDGE.publish(access, [event], [key])
    ref = verdict.snapshot.row(tables.IDS, *key[1:])
    if ref is None:
        raise InvariantViolation(f"the view of entries has no verdict on {event.id}")
    return ref, verdict.position


# Changing


async def update(
    access: MemoryAccess, space: str, agent: str, entry_id: str, event_id: str | None, fields: UpdateOptions
) -> EntriesChange:
    """Change a live entry of an agent. Raises `Refused`; nothing is changed then."""
    if not fields:
        raise InvalidArgument("give at least one field to change", path="text", rule="nothing_given")
    event = _event(space, agent, "updated", {"entry": entry_id, **fields}, event_id)
    changed = await _change(access, [event], look=event_id is None)
    if not changed.changed:
        raise await _make_refusal(access, event, entry_id, changed.refused[entry_id])
    return changed if fields.get("text") is None else await _with_superseded(access, space, changed)


async def retract(access: MemoryAccess, space: str, agent: str, entry_id: str, reason: str | None) -> EntriesChange:
    """Retract an entry. Raises `Refused` if the agent does not own it."""
    payload: dict[str, Any] = {"entry": entry_id} if reason is None else {"entry": entry_id, "reason": reason}
    return await _change_owned(access, _event(space, agent, "retracted", payload))


_DONE = {"archived": tables.ARCHIVED, "restored": tables.LIVE}
"""By change: the state of an entry for which the change is not needed."""


async def change_one(
    access: MemoryAccess, space: str, agent: str, change: str, payload: Mapping[str, Any], event_id: str | None
) -> EntriesChange:
    """Make a change of one entry of an agent; `changed` is false if nothing has to be changed. Values of the payload
    that are None are left out. Raises `Refused`; nothing is changed then."""
    given = {name: value for name, value in payload.items() if value is not None}
    event = _event(space, agent, change, given, event_id)
    changed = await _change(access, [event], look=event_id is None)
    for id_, reason in changed.refused.items():
        if reason != _DONE.get(change):
            raise await _make_refusal(access, event, id_, reason)
    return await _with_superseded(access, space, changed) if changed.changed and change == "restored" else changed


async def _with_superseded(access: MemoryAccess, space: str, changed: EntriesChange) -> EntriesChange:
    """The answer to a change that set texts of entries, with the entries that these supersede."""
    past = await access.of_space(space, At(after=changed.position), _superseded_by, changed.ids)
    return changed.model_copy(update={"supersedes": past})


async def _superseded_by(reading: SpaceReading, ids: Sequence[str]) -> tuple[str, ...]:
    found = await entries_by_id(reading, reading.space, ids)
    places = await standing.places_of(reading, [each.row for each in found.values() if each.row is not None])
    return tuple(id_ for place in places.values() for id_ in place.supersedes)


async def grant(
    access: MemoryAccess, space: str, agent: str, units: float, reason: str | None, event_id: str | None
) -> EntryStats:
    """Add units to the balance of an agent, or subtract them, and return the agent's numbers."""
    payload = {"units": units} if reason is None else {"units": units, "reason": reason}
    (position,) = await access.append([_event(space, agent, "metered", payload, event_id)])
    return await access.of_agent(space, agent, At(after=position), queries.stats)


async def transfer(access: MemoryAccess, space: str, agent: str, ids: Sequence[str], to: str) -> EntriesChange:
    """Give entries to another agent. Raises `Refused` if the agent does not own one of them."""
    if to == agent:
        raise InvalidArgument("to: already owns the entries", path="to", rule="own")
    return await _change_owned(
        access, _event(space, agent, "transferred", {"entries": list(dict.fromkeys(ids)), "to": to})
    )


async def forget(
    access: MemoryAccess,
    space: str,
    agent: str,
    ids: Sequence[str] | None,
    subject: str | None,
    reason: str | None,
) -> EntriesChange:
    """Erase entries by id, or all entries about a person. Raises `Refused` if the agent does not own one of them."""
    if (ids is None) == (subject is None):
        raise InvalidArgument("entry_ids: give the ids of entries, or a subject", path="entry_ids", rule="one_of")
    more = {} if reason is None else {"reason": reason}
    if subject is None:
        payload = {"entries": list(dict.fromkeys(ids or ())), **more}
        if not payload["entries"]:
            raise InvalidArgument("entry_ids: give at least one id", path="entry_ids", rule="too_short")
        return await _change_owned(access, _event(space, agent, "erased", payload))
    about = await access.of_agent(space, agent, At(), _about, subject)
    if not about:
        return _nothing({})
    parts = [about[first : first + limits.EVENT_IDS_MAX] for first in range(0, len(about), limits.EVENT_IDS_MAX)]
    return await _change(
        access, [_event(space, agent, "erased", {"entries": part, **more}) for part in parts], look=False
    )


async def _about(reading: AgentReading, subject: str) -> list[str]:
    """The ids of the entries of an agent about a person, including retracted and archived ones."""
    length = len(tables.subject_key(subject, 0))
    rows = await reading.every(tables.SUBJECTS, reading.space, reading.agent, f"{subject}/")
    return [row.id for key, row in rows if len(key) == length]


async def _change_owned(access: MemoryAccess, event: Event) -> EntriesChange:
    """Change the entries that an event names, except those that are no longer live. Raises `Refused`, and changes
    nothing, if the agent does not own one of them."""
    (refused,) = await JUDGE.foresee(access, [event])
    for id_, reason in refused.items():
        if reason in _NOT_OWNED:
            raise await _make_refusal(access, event, id_, reason)
    left = [id_ for id_ in changed_ids(event) if id_ not in refused]
    if not left:
        return _nothing(refused)
    if "entries" in event.payload:
        event = _event(event.space, event.agent, event.kind.partition(".")[2], {**event.payload, "entries": left})
    changed = await _change(access, [event], look=False)
    return changed.model_copy(update={"refused": {**refused, **changed.refused}})


async def _change(access: MemoryAccess, events: Sequence[Event], *, look: bool) -> EntriesChange:
    """Publish changes of the entries of one agent. With `look`, only if the views would apply the first one."""
    ids = [id_ for event in events for id_ in changed_ids(event)]
    if look:
        (foreseen,) = await JUDGE.foresee(access, [events[0]])
        if foreseen:
            return _nothing(foreseen)
    verdict = await JUDGE.publish(access, events)
    refused = {id_: why for reasons in verdict.reasons for id_, why in reasons.items()}
    changed = tuple(id_ for id_ in ids if id_ not in refused)
    return EntriesChange(changed=bool(changed), ids=changed, refused=refused, position=verdict.position)


def _nothing(refused: Reasons) -> EntriesChange:
    return EntriesChange(changed=False, ids=(), refused=refused, position=None)


async def _make_refusal(access: MemoryAccess, event: Event, id_: str, reason: str) -> Refused:
    """The error of a change that was refused."""
    agent = event.payload.get("to", event.agent) if reason == tables.PINS else event.agent
    key = RowKey(tables.AGENTS.name, event.space, agent)
    snapshot = await access.of_space(event.space, At(), ReadSession.snapshot, [key])
    found = snapshot.row(tables.AGENTS, event.space, agent)
    twin = await access.of_space(event.space, At(), _twin, event) if reason == tables.EQUAL else None
    return _refusal(event, id_, reason, () if found is None else found.pinned, twin)


async def _twin(reading: ReadSession, event: Event) -> str | None:
    """The id of the entry that already has the text which a change would give to another entry; None without one."""
    rows = await JUDGE.fold_now(reading, [event])
    ref = linking.verdict(rows, event.space, event.payload["entry"])
    row = (linking.live if ref.status == tables.LIVE else linking.read_ended)(rows, event.space, ref)
    given = {name: value for name in ("text", "type") if (value := event.payload.get(name)) is not None}
    return linking.twin(rows, msgspec.structs.replace(row, **given), texts.NORMALISING)


def _refusal(event: Event, id_: str, reason: str, pinned: Sequence[str], twin: str | None = None) -> Refused:
    why = _WHY[reason].format(agent=event.agent, owner=event.agent, id=id_, pinned=", ".join(pinned), twin=twin)
    # An agent must not learn whether an entry of another agent exists.
    return Refused(why, reason=tables.NOT_OWNER if reason in _NOT_OWNED else reason)


# Beginning


async def seed(access: MemoryAccess, space: str, agent: str, given: Sequence[str] | None, entry_type: str) -> Seeded:
    """Publish the initial entries of an agent that do not exist yet."""
    events = {
        event.id: event
        for event in (
            seeding.event(space, agent, text, entry_type) for text in (seeding.LESSONS if given is None else given)
        )
    }
    found = await access.of_space(space, At(), entries_by_id, space, events)
    missing = [event for id_, event in events.items() if id_ not in found]
    if not missing:
        return Seeded(ids=tuple(events), written=0, position=None)
    verdict = await JUDGE.publish(access, missing)
    return Seeded(ids=tuple(events), written=len(missing), position=verdict.position)


# Events, and the verdicts of the views on them


def _event(
    space: str, agent: str, change: str, payload: Mapping[str, Any], event_id: str | None = None, **envelope: Any
) -> Event:
    """The event of a change. Raises the same errors as `make_event`."""
    return make_event(space, agent, f"memory.{change}", payload, event_id, **envelope)


def _ref(rows: Rows, event: Event) -> EntryRef:
    ref = rows.get(tables.IDS, event.space, "", event.id)
    if ref is None:
        raise InvariantViolation(f"the fold of entries wrote no verdict on {event.id}")
    return ref
