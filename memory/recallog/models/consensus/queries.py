"""Consensus: those on similar topics, the dissents on a topic, and one by its id, as an agent may see them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from recallog.reading.read_session import ReadSession, RowPage
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, snapshot_of
from recallog_projections.models.consensus import projection as view
from recallog_projections.models.consensus.projection import ConsensusRow, DissentRow, Mention
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.models.consensus import limits as consensus_limits
from recallog_schemas.models.consensus.views import (
    ConsensusFound,
    ConsensusPage,
    ConsensusView,
    DissentsView,
    DissentView,
    SimilarConsensus,
)

SIMILAR_BEYOND = 0.1
"""Topics with at most this similarity are not similar (memory model, section 1.2)."""
Row = TypeVar("Row", bound=msgspec.Struct)

_HASH = re.compile("[0-9a-f]{16}")

_Keyed = tuple[str, Mention]
"""A mention and its key. Keys sort like the offsets of their consensuses."""


def hash_of(topic: str) -> str:
    """The hash of a topic. The topic may also be given as its hash."""
    return topic if _HASH.fullmatch(topic) else view.topic_hash(topic)


async def find_similar(reading: AgentReading, topic: str, limit: int, min_confidence: float) -> ConsensusFound:
    """The consensuses that `agent` may see whose topics are most similar.

    All consensuses on an equal topic are considered, and the newest `limits.CONSENSUS_COMPARED` for each word.
    """

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> ConsensusFound:
        snapshot = await snapshot_of(session)

        def is_wanted(mention: Mention) -> bool:
            return view.may_read(agent, mention.readers) and mention.confidence >= min_confidence

        hashed, words = view.topic_hash(topic), view.topic_words(topic)
        found = dict.fromkeys(await _rows(session, _Scan(view.TOPICS, hashed), is_wanted, limit), 1.0)
        for word in words if len(found) < limit else ():
            owner, most = view.word_owner(word), consensus_limits.CONSENSUS_COMPARED
            for mention in await _rows(session, _Scan(view.WORDS, owner), is_wanted, most):
                found.setdefault(mention, view.similarity(words, mention[1].words))
        similar = [keyed for keyed, similarity in found.items() if similarity > SIMILAR_BEYOND]
        ranked = sorted(similar, key=lambda keyed: (found[keyed], keyed[0]), reverse=True)[:limit]
        similarities = {keyed[1].id: found[keyed] for keyed in ranked}
        rows = await rows_of(session, space, similarities)
        shown = await _make_views(session, space, agent, rows)
        return ConsensusFound(
            **await of_agent(session, snapshot),
            topic=topic,
            topic_hash=hashed,
            found=tuple(
                SimilarConsensus(similarity=round(similarities[id_], 4), consensus=each) for id_, each in shown.items()
            ),
        )

    return await reading.steady(read)


async def page(reading: AgentReading, limit: int, cursor: str | None) -> ConsensusPage:
    """The consensuses that `agent` may see after the id `cursor`, the greatest id first."""
    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> ConsensusPage:
        snapshot = await snapshot_of(session)

        def is_shown(row: ConsensusRow) -> bool:
            return view.may_read(agent, row.readers)

        found = await _rows(session, _Scan(view.ROWS, "", after=cursor), is_shown, limit + 1)
        shown = RowPage(found[:limit], last=len(found) <= limit).fit(lambda row: len(row.data))
        views = await _make_views(session, space, agent, dict(shown.items))
        return ConsensusPage(**await of_agent(session, snapshot), consensuses=tuple(views.values()), next=shown.next)

    return await reading.steady(read)


async def dissents(reading: AgentReading, topic: str, dissent_type: str | None, limit: int) -> DissentsView:
    """The dissents on a topic that the agent may see, the highest confidence first.

    A dissent that only names a consensus is shown to agents that may see that consensus.
    """

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> DissentsView:
        snapshot = await snapshot_of(session)
        hashed = hash_of(topic)

        on_topic = await _on_topic(session, hashed)
        consensuses = {mention.id for _, mention in on_topic}
        owners = [hashed, *(view.named_owner(mention.id) for _, mention in on_topic if mention.has_early)]

        def is_shown(row: DissentRow) -> bool:
            return (
                (dissent_type is None or row.type == dissent_type)
                and view.may_read(agent, row.readers)
                and (row.by_topic or row.consensus in consensuses)
            )

        found: list[tuple[str, DissentRow]] = []
        for owner in owners:
            found += await _rows(session, _Scan(view.DISSENTS, owner, newest_first=False), is_shown, limit)
        by_key = dict(found)  # a dissent that precedes the consensus that it names may be listed under the topic too
        best = [by_key[key] for key in sorted(by_key)[:limit]]
        named = await rows_of(session, space, {row.consensus for row in best if row.consensus is not None})
        seen = {id_ for id_, row in named.items() if view.may_read(agent, row.readers)}
        return DissentsView(
            **await of_agent(session, snapshot),
            topic_hash=hashed,
            dissents=tuple(
                _dissent_view(session.partition, row.offset, codec.decode(row.data), on_topic, seen) for row in best
            ),
        )

    return await reading.steady(read)


async def dissent(reading: AgentReading, event: Event, position: Position) -> DissentView:
    """The dissent at `position`, which the agent published with the content of `event`."""
    space, named, topic = event.space, event.payload.get("consensus"), event.payload.get("topic")
    about = {} if named is None else await rows_of(reading, space, [named])
    owners = [row.topic_hash for row in about.values()] + [view.named_owner(id_) for id_ in about]
    owners += [] if topic is None else [view.topic_hash(topic)]
    key = view.dissent_key(event.payload["confidence"], position.offset)
    snapshot = await reading.snapshot(RowKey(view.DISSENTS.name, space, owner, key) for owner in owners)
    rows = [snapshot.row(view.DISSENTS, space, owner, key) for owner in owners]
    data = next(row.data for row in rows if row is not None)
    on_topic = () if named is not None else await _on_topic(reading, owners[0])
    return _dissent_view(position.partition, position.offset, codec.decode(data), on_topic, about)


async def by_id(reading: AgentReading, id_: str) -> ConsensusView | None:
    """The consensus with an id; None if there is none that `agent` may see."""

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> ConsensusView | None:
        rows = await rows_of(session, space, [id_])
        readable = {each: row for each, row in rows.items() if view.may_read(agent, row.readers)}
        return (await _make_views(session, space, agent, readable)).get(id_)

    return await reading.steady(read)


async def rows_of(reading: ReadSession, space: str, ids: Iterable[str]) -> dict[str, ConsensusRow]:
    """The rows of consensuses by id, in the order of the ids; unknown ids are left out."""
    keys = {id_: view.row_key(space, id_) for id_ in ids}
    if not keys:
        return {}
    snapshot = await reading.snapshot(keys.values())
    rows = {id_: snapshot.row(view.ROWS, *key[1:]) for id_, key in keys.items()}
    return {id_: row for id_, row in rows.items() if row is not None}


def _dissent_view(
    partition: int, offset: int, event: Event, on_topic: Sequence[_Keyed], seen: Collection[str]
) -> DissentView:
    """The view of a dissent. `on_topic` are the consensuses on its topic, and `seen` those that the reader may see."""
    payload = event.payload
    named = payload.get("consensus")
    about = _newest_before(offset, on_topic) if named is None else named if named in seen else None
    return DissentView(
        id=event.id,
        type=payload["type"],
        content=payload["content"],
        reasoning=payload.get("reasoning"),
        confidence=payload["confidence"],
        rebuttal=payload.get("rebuttal"),
        acknowledged=payload.get("acknowledged"),
        consensus=about,
        agent=event.agent,
        at=event.at,
        position=Position(partition, offset),
    )


def _newest_before(offset: int, on_topic: Sequence[_Keyed]) -> str | None:
    """The consensus that a dissent by topic is about: the last one on its topic before it in the ledger, or else the
    first one after it."""
    before = [mention.id for key, mention in on_topic if key < view.key_of(offset)]
    if before:
        return before[-1]
    return on_topic[0][1].id if on_topic else None


async def _make_views(
    session: ReadSession, space: str, agent: str, rows: Mapping[str, ConsensusRow]
) -> dict[str, ConsensusView]:
    """The views of consensuses that `agent` may see. Each names the superseded ones that `agent` may see. Readers of a
    consensus also see its successor."""
    linked = {id_ for row in rows.values() for id_ in row.supersedes}
    others = await rows_of(session, space, sorted(linked))
    seen = {id_ for id_, row in others.items() if view.may_read(agent, row.readers)}
    return {id_: _consensus_view(session.partition, row, seen) for id_, row in rows.items()}


def _consensus_view(partition: int, row: ConsensusRow, seen: Collection[str]) -> ConsensusView:
    event = codec.decode(row.data)
    payload = event.payload
    agreement = view.agreement_of(payload["participating"], payload["agreeing"])
    return ConsensusView(
        id=event.id,
        topic=payload["topic"],
        topic_hash=row.topic_hash,
        conclusion=payload["conclusion"],
        strength=payload.get("strength") or view.strength_of(agreement),
        agreement=round(agreement, 4),
        confidence=payload["confidence"],
        participating=tuple(payload["participating"]),
        agreeing=tuple(payload["agreeing"]),
        dissenting=tuple(payload.get("dissenting") or ()),
        key_claims=tuple(payload.get("key_claims") or ()),
        cruxes=tuple(payload.get("cruxes") or ()),
        domain=payload.get("domain"),
        tags=tuple(payload.get("tags") or ()),
        rounds=payload.get("rounds"),
        supersedes=tuple(id_ for id_ in row.supersedes if id_ in seen),
        superseded_by=row.superseded_by,
        agent=event.agent,
        at=event.at,
        position=Position(partition, row.offset),
    )


async def _on_topic(session: AgentReading, hashed: str) -> Sequence[_Keyed]:
    """The consensuses on a topic that `agent` may see, in the order of the ledger."""

    def is_wanted(mention: Mention) -> bool:
        return view.may_read(session.agent, mention.readers)

    return (await _rows(session, _Scan(view.TOPICS, hashed), is_wanted, None))[::-1]


@dataclass(frozen=True, slots=True)
class _Scan(Generic[Row]):
    """The rows to read, and their order."""

    table: Table[Row]
    owner: str
    newest_first: bool = True
    after: str | None = None
    """The key after which the scan begins."""


async def _rows(
    session: AgentReading, scan: _Scan[Row], wanted: Callable[[Row], bool], limit: int | None
) -> list[tuple[str, Row]]:
    """The first `limit` rows that are wanted, each with its key; all of them if `limit` is None."""
    found: list[tuple[str, Row]] = []
    last, after = False, scan.after
    size = limits.SCAN_ITEMS if limit is None else min(max(limit, limits.PAGE_ITEMS), limits.SCAN_ITEMS)
    while not last and (limit is None or len(found) < limit):
        page = await session.page(
            scan.table, session.space, scan.owner, newest_first=scan.newest_first, after=after, limit=size
        )
        found += [(key, row) for key, row in page.items if wanted(row)]
        last, after = page.last, page.items[-1][0] if page.items else None
    return found[:limit]
