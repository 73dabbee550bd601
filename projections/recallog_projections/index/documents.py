"""What is indexed: each remembered event that says something becomes one document, which embedders and engine make a
point of. A pure projection like all others, so that a rebuild and a verification give the same documents.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec

from recallog_projections.index.engines.engine import EVERYBODY
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Event, Record, kinds, limits

SHARED = (EVERYBODY,)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SHARED_ALONG = re.compile(r"\s*\[[^\]]*\]\s*$")


class Document(msgspec.Struct, frozen=True):
    """One memory as it is indexed."""

    space: str
    agent: str
    kind: str
    readers: tuple[str, ...]
    """Who may see it: agents, or `EVERYBODY`."""
    session: str
    """"" where it has none: those of a space follow each other like one session."""
    ordinal: int
    """Its ordinal among the documents of its session."""
    is_question: bool
    """Whether it ends in a question mark: what follows is likely the answer."""
    turn: int
    at: int
    """Microseconds since 1970."""
    offset: int
    event: str
    """Its bytes in the ledger, which are JSON."""
    before: str
    """The end of what was said before it in its session, as far as all its readers could see it: "author: text"."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1, of its kind when it was said."""
    text: str | None = None
    """By the declaration of its kind; None: that of `Event.text`."""


class Said(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One of the last things said in a session."""

    ordinal: int
    readers: tuple[str, ...]
    words: str
    """The end of "author: text"."""


class Session(msgspec.Struct, frozen=True, array_like=True):
    """How far a session is, and what was said in it last."""

    documents: int
    shared: Said | None
    """The last that everybody could see."""
    others: tuple[Said, ...]
    """The last that only some could see, oldest first."""


DOCUMENTS = Table("index.document", Document, write_only=True)
SESSIONS = Table("index.session", Session)


class Index:
    """Fold of every remembered event that has words into a document.

    What stands before a document is what each of its readers could see: a vector must not carry what somebody else
    thought in between.
    """

    name: ClassVar[str] = "index"
    version: ClassVar[int] = 2
    tables = (DOCUMENTS, SESSIONS)

    def __init__(self, made_with: Mapping[str, Any]) -> None:
        """`made_with` says what makes points of the documents; an index made with something else is another index."""
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
        words = clean(kind.text(event.payload))
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
            is_question=is_question(words),
            turn=event.turn,
            at=(event.at - _EPOCH) // timedelta(microseconds=1),  # exact, as floats are not
            offset=record.offset,
            event=record.data.decode(),
            before=_before(session, readers),
            importance=kind.importance,
            text=settings.declared_text(space, event),
        )
        rows.put(DOCUMENTS, document, "", key=point_id(event.space, name, session.documents))
        said = f"{event.agent}: {words[-limits.INDEX_BEFORE_CHARS :]}"[-limits.INDEX_BEFORE_CHARS :]
        rows.put(SESSIONS, _gone_on(session, Said(session.documents, readers, said)), event.space, name)


def clean(text: str) -> str:
    """`text` without the half surrogate pairs that JSON can name and no model can read, and without space around it."""
    return text.encode("utf-8", "replace").decode().strip()


def is_question(words: str) -> bool:
    """Whether `words` end in a question; what is shared along with them, in brackets, is passed over."""
    return _SHARED_ALONG.sub("", words).endswith("?")


def point_id(space: str, session: str, ordinal: int) -> str:
    """The id of a document's point: whoever knows one of a session can name its neighbours."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (space, session, str(ordinal)):
        digest.update(part.encode() + b"\0")
    return str(uuid.UUID(bytes=digest.digest()))


def payload(document: Document) -> dict[str, Any]:
    """A document as the engine keeps it."""
    return {**msgspec.structs.asdict(document), "readers": list(document.readers)}


def of_payload(kept: Mapping[str, Any]) -> Document:
    """The document that the engine keeps. Raises `msgspec.ValidationError` where it is none."""
    return msgspec.convert(dict(kept), Document)


def _readers(event: Event, space: SpaceSettings | None) -> tuple[str, ...]:
    if visibility.is_shared(event, space):
        return SHARED
    return tuple(sorted(visibility.readers(event)))


def _before(session: Session, readers: Sequence[str]) -> str:
    """The last thing said that all of `readers` could see."""
    seen = [said for said in session.others if set(readers) <= set(said.readers)]
    if session.shared is not None:
        seen.append(session.shared)
    return max(seen, key=lambda said: said.ordinal).words if seen else ""


def _gone_on(session: Session, said: Said) -> Session:
    if said.readers == SHARED:
        return Session(session.documents + 1, said, session.others)
    others = (*session.others, said)[-limits.INDEX_OTHERS_KEPT :]
    return Session(session.documents + 1, session.shared, others)
