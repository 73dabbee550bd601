"""Consensus view: what agents agreed on, found by the words of its topic, and the dissents of each topic.

Two topics are equal if they have the same words, and similar by the share of words that they have in common. One
consensus supersedes another if both are current, if the agent of the event sees both, and if all readers of the other
one also see it; otherwise the event changes nothing. This is decided in the order of the ledger, so a consensus has at
most one successor, and chains cannot be circles.

A dissent is listed under the topic that it names, and under the topic of the consensus that it names. A query
determines which consensus a dissent by topic is about, since that depends on what the reader may see.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.refusals import Refusal, log_of_refusals
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_projections.views.words import words_of
from recallog_schemas import Event, Record, limits
from recallog_schemas.models.consensus import limits as consensus_limits

RECORDED = "consensus.recorded"
DISSENTED = "dissent.recorded"
SUPERSEDED = "consensus.superseded"

# Why one consensus may not supersede another.
UNKNOWN = "unknown"  # there is no such consensus, or the agent may not see it
OWN = "own"  # a consensus cannot supersede itself
ENDED = "superseded"  # one of the two is superseded already
HIDDEN = "hidden"  # not all agents that see the one see its successor
FULL = "full"  # it already supersedes the maximum


class ConsensusRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One consensus."""

    offset: int
    readers: tuple[str, ...]
    """The agents that see it; () stands for all agents of the space."""
    topic_hash: str
    data: bytes
    """Its event in the ledger."""
    supersedes: tuple[str, ...] = ()
    """The ids of the consensuses that it supersedes."""
    superseded_by: str | None = None
    """The id of the one that supersedes it."""


class Mention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A consensus under its topic, or under a word of it."""

    id: str
    readers: tuple[str, ...]
    words: tuple[str, ...]
    """The words of its topic, as `topic_words` has them."""
    confidence: float
    has_early: bool
    """Whether dissents that precede it name it: they are listed under `named_owner`."""


class DissentRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One dissent."""

    offset: int
    readers: tuple[str, ...]
    type: str
    confidence: float
    consensus: str | None
    """The id of the consensus that it names."""
    by_topic: bool
    """Whether it names the topic under which it is listed."""
    data: bytes
    """Its event in the ledger."""


class Named(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An empty row: a dissent names a consensus that was not recorded then."""


ROWS = Table("consensus.rows", ConsensusRow)
"""At (space, "", id of the event)."""
TOPICS = Table("consensus.topics", Mention, write_only=True)
"""At (space, hash of the topic, `key_of`)."""
WORDS = Table("consensus.words", Mention, write_only=True)
"""At (space, `word_owner`, `key_of`)."""
DISSENTS = Table("consensus.dissents", DissentRow, write_only=True)
"""At (space, hash of the topic or `named_owner`, `dissent_key`)."""
NAMED = Table("consensus.named", Named)
"""At (space, "", id of a consensus that was not recorded then)."""
REFUSALS = log_of_refusals("consensus.refusals")
"""Events whose succession was refused; everything else in them is recorded."""


class ConsensusProjection:
    """Fold of consensus and dissent. Events that time travel has not reached change nothing."""

    name: ClassVar[str] = "consensus"
    version: ClassVar[int] = 3
    kinds = frozenset({RECORDED, DISSENTED, SUPERSEDED})
    tables = (ROWS, TOPICS, WORDS, DISSENTS, NAMED, REFUSALS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if not record.reached:
                continue
            if record.event.kind == RECORDED:
                _record(rows, record)
            elif record.event.kind == DISSENTED:
                _dissent(rows, record)
            else:
                payload = record.event.payload
                _supersede(rows, record, payload["consensus"], payload["by"])


def topic_words(topic: str) -> tuple[str, ...]:
    """The words by which a topic is compared: its distinct words in lower case, the first 64 in their order."""
    return tuple(sorted(words_of(topic))[: consensus_limits.CONSENSUS_WORDS_MAX])


def topic_hash(topic: str) -> str:
    """16 hex digits (SHA-256) of the sorted distinct words of a topic: the same for any order and case of the words."""
    return hashlib.sha256(" ".join(sorted(words_of(topic))).encode()).hexdigest()[:16]


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """The Jaccard similarity of the words of two topics, from 0 to 1."""
    both = set(one) & set(other)
    return len(both) / (len(one) + len(other) - len(both)) if both else 0.0


def agreement_of(participating: Iterable[str], agreeing: Iterable[str]) -> float:
    """The share of the participating agents that agree; 0 without any."""
    present = set(participating)
    return len(present & set(agreeing)) / len(present) if present else 0.0


def strength_of(agreement: float) -> str:
    """How strong an agreement is: 1 unanimous, above .8 strong, from .6 moderate, from .5 weak, else split.

    The shares are those of the memory model, section 1.2.
    """
    if agreement > 0.8:
        return "unanimous" if agreement == 1 else "strong"
    return "moderate" if agreement >= 0.6 else "weak" if agreement >= 0.5 else "split"


def row_key(space: str, id_: str) -> RowKey:
    """The address of a consensus."""
    return RowKey(ROWS.name, space, "", id_)


def key_of(offset: int) -> str:
    """The key of a consensus under its topic and its words; sorts like the offset."""
    return f"{offset:020d}"


def dissent_key(confidence: float, offset: int) -> str:
    """The key of a dissent: the highest confidence sorts first, and of equal ones the newest."""
    return f"{_sort_key(1.0) - _sort_key(confidence):020d}/{limits.INTEGER_MAX - offset:020d}"


def _sort_key(number: float) -> int:
    """An integer that sorts like a number of at least 0: its bits."""
    return int.from_bytes(struct.pack(">d", number + 0.0))  # -0.0 + 0.0 is 0.0


def word_owner(word: str) -> str:
    """The owner of the rows of a word in `WORDS`. Words that share an owner are distinguished by the words of the
    consensus."""
    return hashlib.blake2b(word.encode(), digest_size=8).hexdigest()


def named_owner(id_: str) -> str:
    """The owner in `DISSENTS` of the dissents that precede the consensus that they name."""
    return f"named/{hashlib.blake2b(id_.encode(), digest_size=16).hexdigest()}"


def readers_of(event: Event, space: SpaceSettings | None) -> tuple[str, ...]:
    """The agents that see an event under these settings of its space; () stands for all agents of the space."""
    return () if visibility.is_shared(event, space) else visibility.readers(event)


def may_read(agent: str, readers: Sequence[str]) -> bool:
    """Whether `agent` sees an event with these readers."""
    return not readers or agent in readers


def _record(rows: Rows, record: Record) -> None:
    event = record.event
    space, id_, topic = event.space, event.id, event.payload["topic"]
    readers = readers_of(event, rows.get(settings.SPACES, space))
    hashed, words = topic_hash(topic), topic_words(topic)
    rows.put(ROWS, ConsensusRow(record.offset, readers, hashed, record.data), *row_key(space, id_)[1:])
    has_early = rows.get(NAMED, space, "", id_) is not None
    mention = Mention(id_, readers, words, float(event.payload["confidence"]), has_early)
    rows.put(TOPICS, mention, space, hashed, key_of(record.offset))
    for word in words:
        rows.put(WORDS, mention, space, word_owner(word), key_of(record.offset))
    if event.payload.get("supersedes") is not None:
        _supersede(rows, record, event.payload["supersedes"], id_)


def _dissent(rows: Rows, record: Record) -> None:
    event, payload = record.event, record.event.payload
    named, topic = payload.get("consensus"), payload.get("topic")
    owners: dict[str, bool] = {}
    if named is not None:
        about = rows.get(ROWS, *row_key(event.space, named)[1:])
        if about is None:
            rows.put(NAMED, Named(), event.space, "", named)
        owners[named_owner(named) if about is None else about.topic_hash] = False
    if topic is not None:
        owners[topic_hash(topic)] = True
    readers, confidence = readers_of(event, rows.get(settings.SPACES, event.space)), float(payload["confidence"])
    for owner, by_topic in owners.items():
        row = DissentRow(record.offset, readers, payload["type"], confidence, named, by_topic, record.data)
        rows.put(DISSENTS, row, event.space, owner, dissent_key(confidence, record.offset))


def _supersede(rows: Rows, record: Record, id_: str, by: str) -> None:
    """Let the consensus `by` supersede another one, if it may."""
    space, agent = record.event.space, record.event.agent
    before, after = (rows.get(ROWS, *row_key(space, each)[1:]) for each in (id_, by))
    refused = _refusal(agent, before, after)
    if refused is not None or before is None or after is None:
        rows.append(REFUSALS, Refusal(record.event.id, refused or UNKNOWN), space, agent)
        return
    rows.put(ROWS, msgspec.structs.replace(before, superseded_by=by), *row_key(space, id_)[1:])
    supersedes = (*after.supersedes, id_)
    rows.put(ROWS, msgspec.structs.replace(after, supersedes=supersedes), *row_key(space, by)[1:])


def _refusal(agent: str, before: ConsensusRow | None, after: ConsensusRow | None) -> str | None:
    """Why `agent` may not let the consensus `after` supersede `before`; None if it may."""
    if before is None or after is None:
        return UNKNOWN
    if not may_read(agent, before.readers) or not may_read(agent, after.readers):
        return UNKNOWN
    if before.offset == after.offset:
        return OWN
    if before.superseded_by is not None or after.superseded_by is not None:
        return ENDED
    if after.readers and not (before.readers and set(before.readers) <= set(after.readers)):
        return HIDDEN
    return FULL if len(after.supersedes) >= consensus_limits.CONSENSUS_SUPERSEDED_MAX else None
