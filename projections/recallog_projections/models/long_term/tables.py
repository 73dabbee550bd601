"""The tables of entries: what each agent keeps, the verdict on each retained event, and what follows from both."""

from typing import Literal

import msgspec

from recallog_projections.refusals import log_of_refusals
from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas import limits
from recallog_schemas.kinds import SourceClass
from recallog_schemas.models.long_term.kinds import RETAINED

Status = Literal["live", "duplicate", "refused", "retracted", "archived", "erased"]
"""The status of an event that would retain an entry. "duplicate" and "refused" never were entries."""
LIVE: Status = "live"
DUPLICATE: Status = "duplicate"
REFUSED: Status = "refused"
RETRACTED: Status = "retracted"
ARCHIVED: Status = "archived"
ERASED: Status = "erased"

# Reasons of verdicts and refusals. A change is also refused with the status of an entry that is not live.
EQUAL = "equal"  # duplicate: a live entry has the same text
SIMILAR = "similar"  # duplicate by rule 1: a live entry has nearly the same text, and stays as it is
UPDATED = "updated"  # duplicate by rule 1: a live fact had nearly the same text, and has taken this one
PINS = "pins"  # live: with priority normal instead of pinned. A change to pinned is refused
BALANCE = "balance"  # refused: it costs more than its agent has
SOURCE_ERASED = "source_erased"  # refused, or retracted: one of its sources is erased
DEPENDENTS = "dependents"  # refused: one of its sources has too many dependents
KEPT_BEFORE = "kept_before"  # refused: the end of a session brings a text again that its agent has had as an entry
TOO_LARGE = "too_large"  # refused: the entry would exceed a row
UNKNOWN = "unknown"  # change refused: no entry has this id
NOT_OWNER = "not_owner"  # change refused: the entry is another agent's
OWN = "own"  # transfer refused: the entry belongs to the receiver already


class EntryRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry in its current form."""

    space: str
    owner: str
    id: str
    offset: int
    """The offset of the event that retained it. It stays when the entry changes or moves to another owner."""
    at: int
    """When it was retained, in microseconds since 1970."""
    turn: int
    session: str | None
    text: str
    type: str
    entity: str | None
    category: str | None
    source: str | None
    topic: str | None
    importance: float
    confidence: float
    tier: str | None
    """None: it does not age."""
    priority: str
    red_line: bool
    metadata: bytes
    """A JSON object; b"" without metadata."""
    sources: tuple[str, ...]
    """The ids of the events and entries that it was made from."""
    subject: str | None
    """The person that it is about."""
    version: int
    """The number of its texts so far, from 1."""
    updated_at: int
    """When it last changed, in microseconds since 1970: `at` before the first change."""
    audience: tuple[str, ...]
    """The agents besides its owner that may read it, sorted."""
    shared: bool
    """Whether all agents of the space may read it, by the settings of the space when it was retained."""
    preseeded: bool
    since: int
    """The offset of the record that gave it this text, owner and type, or restored it: its form in the index."""
    since_at: int
    """When that event happened, in microseconds since 1970."""
    captured: bool = False
    """Whether it is a call of a tool, which is also found as its event."""

    @property
    def kind(self) -> str:
        """The kind of the event that stands for it."""
        return RETAINED


class EntryRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict on one event that would retain an entry, and where the entry is."""

    owner: str
    offset: int
    status: Status
    reason: str | None = None
    """Why, in the words above, or the reason that the retracting or archiving event gave."""
    of: str | None = None
    """The entry that it duplicates, or the erased source with which it was retracted."""
    similarity: float | None = None
    """The similarity to the entry that it duplicates."""
    retracted: tuple[str, ...] = ()
    """For an erased entry: the ids of the entries that were retracted with it."""
    captured: bool = False
    """Whether its event is a call of a tool."""
    supersedes: tuple[str, ...] = ()
    """The ids of the live entries that said something else of the same, when it was stored."""
    trust: SourceClass | None = None
    """The class of the entry, if it states one below that of agents: see `source_class.class_of`."""


class EntryId(msgspec.Struct, frozen=True, array_like=True, gc=False):
    id: str


class Twin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live entry, and the properties of its text that decide which other texts equal it: see `texts.TextForm`."""

    id: str
    offset: int
    exact: str
    layout: str
    case: str
    normal: bool = False
    """Whether this is its normal form (`texts.normal_form_of`), and not that of the text as it is."""
    trust: SourceClass | None = None
    """The class of the entry, as in `EntryRef`."""


class Twins(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Live entries that may be duplicates of each other, oldest first."""

    entries: tuple[Twin, ...]


class SaidValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The statement of a live entry: see `statements.Statement`."""

    id: str
    offset: int
    at: int
    """When it was said, in microseconds since 1970: when the entry got its text."""
    rule: int
    """The rule of the event that gave it its text."""
    value: str
    negative: bool
    trust: SourceClass | None = None
    """The class of the entry, as in `EntryRef`."""


class Statements(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The statements of live entries about one subject and predicate, in the order in which they were made."""

    entries: tuple[SaidValue, ...]


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An empty row: its address is the information."""


class EntryOwner(msgspec.Struct, frozen=True, array_like=True, gc=False):
    owner: str


class Live(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The number of live entries."""

    entries: int


class AgentEntries(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's pins and account."""

    pinned: tuple[str, ...] = ()
    """The ids of its pinned entries, at most `long_term_limits.ENTRY_PINS_MAX`."""
    balance: float | None = None
    """The units that it may still spend; None: it was never granted any, and pays nothing."""
    spent: float = 0.0
    """The units that it has spent."""
    eur: float = 0.0
    """The sum of what was metered in euros: negative for uses."""


class Dependents(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The live entries that name one source."""

    ids: tuple[str, ...]


class CapturedCalls(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When calls of tools were captured in one minute of the times of events."""

    minute: int
    """Its number since 1970."""
    times: tuple[int, ...]
    """In microseconds since 1970."""


class AuditEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One change of one entry, without content."""

    operation: str
    """retained, updated, retracted, archived, restored, erased, transferred (by the former owner) or received (by the
    new one)."""
    id: str
    at: int
    """Microseconds since 1970."""
    actor: str
    reason: str | None


class Erasure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The erasure of one entry."""

    at: int
    """Microseconds since 1970."""
    actor: str
    reason: str | None


ROWS = Table("entries.rows", EntryRow)
"""Live entries, at (space, owner, `key_of(offset)`)."""
ENDED = Table("entries.ended", EntryRow)
"""Retracted and archived entries, at the same address."""
IDS = Table("entries.ids", EntryRef)
"""At (space, "", id of the event)."""
READERS = Table("entries.readers", EntryOwner, write_only=True)
"""Live entries that agents other than their owner may read, at (space, name of the reader, `key_of(offset)`). The
reader "" stands for all agents of the space."""
DIGESTS = Table("entries.digests", Twins)
"""Live entries by their texts, at (space, owner, `texts.digest_key`). At most
`long_term_limits.ENTRY_TWINS_MAX` with the same key are listed."""
STATEMENTS = Table("entries.statements", Statements)
"""Live facts and lessons by what they are about, at (space, owner, `linking.statements_key`). At most
`long_term_limits.ENTRY_TWINS_MAX` with the same key are listed."""
KEPT = Table("entries.kept", Mark)
"""Texts that may be in working memory (`migration.qualifies`), for which their agent has, or once had, an entry: at
(space, owner, `texts.text_key`). The rows have no content, and stay when the entry changes or goes: a text that was
corrected, retracted, given away or forgotten does not come back by itself."""
TYPES = Table("entries.types", Live)
"""At (space, owner, type)."""
OF_TYPE = Table("entries.of_type", Mark, write_only=True)
"""Live entries by type, at (space, owner, `type_key`)."""
AGENTS = Table("entries.agents", AgentEntries)
"""At (space, agent)."""
SOURCES = Table("entries.sources", Dependents)
"""At (space, "", id of the source)."""
SUBJECTS = Table("entries.subjects", EntryId, write_only=True)
"""Live, retracted and archived entries by the person that they are about, at (space, owner, `subject_key`)."""
CAPTURED = Table("entries.captured", CapturedCalls)
"""At (space, agent, number of the minute since 1970 modulo `long_term_limits.CAPTURED_MINUTES`)."""
AUDIT = Log("entries.audit", AuditEntry, limits.LOG_EVENTS_KEPT)
"""By (space, owner of the entry)."""
ERASURES = Table("entries.erasures", Erasure, write_only=True)
"""At (space, owner, id of the entry). Never trimmed: time travel needs all of them."""
REFUSALS = log_of_refusals("entries.refusals")

ALL = (
    ROWS, ENDED, IDS, READERS, DIGESTS, STATEMENTS, KEPT, TYPES, OF_TYPE, AGENTS, SOURCES, SUBJECTS, CAPTURED, AUDIT,
    ERASURES, REFUSALS,
)  # fmt: skip


def key_of(offset: int) -> str:
    """The key of an entry, which sorts like its offset."""
    return f"{offset:020d}"


def type_key(type_: str, offset: int) -> str:
    """The key of an entry of a type; those of one type sort like their offsets."""
    return f"{type_}/{key_of(offset)}"


def subject_key(subject: str, offset: int) -> str:
    """The key of an entry about `subject`. Among keys with the prefix `subject/`, only those of this length belong to
    it: another subject may begin with `subject/`."""
    return f"{subject}/{offset:020d}"


def ref_key(space: str, id_: str) -> RowKey:
    """The row key of the verdict on the event `id_`."""
    return RowKey(IDS.name, space, "", id_)


def row_key(space: str, ref: EntryRef) -> RowKey | None:
    """The row key of the entry that `ref` names; None if it has no content: it is erased, or never was an entry."""
    if ref.status == LIVE:
        return RowKey(ROWS.name, space, ref.owner, key_of(ref.offset))
    if ref.status in (RETRACTED, ARCHIVED):
        return RowKey(ENDED.name, space, ref.owner, key_of(ref.offset))
    return None
