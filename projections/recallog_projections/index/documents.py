"""The projection of the semantic index: one document for each memorable event with a text that recall may find.

The store of the index turns documents into points of the engine.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from recallog_projections.index import passages
from recallog_projections.index.engines.engine import EVERYBODY
from recallog_projections.index.language import questions
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Event, Record, kinds, limits, timestamps
from recallog_schemas.kinds import Kind

SHARED = (EVERYBODY,)


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
    """Its ordinal among the documents of its session."""
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
    """The JSON of the event in the ledger."""
    before: str
    """The end of "author: text" of the previous document of its session that all its readers may see; "" without one.
    """
    text_key: int
    """`text_key` of its text."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1, that of its kind when the event was folded."""
    text: str | None = None
    """The text by the declaration of its kind; None means `Event.text`."""


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


DOCUMENTS = Table("index.document", Document, write_only=True)
SESSIONS = Table("index.session", Session)


class Index:
    """Fold of every memorable event with a text, whose kind is recalled, into a document.

    A document's `before` is text that all its readers may see, so that no vector depends on an event that one of them
    must not see.
    """

    name: ClassVar[str] = "index"
    version: ClassVar[int] = 3
    tables = (DOCUMENTS, SESSIONS)

    def __init__(self, made_with: Mapping[str, Any]) -> None:
        """`made_with` identifies the embedder and the version of points. If it differs, the index is rebuilt."""
        self.made_with = dict(made_with)

    def needs(self, record: Record) -> Iterable[RowKey]:
        if record.memorable:
            yield RowKey(settings.SPACES.name, record.event.space)
            yield RowKey(SESSIONS.name, record.event.space, record.event.session or "")

    def apply(self, rows: Rows, record: Record) -> None:
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
            importance=kind.importance,
            text=settings.declared_text(space, event),
            text_key=text_key(words),
        )
        rows.put(DOCUMENTS, document, "", key=point_id(event.space, name, session.documents))
        end = f"{event.agent}: {words[-limits.INDEX_BEFORE_CHARS :]}"[-limits.INDEX_BEFORE_CHARS :]
        rows.put(SESSIONS, _next(session, Excerpt(session.documents, readers, end)), event.space, name)


def clean(text: str) -> str:
    """`text` without leading and trailing white space, and with "?" for lone surrogates, which JSON can contain."""
    return text.encode("utf-8", "replace").decode().strip()


def prose_length(words: str, kind: Kind) -> int:
    """`passages.length` of a text; 0 for an action, whose text is long because its data are."""
    return 0 if kind.role == kinds.ACTION else passages.length(words)


def text_key(words: str) -> int:
    """63 bits of the digest of a cleaned text, by which equal texts are found."""
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big") >> 1


def point_id(space: str, session: str, ordinal: int) -> str:
    """The id (a UUID) of a document's point. The neighbours of a document can be read by their ids."""
    digest = hashlib.blake2b(f"{space}\0{session}\0{ordinal}\0".encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def payload(document: Document) -> dict[str, Any]:
    """The payload of a document's point."""
    return {**msgspec.structs.asdict(document), "readers": list(document.readers)}


def from_payload(fields: Mapping[str, Any]) -> Document:
    """The document in a point's payload. Raises `msgspec.ValidationError` for other payloads."""
    return msgspec.convert(dict(fields), Document)


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
