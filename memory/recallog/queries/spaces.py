"""Spaces: their agents with their settings, their sessions and kinds."""

from collections.abc import Sequence
from contextlib import aclosing

from recallog.reading.read_session import ComputedAtFields, ReadSession, Snapshot
from recallog.reading.readings import AgentReading, SpaceReading
from recallog.reading.subject import of_agent, of_space, snapshot_of
from recallog_projections.stores.store import StoredRow
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import activity, episodic, outline, scene, settings, trust
from recallog_projections.views.settings import AgentSettings, SpaceSettings
from recallog_schemas import Position, codec, kinds, limits
from recallog_schemas.errors import InvalidArgument, OutOfRange
from recallog_schemas.kinds import (
    CaptureSettings,
    DailySettings,
    QualitySettings,
    RagSettings,
    SalienceWeights,
    SpaceTiers,
    TierSettings,
    WorkingSettings,
)
from recallog_schemas.views import (
    AgentSettingsView,
    AgentsView,
    AgentView,
    KindsView,
    KindView,
    ResumeView,
    SessionsView,
    SpaceDetail,
    SpaceSettingsView,
    SpaceView,
)

_Span = activity.AgentSpan | activity.SessionSpan | activity.Span
_SpanTable = Table[activity.AgentSpan] | Table[activity.SessionSpan] | Table[activity.Span]
_COUNTED: Sequence[_SpanTable] = (activity.AGENTS, activity.SESSIONS, activity.KINDS)


async def spaces(reading: ReadSession, cursor: str | None, most: int) -> list[SpaceView]:
    """The spaces of a partition after the name `cursor`, by name: at least the first `most` of them."""
    after = None if cursor is None else (cursor, "", "")
    rows = reading.scan(activity.SPACES.name, after=after, first_items=most)
    found = list[SpaceView]()
    async with aclosing(rows):
        async for item, at in rows:
            found.append(_space(reading.partition, at, item.space, activity.SPACES.decode(item.data)))
            if len(found) == most:
                break
    return found


async def space_detail(reading: SpaceReading) -> SpaceDetail:
    """One space with its agents, sessions and kinds."""
    space = reading.space
    found, (agent_spans, session_spans, kind_spans) = await _spans(reading, _COUNTED)
    row = found.row(activity.SPACES, space)
    return SpaceDetail(
        **of_space(found, space),
        activity=_space(reading.partition, found.computed_at, space, row) if row else None,
        agents=tuple(agent_spans[: limits.PAGE_ITEMS_MAX]),
        sessions=tuple(session_spans[: limits.PAGE_ITEMS_MAX]),
        kinds=tuple(kind_spans[: limits.PAGE_ITEMS_MAX]),
        left_out=sum(max(0, len(each) - limits.PAGE_ITEMS_MAX) for each in (agent_spans, session_spans, kind_spans)),
    )


async def agents(reading: SpaceReading, cursor: str | None, limit: int) -> AgentsView:
    """The agents that have acted in `space`, by name."""
    space = reading.space
    found, (spans,) = await _spans(reading, [activity.AGENTS])
    following = [agent for agent in spans if cursor is None or agent.name > cursor]
    return AgentsView(**of_space(found, space), **AgentsView.fields_of(following, limit))


async def agent_names(reading: SpaceReading) -> list[str]:
    """The names of all agents that have acted in the space."""
    _, (spans,) = await _spans(reading, [activity.AGENTS])
    return [agent.name for agent in spans]


async def sessions(reading: SpaceReading, cursor: str | None, limit: int) -> SessionsView:
    """The sessions of `space`, the one with the newest event first. Raises `InvalidArgument` for an invalid cursor."""
    space = reading.space
    found, (spans,) = await _spans(reading, [activity.SESSIONS])
    newest_first = sorted(spans, key=lambda session: session.last, reverse=True)
    if cursor is not None:
        try:
            last = Position.parse(cursor)
        except OutOfRange:
            message = "cursor: is not the `next` of a page of sessions"
            raise InvalidArgument(message, path="cursor", rule="cursor") from None
        newest_first = [session for session in newest_first if session.last < last]
    return SessionsView(**of_space(found, space), **SessionsView.fields_of(newest_first, limit))


async def resume(reading: SpaceReading) -> ResumeView:
    """The state in which a space stopped."""
    space = reading.space

    async def read(session: SpaceReading) -> tuple[Snapshot, str | None, int | None]:
        keys = [RowKey(table.name, space) for table in (activity.SPACES, outline.OUTLINES)]
        snapshot = await session.snapshot(keys)
        whole, sessions = snapshot.row(activity.SPACES, space), snapshot.row(outline.OUTLINES, space)
        newest = None if sessions is None else sessions.newest or sessions.previous
        if newest is None:
            return snapshot, None, None if whole is None else whole.turn
        key = RowKey(activity.SESSIONS.name, space, newest)
        span = (await session.snapshot([key])).row(activity.SESSIONS, space, newest)
        return snapshot, newest, None if span is None else span.turn

    snapshot, newest, turn = await reading.steady(read)
    known = snapshot.row(activity.SPACES, space) is not None
    return _make_resume(snapshot.computed_at, space, None, newest, turn, known=known)


async def resume_of_agent(reading: AgentReading) -> ResumeView:
    """The state in which a space stopped, by the events that the agent may see and the views retain."""
    space, agent, log_events = reading.space, reading.agent, reading.log_events
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, agent)], episodic.logs(space, agent, log_events)
    )
    memories = episodic.merge(snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space))
    session, turn = None, None
    for memory in reversed(memories):
        event = codec.decode(memory.data)
        if session is None and event.session is not None:
            session, turn = event.session, event.turn
        elif event.session == session:
            turn = event.turn if turn is None else max(turn, event.turn)
    known = (await of_agent(reading, snapshot))["known"]
    return _make_resume(snapshot.computed_at, space, agent, session, turn, known=known)


def _make_resume(
    computed_at: ComputedAtFields, space: str, agent: str | None, session: str | None, turn: int | None, *, known: bool
) -> ResumeView:
    next_turn = 0 if turn is None else turn + 1
    return ResumeView(
        **computed_at, space=space, agent=agent, known=known, session=session, turn=turn, next_turn=next_turn
    )


async def _spans(reading: SpaceReading, tables: Sequence[_SpanTable]) -> tuple[Snapshot, list[list[AgentView]]]:
    """The row of `space`, and its rows of each of `tables`, by name."""

    space = reading.space

    async def read(session: SpaceReading) -> tuple[Snapshot, list[list[StoredRow]]]:
        snapshot = await session.snapshot([RowKey(activity.SPACES.name, space)])
        return snapshot, [[item async for item, _ in session.scan(table.name, space)] for table in tables]

    snapshot, found = await reading.steady(read)
    return snapshot, [
        [_span(reading.partition, item.owner, table.decode(item.data)) for item in items]
        for table, items in zip(tables, found, strict=True)
    ]


async def agent_settings(reading: AgentReading) -> AgentSettingsView:
    """The settings of `agent`, with defaults."""
    space, agent = reading.space, reading.agent
    snapshot = await snapshot_of(reading)
    own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
    return AgentSettingsView(
        **await of_agent(reading, snapshot),
        window=own.window or limits.WINDOW_EVENTS,
        use_salience=own.use_salience or False,
        salience_weights=SalienceWeights(**(own.salience_weights or {})),
        salience_top_k=own.salience_top_k or limits.SALIENT_EVENTS,
        reflection_threshold=own.reflection_threshold,
        persona=own.persona,
        goal=own.goal,
        working=WorkingSettings.model_validate(own.working or {}),
        rag=RagSettings.model_validate(own.rag or {}),
        quality=QualitySettings.model_validate(own.quality or {}),
        tiers=TierSettings.model_validate(own.tiers or {}),
        capture=CaptureSettings.model_validate(own.capture or {}),
        extract_facts=own.extract_facts or False,
        daily=DailySettings.model_validate(own.daily or {}),
        auto_recall=own.auto_recall or False,
        people=own.people or kinds.VISITORS,
    )


async def space_settings(reading: SpaceReading) -> SpaceSettingsView:
    """The settings of `space`, with defaults."""
    space = reading.space
    snapshot = await reading.snapshot([RowKey(settings.SPACES.name, space), RowKey(activity.SPACES.name, space)])
    set_to = snapshot.row(settings.SPACES, space) or SpaceSettings()
    shared = kinds.shared_kinds() if set_to.shared_kinds is None else set_to.shared_kinds
    return SpaceSettingsView(
        **of_space(snapshot, space),
        shared_kinds=tuple(sorted(shared)),
        scene_kinds=tuple(scene.scene_kinds(set_to)),
        kinds=tuple(_list_declared(space, set_to)),
        scene_notes=scene.scene_notes(set_to),
        trust=trust.settings_of(set_to),
        tiers=SpaceTiers.model_validate(set_to.tiers or {}),
    )


async def kinds_of(reading: SpaceReading) -> KindsView:
    """The kinds of the catalogue, and the kinds that `space` declares. Its declaration takes precedence over a
    model's."""
    space = reading.space
    snapshot = await reading.snapshot([RowKey(settings.SPACES.name, space), RowKey(activity.SPACES.name, space)])
    set_to = snapshot.row(settings.SPACES, space) or SpaceSettings()
    others = [kind for name, kind in kinds.CATALOGUE.items() if name not in set_to.kinds]
    known = [KindView.of(kind, shared=settings.shares(set_to, kind.name)) for kind in others]
    return KindsView(
        **of_space(snapshot, space),
        kinds=(*known, *_list_declared(space, set_to)),
    )


async def declared_kinds(reading: ReadSession) -> list[KindView]:
    """The kinds that the spaces of a partition declare, by space and name."""
    return [
        kind
        async for item, _ in reading.scan(settings.SPACES.name)
        for kind in _list_declared(item.space, settings.SPACES.decode(item.data))
    ]


def _list_declared(space: str, set_to: SpaceSettings) -> list[KindView]:
    return [
        KindView.of(settings.kind_of(set_to, name), shared=settings.shares(set_to, name), space=space)
        for name in set_to.kinds
    ]


def _space(partition: int, computed_at: ComputedAtFields, space: str, row: activity.SpaceSpan) -> SpaceView:
    return SpaceView(
        **computed_at,
        space=space,
        events=row.events,
        agents=row.agents,
        sessions=row.sessions,
        first=Position(partition, row.first),
        last=Position(partition, row.last),
    )


def _span(partition: int, name: str, row: _Span) -> AgentView:
    return AgentView(
        name=name, events=row.events, first=Position(partition, row.first), last=Position(partition, row.last)
    )
