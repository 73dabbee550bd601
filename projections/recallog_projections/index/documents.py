"""The projection of the semantic index: the documents of memorable events and of memory models.

Each memorable event with a text that recall may find has one document. Models add documents of texts that they keep
(`DocumentMaker`), which follow from rows that the index folds along. The store of the index turns documents into points
of the engine.

Documents of models stand alone: they have no number in a session, no neighbours, and no preceding text. A text that
changes gets another form, with a document of its own. The former document ends: it says until when it held, and is
moved to another space of the engine, which only queries to the past search.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from recallog_projections.index import passages
from recallog_projections.index.engines.engine import EVERYBODY, in_points, of_points, past_of
from recallog_projections.index.language import questions
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.settings import FoldPlan, SettingsProjection
from recallog_schemas import Record, kinds, limits, models
from recallog_schemas.errors import ProjectionError
from recallog_schemas.event import ERASED_VERSION
from recallog_schemas.kinds import Kind

SHARED = (EVERYBODY,)
ALONE = -1
"""The ordinal of documents that stand alone."""
IMPORTANCE_DECIMALS = 6
"""The embedded engine returns numbers of 16 or more digits with another last digit, which would fail the checksum."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One memory in the index."""

    space: str
    """The space of its event or text; `apart_from` that space for a text that only queries for such texts search."""
    agent: str
    kind: str
    readers: tuple[str, ...]
    """The names of the agents that may see it, or `EVERYBODY`."""
    session: str = ""
    """The session's id, "" without one: the documents of a space without a session form one session."""
    ordinal: int = ALONE
    """Its ordinal among the documents of its session; `ALONE` for a document of a model."""
    is_action: bool = False
    """Whether its kind has the role `action`, for example a tool call."""
    is_question: bool = False
    """Whether its text is a question: the next document is likely the answer."""
    length: int
    """`prose_length` of its text."""
    turn: int = 0
    at: int
    """Microseconds since 1970."""
    offset: int
    event: str = ""
    """The JSON of the event in the ledger; of a text of a model that of the event that would keep it as it is now. A
    text without one is a part of a longer text, and its first line is a heading."""
    before: str = ""
    """The end of "author: text" of the previous document of its session that all its readers may see; "" without one.
    """
    text_key: int
    """`text_key` of its text."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1: that of the text, or of the kind of an event when it was folded; rounded."""
    text: str | None = None
    """The text by the declaration of its kind; None means `Event.text`."""
    entry: str = ""
    """The id of the text that a model keeps; "" for an event."""
    type: str = ""
    """Its type. This and the following fields are those of texts of models."""
    version: int = 0
    """Its version."""
    since: int = -1
    """The offset of the record that gave it this form."""
    since_at: int = 0
    """When that event happened, in microseconds since 1970."""
    until: int | None = None
    """The offset of the record that ended this form; None: it is the present one."""
    until_at: int | None = None
    """When that event happened."""
    written: int = -1
    """The offset of the last record that changed the document."""
    tier: str = ""
    """The tier that it is in; "" without one, and of an ended form."""

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a longer text: its first line is then a heading."""
        return not self.event

    @property
    def last_changed(self) -> int:
        """The offset of the record from which on the document exists as it is."""
        return self.written if self.entry else self.offset


_VERSION = 5
"""The version of the documents of events, without those of the makers."""
ADDED = "documents"
"""The part of `made_with` that has the versions of makers of models that are not built in, by the names of the models.
"""
_OF_ENTRY = frozenset({"entry", "type", "version", "since", "since_at", "until", "until_at", "written", "tier"})
"""The fields that documents of events do not have in their payload."""


class Excerpt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The end of a recent document of a session."""

    ordinal: int
    readers: tuple[str, ...]
    text: str
    """The last `limits.INDEX_BEFORE_CHARS` characters of "author: text"."""


class SessionDocuments(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents of a session, and the ends of the newest ones."""

    documents: int
    shared: Excerpt | None
    """That of the newest document that all agents may see."""
    others: tuple[Excerpt, ...]
    """Those of the newest documents that only some agents may see, oldest first; at most `limits.INDEX_OTHERS_KEPT`."""


class DocumentCount(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents that models have of a space, of present and of ended forms, less the erased events: these
    have no document, but their sessions count them."""

    documents: int


DOCUMENTS = Table("index.document", Document, write_only=True)
SESSIONS = Table("index.session", SessionDocuments)
COUNTS = Table("index.entries", DocumentCount)
"""At (space)."""


class DocumentMaker(ABC):
    """Makes the documents of a memory model: a pure function of the rows that a record has changed.

    The makers of all models are called in the order of the models, after the projections whose rows they read. A later
    one may replace a document that an earlier one has written.
    """

    version: int
    """From 1. Raise it whenever the same records would give other documents. The index is then rebuilt, and vectors of
    the same texts are used again."""
    kinds: Collection[str]
    """The kinds of the events that it is called for."""
    tables: Sequence[Table[Any]] = ()
    """The tables that it writes besides `DOCUMENTS`."""

    @abstractmethod
    def projections(self) -> Sequence[Projection]:
        """The projections whose rows it reads, in the order of folding. The index folds them along, each
        once."""

    @abstractmethod
    def apply(self, rows: Rows, record: Record) -> int:
        """Write and delete documents in `DOCUMENTS`, each at the id of its point (`uuid_of`) as the key alone.

        Returns by how many the number of documents has grown; it is negative if there are fewer.
        """


def built_in_makers() -> list[DocumentMaker]:
    """The document makers of the built-in models."""
    return [module.MAKER for module in models.import_parts("recallog_projections", "documents")]


class Index:
    """Fold of every memorable event with a text, whose kind is recalled, and of the texts of models into documents.

    A document's `before` is text that all its readers may see, so that no vector depends on an event that one of them
    must not see.
    """

    name: ClassVar[str] = "index"

    def __init__(
        self,
        made_with: Mapping[str, Any],
        makers: Sequence[DocumentMaker] = (),
        added: Mapping[str, DocumentMaker] | None = None,
    ) -> None:
        """`made_with` identifies the embedder and the version of points. If it differs, the index is rebuilt.

        `makers` are those of the built-in models, and `added` those of other models, by the names of the models.
        """
        of_models = added or {}
        versions = {name: maker.version for name, maker in of_models.items()}
        self.made_with = {**made_with, ADDED: versions} if versions else dict(made_with)
        self.makers = [*makers, *of_models.values()]
        self.version = _VERSION + sum(maker.version for maker in makers)
        self.tables: Sequence[Table[Any]] = [
            DOCUMENTS,
            SESSIONS,
            COUNTS,
            *(table for each in self.makers for table in each.tables),
        ]
        self.ends_runs = frozenset(kind for maker in self.makers for kind in maker.kinds)
        self._by_kind: dict[str, list[DocumentMaker]] = {}
        for maker in self.makers:
            for kind in maker.kinds:
                self._by_kind.setdefault(kind, []).append(maker)

    def group(self) -> list[Projection]:
        """The index and the projections that are folded with it, in the order of folding.

        Raises `ProjectionError` for two projections of one name.
        """
        read: dict[str, Projection] = {}
        for each in (projection for maker in self.makers for projection in maker.projections()):
            if type(read.setdefault(each.name, each)) is not type(each):
                raise ProjectionError(f"two models have projections of the index that are named {each.name!r}")
        return [*read.values(), self, SettingsProjection()]

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        sessions: dict[str, SessionDocuments] = {}
        for record in run:
            if record.event.envelope == ERASED_VERSION:
                self._leave_out(rows, record, plans[record.event.kind], sessions)
                continue
            self._apply_makers(rows, record)
            if record.memorable:
                self._add_event(rows, record, plans[record.event.kind], sessions)
        for name, session in sessions.items():
            rows.put(SESSIONS, session, space, name)

    def _apply_makers(self, rows: Rows, record: Record) -> None:
        makers = self._by_kind.get(record.event.kind, ())
        if more := sum(maker.apply(rows, record) for maker in makers):
            self._count(rows, record, more)

    def _count(self, rows: Rows, record: Record, more: int) -> None:
        known = rows.get(COUNTS, record.event.space) or DocumentCount(0)
        rows.put(COUNTS, DocumentCount(known.documents + more), record.event.space)

    def _leave_out(self, rows: Rows, record: Record, plan: FoldPlan, sessions: dict[str, SessionDocuments]) -> None:
        """Count an erased event in its session, so that the points after it keep their ids, and thus their vectors."""
        if record.memorable and plan.kind.recalled:
            name = record.event.session or ""
            session = _session(rows, record, sessions)
            sessions[name] = SessionDocuments(session.documents + 1, session.shared, session.others)
            self._count(rows, record, -1)

    def _add_event(self, rows: Rows, record: Record, plan: FoldPlan, sessions: dict[str, SessionDocuments]) -> None:
        """Add the document of an event, if it has a text that recall may find; `sessions` are those of the run."""
        event, kind = record.event, plan.kind
        words = clean(kind.text(event.payload)) if kind.recalled else ""
        if not words:
            return
        readers = SHARED if plan.shared and event.audience is None else tuple(sorted(visibility.readers(event)))
        name = event.session or ""
        session = _session(rows, record, sessions)
        document = Document(
            space=event.space,
            agent=event.agent,
            kind=event.kind,
            readers=readers,
            session=name,
            ordinal=session.documents,
            is_action=plan.is_action,
            is_question=questions.is_question(words),
            length=prose_length(words, kind),
            turn=event.turn,
            at=record.time,
            offset=record.offset,
            event=record.data.decode(),
            before=_before(session, readers),
            importance=round(kind.importance, IMPORTANCE_DECIMALS),
            text=kind.text(event.payload) if plan.declares_text else None,
            text_key=text_key(words),
        )
        rows.put(DOCUMENTS, document, "", key=point_id(event.space, name, session.documents))
        end = f"{event.agent}: {words[-limits.INDEX_BEFORE_CHARS :]}"[-limits.INDEX_BEFORE_CHARS :]
        sessions[name] = _next(session, Excerpt(session.documents, readers, end))


def _session(rows: Rows, record: Record, sessions: Mapping[str, SessionDocuments]) -> SessionDocuments:
    """The session of an event before it."""
    name = record.event.session or ""
    return sessions.get(name) or rows.get(SESSIONS, record.event.space, name) or SessionDocuments(0, None, ())


def clean(text: str) -> str:
    """`text` without leading and trailing white space, and with "?" for lone surrogates, which JSON can contain."""
    return without_surrogates(text).strip()


def without_surrogates(text: str) -> str:
    """`text` with "?" for lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def prose_length(words: str, kind: Kind) -> int:
    """`passages.length` of a text; 0 for an action, whose text is long because its data are."""
    return 0 if kind.role == kinds.ACTION else passages.length(words)


def text_key(words: str) -> int:
    """63 bits of the digest of a cleaned text, by which equal texts are found."""
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big") >> 1


def point_id(space: str, session: str, ordinal: int) -> str:
    """The id (a UUID) of the point of an event's document. Its neighbours can be read by their ids."""
    return uuid_of(f"{space}\0{session}\0{ordinal}\0")


def uuid_of(text: str, person: bytes = b"") -> str:
    """The id of a point, as a UUID: `text` identifies it among those of `person`, a few letters for each maker."""
    digest = hashlib.blake2b(text.encode(), digest_size=16, person=person).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def payload(document: Document) -> dict[str, Any]:
    """The payload of a document's point. That of an event lacks the fields of texts of models."""
    space = in_points(document.space) if document.until is None else past_of(document.space)
    fields = {**msgspec.structs.asdict(document), "space": space, "readers": list(document.readers)}
    return fields if document.entry else {name: value for name, value in fields.items() if name not in _OF_ENTRY}


def from_payload(fields: Mapping[str, Any]) -> Document:
    """The document in a point's payload. Raises `msgspec.ValidationError` for other payloads."""
    document = msgspec.convert(dict(fields), Document)
    space = of_points(document.space)
    return document if space == document.space else msgspec.structs.replace(document, space=space)


def _before(session: SessionDocuments, readers: Sequence[str]) -> str:
    """The newest excerpt that all of `readers` may see; "" without one."""
    seen = [excerpt for excerpt in session.others if set(readers) <= set(excerpt.readers)]
    if session.shared is not None:
        seen.append(session.shared)
    return max(seen, key=lambda excerpt: excerpt.ordinal).text if seen else ""


def _next(session: SessionDocuments, excerpt: Excerpt) -> SessionDocuments:
    if excerpt.readers == SHARED:
        return SessionDocuments(session.documents + 1, excerpt, session.others)
    others = (*session.others, excerpt)[-limits.INDEX_OTHERS_KEPT :]
    return SessionDocuments(session.documents + 1, session.shared, others)
