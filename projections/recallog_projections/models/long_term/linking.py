"""Writing and removing live entries together with the rows that follow from them.

These are its place among the entries with similar texts, its readers, its place among the dependents of its sources,
the count of its type, and its pin. Before an entry is added, its fold checks that it duplicates no other entry, and
that its sources can have another dependent.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import TypeVar

import msgspec

from recallog_projections.models.long_term import migration, source_class, statements, tables, texts
from recallog_projections.models.long_term.statements import Statement
from recallog_projections.models.long_term.tables import (
    AgentEntries,
    AuditEntry,
    Dependents,
    EntryId,
    EntryOwner,
    EntryRef,
    EntryRow,
    Live,
    Mark,
    SaidValue,
    Statements,
    Twin,
    Twins,
)
from recallog_projections.models.long_term.texts import TextForm
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_schemas import Record, rules
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


def read_ended(rows: Rows, space: str, ref: EntryRef) -> EntryRow:
    """The row of a retracted or archived entry. Raises `InvariantViolation` if it does not exist."""
    return _existing(rows.get(tables.ENDED, space, ref.owner, tables.key_of(ref.offset)), ref)


def _existing(found: Found | None, what: object) -> Found:
    if found is None:
        raise InvariantViolation(f"the view of entries has no row for {what}")
    return found


def is_compared(row: EntryRow) -> bool:
    """Whether the entry may duplicate another one."""
    return row.type not in texts.NEVER_DEDUPLICATED


def twin(rows: Rows, row: EntryRow, rule: int, dedup: str | None = None) -> str | None:
    """The id of the oldest other live entry of the same owner, type, readers and person whose text equals that of `row`
    by a rule; None if there is none. By rule 3 a text that was superseded may be said again. A less trusted entry
    is not a twin."""
    how = texts.comparison(rule, row.type, dedup)
    if how == "off":
        return None
    form = texts.normal_form_of(row.text) if how == "normalised" else texts.form_of(row.text)
    found = rows.get(tables.DIGESTS, *_twins_key(row, form)[1:])
    past = _find_superseded(rows, row) if rule >= texts.NORMALISING else {}
    for each in found.entries if found is not None else ():
        other = TextForm(form.key, each.exact, each.layout, each.case)
        if each.id == row.id or each.id in past or (each.normal and how != "normalised"):
            continue
        if each.trust is not None and source_class.is_less_trusted(each.trust, source_class.class_of(row)):
            continue
        if texts.are_equal(how, form, other):
            return each.id
    return None


def statements_key(row: EntryRow) -> RowKey | None:
    """The key of the row with the statement of an entry; None if no later entry can correct it."""
    statement = _statement_of(row)
    return None if statement is None else _statements_key(row, statement)


def _statement_of(row: EntryRow) -> Statement | None:
    return statements.statement_of(row.text) if row.type in statements.TYPES else None


def _statements_key(row: EntryRow, statement: Statement) -> RowKey:
    key = texts.digest_key(row.type, statement.key, row.audience, shared=row.shared, subject=row.subject)
    return RowKey(tables.STATEMENTS.name, row.space, row.owner, key)


def superseded_by(rows: Rows, row: EntryRow) -> tuple[str, ...]:
    """The ids of the live entries that are superseded by the live entry `row`, and by none before it."""
    return tuple(id_ for id_, by in _find_superseded(rows, row).items() if by.id == row.id)


def _find_superseded(rows: Rows, row: EntryRow) -> Mapping[str, SaidValue]:
    """The superseded entries on the subject of `row`, each with its successor."""
    key = statements_key(row)
    known = None if key is None else rows.get(tables.STATEMENTS, *key[1:])
    return {} if known is None else statements.find_superseded(known.entries)


def agent_of(rows: Rows, space: str, agent: str) -> AgentEntries:
    return rows.get(tables.AGENTS, space, agent) or AgentEntries()


def has_all_pins(rows: Rows, row: EntryRow) -> bool:
    """Whether the owner of an entry has pinned the maximum."""
    return len(agent_of(rows, row.space, row.owner).pinned) >= long_term_limits.ENTRY_PINS_MAX


def lost_source(rows: Rows, row: EntryRow) -> str | None:
    """The first source of an entry that is lost; None if it has none."""
    refs = ((source, rows.get(tables.IDS, row.space, "", source)) for source in row.sources)
    return next((source for source, ref in refs if ref is not None and is_lost(ref)), None)


def add(rows: Rows, row: EntryRow, rule: int, said: SaidValue | None = None) -> None:
    """Write a live entry whose text was given by an event of a rule; `said` is its statement, if it had one before."""
    space, owner, key = row.space, row.owner, tables.key_of(row.offset)
    rows.put(tables.ROWS, row, space, owner, key)
    if is_compared(row):
        _add_twin(rows, row)
    _add_statement(rows, row, rule, said)
    for reader in _readers(row):
        rows.put(tables.READERS, EntryOwner(owner), space, reader, key)
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


def remove(rows: Rows, row: EntryRow) -> SaidValue | None:
    """Delete a live entry, and return its statement. The row by its subject stays: content that has ended is still
    about this person."""
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
    return _remove_statement(rows, row)


def replace(rows: Rows, before: EntryRow, after: EntryRow, rule: int) -> None:
    """Write another form of a live entry, perhaps of another owner, by an event of a rule."""
    said = remove(rows, before)
    forget_subject(rows, before)
    add(rows, after, rule, said if after.text == before.text else None)


def end(rows: Rows, record: Record, row: EntryRow, ended: EntryRef) -> None:
    """Retract or archive a live entry; `read_ended` is the verdict on it from now on."""
    remove(rows, row)
    rows.put(tables.ENDED, row, row.space, row.owner, tables.key_of(row.offset))
    rows.put(tables.IDS, ended, row.space, "", row.id)
    audit(rows, row, ended.status, record, ended.reason)


def restore(rows: Rows, record: Record, ref: EntryRef, row: EntryRow) -> None:
    """Make an archived entry live again. In the index this is a new form: the former one has ended."""
    rows.delete(tables.ENDED, row.space, row.owner, tables.key_of(row.offset))
    live = msgspec.structs.replace(row, since=record.offset, since_at=record.time)
    add(rows, live, rules.rule_of(record.event))
    rows.put(tables.IDS, msgspec.structs.replace(ref, status=tables.LIVE, reason=None, of=None), row.space, "", row.id)
    audit(rows, row, "restored", record, record.event.payload.get("reason"))


def ended_now(rows: Rows) -> list[EntryRow]:
    """The entries that the record being folded has archived, retracted or erased."""
    written = rows.list_written(tables.ROWS)
    after = {row.offset for _, row in written if row is not None}
    return [row for row, _ in written if row is not None and row.offset not in after]


def forget_subject(rows: Rows, row: EntryRow) -> None:
    """Delete the row by the subject of an entry that is erased, or leaves its owner."""
    if row.subject is not None:
        rows.delete(tables.SUBJECTS, row.space, row.owner, tables.subject_key(row.subject, row.offset))


def audit(rows: Rows, row: EntryRow, operation: str, record: Record, reason: str | None = None) -> None:
    """Append a change of the entry to the log of its owner."""
    entry = AuditEntry(operation, row.id, record.time, record.event.agent, reason)
    rows.append(tables.AUDIT, entry, row.space, row.owner)


def is_lost(ref: EntryRef) -> bool:
    """Whether an entry is erased, or was retracted because one of its sources is."""
    return ref.status == tables.ERASED or (ref.status == tables.RETRACTED and ref.of is not None)


def _twins_key(row: EntryRow, form: TextForm) -> RowKey:
    key = texts.digest_key(row.type, form.key, row.audience, shared=row.shared, subject=row.subject)
    return RowKey(tables.DIGESTS.name, row.space, row.owner, key)


def _twins_of(row: EntryRow) -> Mapping[RowKey, Twin]:
    """The listed forms of an entry: its text as it is, and its normal form if that has another key."""
    written, normal = texts.form_of(row.text), texts.normal_form_of(row.text)
    trust = source_class.class_of(row)
    forms = [(written, False)] if normal.key == written.key else [(normal, True), (written, False)]
    return {
        _twins_key(row, form): Twin(row.id, row.offset, form.exact, form.layout, form.case, is_normal, trust)
        for form, is_normal in forms
    }


def _add_twin(rows: Rows, row: EntryRow) -> None:
    for key, twin in _twins_of(row).items():
        known = rows.get(tables.DIGESTS, *key[1:])
        others = () if known is None else known.entries
        if len(others) < long_term_limits.ENTRY_TWINS_MAX:
            rows.put(tables.DIGESTS, Twins(tuple(sorted((*others, twin), key=_offset))), *key[1:])


_offset = attrgetter("offset")


def _remove_twin(rows: Rows, row: EntryRow) -> None:
    for key in _twins_of(row):
        known = rows.get(tables.DIGESTS, *key[1:])
        others = () if known is None else tuple(each for each in known.entries if each.id != row.id)
        if others:
            rows.put(tables.DIGESTS, Twins(others), *key[1:])
        else:
            rows.delete(tables.DIGESTS, *key[1:])


def _add_statement(rows: Rows, row: EntryRow, rule: int, said: SaidValue | None) -> None:
    statement = _statement_of(row)
    if statement is None:
        return
    key = _statements_key(row, statement)
    known = rows.get(tables.STATEMENTS, *key[1:])
    others = () if known is None else known.entries
    if len(others) < long_term_limits.ENTRY_TWINS_MAX:
        at = row.at if row.version == 1 else row.updated_at
        trust = source_class.class_of(row)
        if said is None:
            said = SaidValue(row.id, row.offset, at, rule, statement.value, statement.negative, trust)
        elif said.trust != trust:
            said = msgspec.structs.replace(said, trust=trust)
        rows.put(tables.STATEMENTS, Statements(tuple(sorted((*others, said), key=_said))), *key[1:])


_said = attrgetter("at", "offset")


def _remove_statement(rows: Rows, row: EntryRow) -> SaidValue | None:
    key = statements_key(row)
    known = None if key is None else rows.get(tables.STATEMENTS, *key[1:])
    if key is None or known is None:
        return None
    others = tuple(each for each in known.entries if each.id != row.id)
    if others:
        rows.put(tables.STATEMENTS, Statements(others), *key[1:])
    else:
        rows.delete(tables.STATEMENTS, *key[1:])
    return next((each for each in known.entries if each.id == row.id), None)


def _readers(row: EntryRow) -> tuple[str, ...]:
    return ("",) if row.shared else row.audience


def _count(rows: Rows, row: EntryRow, more: int) -> None:
    """Add `more` (1 or -1) to the live entries of the type."""
    counted = rows.get(tables.TYPES, row.space, row.owner, row.type) or Live(0)
    if counted.entries + more:
        rows.put(tables.TYPES, Live(counted.entries + more), row.space, row.owner, row.type)
    else:
        rows.delete(tables.TYPES, row.space, row.owner, row.type)
