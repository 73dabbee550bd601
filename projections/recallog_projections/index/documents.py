"""The projection of the semantic index: one document for each memorable event with a text that recall may find, one for
each form of an entry, and one for each chunk of a document of a workspace.

The store of the index turns documents into points of the engine.

Documents of entries follow from the rows of the view of entries, which the index folds along: whatever changes an entry
changes its document. They stand alone: they have no number in a session, no neighbours, and no preceding text.

A change of its text, owner or type gives an entry another form, with a document of its own. The former document ends:
it says until when it held, and is moved to another space of the engine, which only queries to the past search. The
newest `limits.ENTRY_FORMS_ENDED` of an entry are retained; all of them are deleted when the entry is erased.

Chunks follow from the rows of the view of items, in the same way: a chunk whose text leaves its document ends. They are
in a space of the engine of their own, so that queries for other memories do not pass them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from recallog_projections.index import passages
from recallog_projections.index.engines.engine import EVERYBODY, documents_of, past_of
from recallog_projections.index.language import questions
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.long_term import reading, tables
from recallog_projections.models.long_term.kinds import CHANGING, PLAN, RETAINING, changed_ids
from recallog_projections.models.long_term.projection import Entries
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.tiers import tables as tiers
from recallog_projections.models.workspace import chunk_forms
from recallog_projections.models.workspace import documents as workspace
from recallog_projections.models.workspace.chunk_forms import ChunkForm, DocumentChunks
from recallog_projections.models.workspace.chunks import Chunk, chunks
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Event, Record, codec, kinds, limits, timestamps
from recallog_schemas.kinds import Kind

SHARED = (EVERYBODY,)
ALONE = -1
"""The ordinal of documents that stand alone."""
CHUNK = "document"
"""The type of chunks of documents."""
CHUNK_KIND = "item.put"
"""The kind of chunks of documents: of no event and of no entry."""
IMPORTANCE_DECIMALS = 6
"""The embedded engine returns numbers of 16 digits and more with another last digit, so that a checksum fails."""


class Document(msgspec.Struct, frozen=True):
    """One memory in the index."""

    space: str
    agent: str
    kind: str
    readers: tuple[str, ...]
    """The names of the agents that may see it, or `EVERYBODY`."""
    session: str
    """The session's id, "" without one: the documents of a space without a session form one session."""
    ordinal: int
    """Its ordinal among the documents of its session; `ALONE` for an entry, and for a chunk."""
    is_action: bool
    """Whether its kind has the role `action`, for example a tool call."""
    is_question: bool
    """Whether its text is a question: the next document is likely the answer."""
    length: int
    """`prose_length` of its text."""
    turn: int
    at: int
    """Microseconds since 1970."""
    offset: int
    event: str
    """The JSON of the event in the ledger; of an entry that of the event that would retain it as it is now; "" of a
    chunk."""
    before: str
    """The end of "author: text" of the previous document of its session that all its readers may see; "" without one.
    """
    text_key: int
    """`text_key` of its text."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1: that of an entry, or of the kind of an event when it was folded; rounded."""
    text: str | None = None
    """The text by the declaration of its kind; None means `Event.text`."""
    entry: str = ""
    """The id of an entry, whose `offset` is that of the event that retained it; of a chunk the path of its document's
    row; "" for an event."""
    type: str = ""
    """The type of an entry; `CHUNK` for a chunk."""
    version: int = 0
    """The version of an entry's text."""
    since: int = -1
    """The offset of the record that gave an entry this form."""
    since_at: int = 0
    """When that event happened, in microseconds since 1970."""
    until: int | None = None
    """The offset of the record that ended this form of an entry; None: it is the present one."""
    until_at: int | None = None
    """When that event happened."""
    written: int = -1
    """The offset of the last record that changed the document of an entry."""
    tier: str = ""
    """The tier that an entry is in; "" without one, and of an ended form."""

    @property
    def last_changed(self) -> int:
        """The offset of the record from which on the document exists as it is."""
        return self.written if self.entry else self.offset


_OWN_MOVE = "memory.tier_changed"
_CHANGING = Entries.kinds | {_OWN_MOVE}
"""The kinds of the events that may change documents of entries."""
_OF_ENTRY = frozenset({"entry", "type", "version", "since", "since_at", "until", "until_at", "written", "tier"})
"""The fields that documents of events do not have in their payload."""


class Excerpt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The end of a recent document of a session."""

    ordinal: int
    readers: tuple[str, ...]
    text: str
    """The last `limits.INDEX_BEFORE_CHARS` characters of "author: text"."""


class Session(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents of a session, and the ends of the newest ones."""

    documents: int
    shared: Excerpt | None
    """Of the newest one that all agents may see."""
    others: tuple[Excerpt, ...]
    """Of the newest ones that only some agents may see, oldest first; at most `limits.INDEX_OTHERS_KEPT`."""


class EntryDocuments(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents of entries and of chunks of a space, of present and of ended forms."""

    documents: int


class EndedForms(msgspec.Struct, frozen=True, array_like=True):
    """The documents of the ended forms of one entry."""

    points: tuple[str, ...]
    """The ids of their points, oldest first."""


DOCUMENTS = Table("index.document", Document, write_only=True)
SESSIONS = Table("index.session", Session)
OF_ENTRIES = Table("index.entries", EntryDocuments)
"""At (space), chunks included."""
CHUNKS = Table("index.chunks", DocumentChunks)
"""At (space, agent, path of the row of a document)."""
ENDED = Table("index.ended", EndedForms)
"""At (space, "", id of the entry)."""


class Index:
    """Fold of every memorable event with a text, whose kind is recalled, and of every live entry into a document.

    A document's `before` is text that all its readers may see, so that no vector depends on an event that one of them
    must not see. It follows the projections of entries, tiers and items, whose rows it reads.
    """

    name: ClassVar[str] = "index"
    version: ClassVar[int] = 8
    tables = (DOCUMENTS, SESSIONS, OF_ENTRIES, ENDED, CHUNKS)

    def __init__(self, made_with: Mapping[str, Any]) -> None:
        """`made_with` identifies the embedder and the version of points. If it differs, the index is rebuilt."""
        self.made_with = dict(made_with)

    def needs(self, record: Record) -> Iterable[RowKey]:
        if record.memorable:
            yield RowKey(settings.SPACES.name, record.event.space)
            yield RowKey(SESSIONS.name, record.event.space, record.event.session or "")
        if record.event.kind in _CHANGING:
            yield RowKey(OF_ENTRIES.name, record.event.space)
            yield from (RowKey(ENDED.name, record.event.space, "", id_) for id_ in _named(record.event))
        for path in _changed_documents(record.event):
            yield RowKey(OF_ENTRIES.name, record.event.space)
            yield RowKey(CHUNKS.name, record.event.space, record.event.agent, path)

    def further_needs(self, rows: Rows, record: Record) -> Iterable[RowKey]:
        for id_ in _moved(record.event):
            ref = rows.get(tables.IDS, record.event.space, "", id_)
            if ref is not None:
                yield RowKey(tables.ROWS.name, record.event.space, ref.owner, tables.key_of(ref.offset))

    def apply(self, rows: Rows, record: Record) -> None:
        if record.event.kind in _CHANGING:
            _apply_entries(rows, record)
        for path in _changed_documents(record.event):
            _apply_document(rows, record, path)
        if not record.memorable:
            return
        event = record.event
        space = rows.get(settings.SPACES, event.space)
        kind = settings.kind_of(space, event.kind)
        words = clean(kind.text(event.payload)) if kind.recalled else ""
        if not words:
            return
        readers = _readers(event, space)
        name = event.session or ""
        session = rows.get(SESSIONS, event.space, name) or Session(0, None, ())
        document = Document(
            space=event.space,
            agent=event.agent,
            kind=event.kind,
            readers=readers,
            session=name,
            ordinal=session.documents,
            is_action=kind.role == kinds.ACTION,
            is_question=questions.is_question(words),
            length=prose_length(words, kind),
            turn=event.turn,
            at=timestamps.micros(event.at),
            offset=record.offset,
            event=record.data.decode(),
            before=_before(session, readers),
            importance=round(kind.importance, IMPORTANCE_DECIMALS),
            text=settings.declared_text(space, event),
            text_key=text_key(words),
        )
        rows.put(DOCUMENTS, document, "", key=point_id(event.space, name, session.documents))
        end = f"{event.agent}: {words[-limits.INDEX_BEFORE_CHARS :]}"[-limits.INDEX_BEFORE_CHARS :]
        rows.put(SESSIONS, _next(session, Excerpt(session.documents, readers, end)), event.space, name)


def _apply_entries(rows: Rows, record: Record) -> None:
    """Write and delete the documents of the entries that the record has changed."""
    live, ended = rows.written(tables.ROWS), rows.written(tables.ENDED)
    before = {row.id: row for row, _ in live if row is not None}
    after = {row.id: row for _, row in live if row is not None}
    lost = {row.id for row, _ in ended if row is not None}  # erased after it had ended
    erased = lost | (before.keys() - after.keys() - {row.id for _, row in ended if row is not None})
    more = 0
    for id_ in dict.fromkeys((*before, *after, *lost)):
        old, new = before.get(id_), after.get(id_)
        forms = _Forms(rows, record, id_)
        if old is not None and clean(old.text) and (new is None or new.since != old.since):
            forms.end(old)
        if new is not None and clean(new.text):
            forms.put(new, is_new=old is None or new.since != old.since)
        if id_ in erased:
            forms.erase()
        more += forms.more
    for row in _in_other_tiers(rows):
        if row.id not in after and clean(row.text):
            _Forms(rows, record, row.id).put(row, is_new=False)
    _count(rows, record.event.space, more)


def _count(rows: Rows, space: str, more: int) -> None:
    """Note that a space has `more` documents of entries and of chunks."""
    if more:
        known = rows.get(OF_ENTRIES, space) or EntryDocuments(0)
        rows.put(OF_ENTRIES, EntryDocuments(known.documents + more), space)


def _changed_documents(event: Event) -> Iterable[str]:
    """The paths of the rows of the documents of its workspace that an event may change."""
    if event.kind not in items.Items.kinds or event.payload["namespace"] != list(workspace.NAMESPACE):
        return ()
    keys = (event.payload["key"], event.payload["to"]) if event.kind == "item.moved" else (event.payload["key"],)
    return dict.fromkeys(items.path_of(workspace.NAMESPACE, key) for key in keys)


def _apply_document(rows: Rows, record: Record, path: str) -> None:
    """Write the chunks that the record has brought to a document, and end those that it has taken away."""
    space, agent = record.event.space, record.event.agent
    before, after = rows.before(items.ROWS, space, agent, path), rows.get(items.ROWS, space, agent, path)
    if before is after:
        return
    known = rows.get(CHUNKS, space, agent, path) or DocumentChunks((), ())
    at = timestamps.micros(record.event.at)
    changed = chunk_forms.changes(
        known.present, _keyed(chunks_of(path, before)), _keyed(chunks_of(path, after)), record.offset, at
    )
    for form, chunk in changed.begun:
        document = _of_chunk(space, agent, path, form, chunk)
        rows.put(DOCUMENTS, document, "", key=chunk_point_id(space, agent, path, form))
    points = list(known.ended)
    for form, chunk in changed.ended:
        points.append(chunk_point_id(space, agent, path, form))
        document = _of_chunk(space, agent, path, form, chunk)
        document = msgspec.structs.replace(document, until=record.offset, until_at=at, written=record.offset)
        rows.put(DOCUMENTS, document, "", key=points[-1])
    retained = chunk_forms.retained(points)
    for key in points[: len(points) - len(retained)]:
        rows.delete(DOCUMENTS, "", key=key)
    _count(rows, space, len(changed.begun) - (len(points) - len(retained)))
    if changed.present or retained:
        rows.put(CHUNKS, DocumentChunks(changed.present, retained), space, agent, path)


def chunks_of(path: str, row: ItemRow | None) -> list[Chunk]:
    """The chunks of the document with this row, at this path of rows; none of one that is no text."""
    value = None if row is None or row.index is False else items.value_of(row)
    return chunks(items.names_of(path)[1], _without_surrogates(value)) if isinstance(value, str) else []


def _keyed(found: Sequence[Chunk]) -> list[tuple[int, Chunk]]:
    return [(text_key(chunk.text), chunk) for chunk in found]


def _of_chunk(space: str, agent: str, path: str, form: ChunkForm, chunk: Chunk) -> Document:
    return Document(
        space=space,
        agent=agent,
        kind=CHUNK_KIND,
        readers=(agent,),
        session="",
        ordinal=ALONE,
        is_action=False,
        is_question=False,
        length=passages.length(chunk.text),
        turn=0,
        at=form.since_at,
        offset=form.since,
        event="",
        before="",
        text_key=form.text_key,
        text=chunk.text,
        entry=path,
        type=CHUNK,
        since=form.since,
        since_at=form.since_at,
        written=form.since,
    )


def _in_other_tiers(rows: Rows) -> Iterable[EntryRow]:
    """The live entries that the record has moved to another tier, or given one."""
    for before, now in rows.written(tiers.ROWS):
        if now is not None and (before is None or before.tier != now.tier):
            row = rows.get(tables.ROWS, now.space, now.owner, tables.key_of(now.offset))
            if row is not None:
                yield row


class _Forms:
    """The documents of one entry, for one record."""

    def __init__(self, rows: Rows, record: Record, id_: str) -> None:
        self._rows, self._record = rows, record
        self._address = (record.event.space, "", id_)
        self.more = 0
        """How many documents were added."""

    def put(self, row: EntryRow, *, is_new: bool) -> None:
        """Write the document of the present form."""
        document = _of_entry(row, self._record.offset)
        if row.tier is not None or self._record.event.kind not in RETAINING:  # else it can have no tier yet
            tier = self._rows.get(tiers.ROWS, row.space, row.owner, tables.key_of(row.offset))
            document = document if tier is None else msgspec.structs.replace(document, tier=tier.tier)
        self._rows.put(DOCUMENTS, document, "", key=entry_point_id(row))
        self.more += is_new

    def end(self, row: EntryRow) -> None:
        """End the form of `row`, and delete the oldest ended form if there are too many."""
        offset, at = self._record.offset, timestamps.micros(self._record.event.at)
        document = msgspec.structs.replace(_of_entry(row, offset), until=offset, until_at=at)
        key = entry_point_id(row)
        self._rows.put(DOCUMENTS, document, "", key=key)
        self._retain((*self._ended(), key)[-limits.ENTRY_FORMS_ENDED :])

    def erase(self) -> None:
        """Delete the documents of all ended forms."""
        self._retain(())

    def _ended(self) -> tuple[str, ...]:
        known = self._rows.get(ENDED, *self._address)
        return () if known is None else known.points

    def _retain(self, points: tuple[str, ...]) -> None:
        known = self._ended()
        for key in known:
            if key not in points:
                self._rows.delete(DOCUMENTS, "", key=key)
                self.more -= 1
        if points:
            self._rows.put(ENDED, EndedForms(points), *self._address)
        elif known:
            self._rows.delete(ENDED, *self._address)


def _moved(event: Event) -> Iterable[str]:
    """The ids of the entries that an event may move to another tier."""
    if event.kind == PLAN:
        return [each["id"] for each in event.payload.get("moves", ())]
    return [event.payload["entry"]] if event.kind == _OWN_MOVE else ()


def _named(event: Event) -> Iterable[str]:
    """The ids of the entries that an event may change, without those that are made from them."""
    if event.kind == PLAN:
        return [each["id"] for each in event.payload.get("archived", ())]
    if event.kind in RETAINING:
        return [nearest["id"]] if (nearest := event.payload.get("nearest")) is not None else []
    return changed_ids(event) if event.kind in CHANGING else []


def _of_entry(row: EntryRow, written: int) -> Document:
    """The document of an entry as the record at the offset `written` has left it."""
    event = reading.event_of(row)
    words = clean(row.text)
    return Document(
        space=row.space,
        agent=row.owner,
        kind=reading.CAPTURED if row.captured else event.kind,
        readers=SHARED if row.shared else tuple(sorted({row.owner, *row.audience})),
        session=row.session or "",
        ordinal=ALONE,
        is_action=False,
        is_question=questions.is_question(words),
        length=passages.length(words),
        turn=row.turn,
        at=row.at,
        offset=row.offset,
        event=codec.encode(event).decode(),
        before="",
        text_key=text_key(words),
        importance=round(row.importance, IMPORTANCE_DECIMALS),
        entry=row.id,
        type=row.type,
        version=row.version,
        since=row.since,
        since_at=row.since_at,
        written=written,
    )


def clean(text: str) -> str:
    """`text` without leading and trailing white space, and with "?" for lone surrogates, which JSON can contain."""
    return _without_surrogates(text).strip()


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def prose_length(words: str, kind: Kind) -> int:
    """`passages.length` of a text; 0 for an action, whose text is long because its data are."""
    return 0 if kind.role == kinds.ACTION else passages.length(words)


def text_key(words: str) -> int:
    """63 bits of the digest of a cleaned text, by which equal texts are found."""
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big") >> 1


def point_id(space: str, session: str, ordinal: int) -> str:
    """The id (a UUID) of the point of an event's document. Its neighbours can be read by their ids."""
    return _uuid(f"{space}\0{session}\0{ordinal}\0")


def entry_point_id(row: EntryRow) -> str:
    """The id (a UUID) of the point of the present form of an entry."""
    return _uuid(f"{row.space}\0{row.since}\0{row.id}", b"entry")


def chunk_point_id(space: str, agent: str, path: str, form: ChunkForm) -> str:
    """The id (a UUID) of the point of a form of a chunk."""
    return _uuid(f"{space}\0{agent}\0{form.since}\0{form.number}\0{path}", b"chunk")


def _uuid(text: str, person: bytes = b"") -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=16, person=person).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def payload(document: Document) -> dict[str, Any]:
    """The payload of a document's point. That of an event lacks the fields of entries."""
    space = documents_of(document.space) if document.kind == CHUNK_KIND else document.space
    fields = {**msgspec.structs.asdict(document), "readers": list(document.readers)}
    fields["space"] = space if document.until is None else past_of(space)
    return fields if document.entry else {name: value for name, value in fields.items() if name not in _OF_ENTRY}


def from_payload(fields: Mapping[str, Any]) -> Document:
    """The document in a point's payload. Raises `msgspec.ValidationError` for other payloads."""
    document = msgspec.convert(dict(fields), Document)
    space = document.space.removeprefix(past_of("")).removeprefix(documents_of(""))
    return document if space == document.space else msgspec.structs.replace(document, space=space)


def _readers(event: Event, space: SpaceSettings | None) -> tuple[str, ...]:
    if visibility.is_shared(event, space):
        return SHARED
    return tuple(sorted(visibility.readers(event)))


def _before(session: Session, readers: Sequence[str]) -> str:
    """The newest excerpt that all of `readers` may see; "" without one."""
    seen = [excerpt for excerpt in session.others if set(readers) <= set(excerpt.readers)]
    if session.shared is not None:
        seen.append(session.shared)
    return max(seen, key=lambda excerpt: excerpt.ordinal).text if seen else ""


def _next(session: Session, excerpt: Excerpt) -> Session:
    if excerpt.readers == SHARED:
        return Session(session.documents + 1, excerpt, session.others)
    others = (*session.others, excerpt)[-limits.INDEX_OTHERS_KEPT :]
    return Session(session.documents + 1, session.shared, others)
