"""Settings view: the settings of agents and spaces.

Queries apply the current settings, except for shared and declared kinds: these determine the visibility and the text of
an event when it is folded. An event that was private then stays private, and its text does not change.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Record, kinds, limits
from recallog_schemas.errors import ProjectionError
from recallog_schemas.kinds import AgentConfigured, Dates, DeclaredKind, EpisodeRole, Kind, People

_AGENT_FIELDS = frozenset(AgentConfigured.model_fields)
_KIND_FIELDS = frozenset(DeclaredKind.model_fields)


class Declaration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A space's declaration of one kind, see `kinds.DeclaredKind`."""

    importance: float = kinds.DEFAULT_IMPORTANCE
    shared: bool = False
    text: str | None = None
    role: EpisodeRole = kinds.MEMORY


_DEFAULTS = Declaration()


class SpaceSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a space; None means the default."""

    shared_kinds: tuple[str, ...] | None = None
    """Sorted."""
    scene_kinds: tuple[str, ...] | None = None
    kinds: dict[str, Declaration] = {}
    """By name, sorted."""
    trust: dict[str, Any] | None = None
    """See `kinds.TrustSettings`."""
    scene_notes: dict[str, int] | None = None
    tiers: dict[str, Any] | None = None
    """See `kinds.SpaceTiers`."""


class AgentSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of an agent; None means the default."""

    window: int | None = None
    use_salience: bool | None = None
    salience_weights: dict[str, float] | None = None
    salience_top_k: int | None = None
    reflection_threshold: int | None = None
    persona: str | None = None
    goal: str | None = None
    dates: Dates | None = None
    working: dict[str, Any] | None = None
    rag: dict[str, Any] | None = None
    quality: dict[str, Any] | None = None
    tiers: dict[str, Any] | None = None
    capture: dict[str, Any] | None = None
    extract_facts: bool | None = None
    daily: dict[str, Any] | None = None
    auto_recall: bool | None = None
    people: People | None = None


def dates_of(agent: AgentSettings | None) -> Dates:
    """Whether the lines of events carry dates for an agent with these settings."""
    return (agent.dates if agent is not None else None) or kinds.AUTOMATIC


SPACES = Table("settings.space", SpaceSettings)
AGENTS = Table("settings.agent", AgentSettings)


def shares(space: SpaceSettings | None, kind: str) -> bool:
    """Whether all agents of a space with these settings see events of `kind`.

    These are the shared kinds of the space, and the kinds that it declares as shared.
    """
    if space is None:
        return kinds.kind_of(kind).shared
    shared = kinds.kind_of(kind).shared if space.shared_kinds is None else kind in space.shared_kinds
    return shared or (kind in space.kinds and space.kinds[kind].shared)


def kind_of(space: SpaceSettings | None, name: str) -> Kind:
    """The definition of the kind `name` in a space with these settings: its declaration, or that of the catalogue."""
    declared = space.kinds.get(name) if space is not None else None
    if declared is None:
        return kinds.kind_of(name)
    return kinds.declare_kind(name, declared.importance, declared.shared, declared.text, declared.role)


class FoldPlan(NamedTuple):
    """What projections do with the events of one kind, under the settings of a space."""

    kind: Kind
    shared: bool
    """Whether all agents of the space see those of them that have no audience."""
    is_action: bool
    is_visitor: bool
    declares_text: bool
    """Whether the space declares their text."""


class FoldPlans(dict[str, FoldPlan]):
    """The plans of a space with certain settings, by kind."""

    def __init__(self, space: SpaceSettings | None) -> None:
        super().__init__()
        self.space = space

    def __missing__(self, name: str) -> FoldPlan:
        if len(self) >= limits.CACHED_PLANS_MAX:
            self.clear()
        kind = kind_of(self.space, name)
        declared = None if self.space is None else self.space.kinds.get(name)
        declares_text = declared is not None and declared.text is not None
        self[name] = plan = FoldPlan(
            kind, shares(self.space, name), kind.role == kinds.ACTION, kind.role == kinds.VISITOR, declares_text
        )
        return plan


def read_all(rows: Rows, records: Mapping[str, Sequence[Record]]) -> None:
    """Read the settings of all spaces and agents of `records`, which are by space."""
    for space, of_space in records.items():
        rows.get(SPACES, space)
        for agent in {record.event.agent for record in of_space}:
            rows.get(AGENTS, space, agent)


def plans(rows: Rows, space: str) -> FoldPlans:
    """The plans of a space, which stay the same for a run: its settings end one."""
    row = rows.get(SPACES, space)
    known = _plans()
    found = known.get(id(row))
    if found is None or found.space is not row:
        if len(known) >= limits.CACHED_PLANS_MAX:
            known.clear()
        found = known[id(row)] = FoldPlans(row)
    return found


@kinds.cache_by_catalogue
def _plans() -> dict[int, FoldPlans]:
    """Plans by the identity of the settings, which they keep alive."""
    return {}


class SettingsProjection:
    """Fold of `agent.configured`, `space.configured` and the shared kinds of `run.started`.

    It is folded after all other projections, so that these apply the settings before the record.
    """

    name: ClassVar[str] = "settings"
    version: ClassVar[int] = 6
    kinds = frozenset({"agent.configured", "space.configured", "run.started"})
    tables = (SPACES, AGENTS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if event.kind == "agent.configured":
                settings = rows.get(AGENTS, event.space, event.agent) or AgentSettings()
                rows.put(AGENTS, _change_settings(settings, event.payload), event.space, event.agent)
            elif event.kind == "space.configured":
                space = rows.get(SPACES, event.space) or SpaceSettings()
                rows.put(SPACES, configure_space(space, event.payload), event.space)
            elif event.payload.get("shared_kinds") is not None:
                space = rows.get(SPACES, event.space) or SpaceSettings()
                rows.put(SPACES, configure_space(space, {"shared_kinds": event.payload["shared_kinds"]}), event.space)


def _change_settings(settings: AgentSettings, payload: Mapping[str, Any]) -> AgentSettings:
    changed = {name: value for name, value in payload.items() if name in _AGENT_FIELDS}
    if changed.get("salience_weights") is not None:
        # A weight of 1 may be an integer in JSON; as a float it is the same row before and after it was stored.
        changed["salience_weights"] = {name: float(weight) for name, weight in changed["salience_weights"].items()}
    return msgspec.structs.replace(settings, **changed)


def configure_space(settings: SpaceSettings, payload: Mapping[str, Any]) -> SpaceSettings:
    """The settings of a space as `space.configured` changes them. Raises `ProjectionError` for too many kinds."""
    shared, scene = payload.get("shared_kinds"), payload.get("scene_kinds")
    if "shared_kinds" in payload:
        settings = msgspec.structs.replace(
            settings, shared_kinds=None if shared is None else tuple(sorted(set(shared)))
        )
    if "scene_kinds" in payload:
        settings = msgspec.structs.replace(settings, scene_kinds=None if scene is None else tuple(scene))
    whole = {name: payload[name] for name in ("trust", "scene_notes", "tiers") if name in payload}
    settings = msgspec.structs.replace(settings, **whole) if whole else settings
    if "kinds" in payload:
        settings = msgspec.structs.replace(settings, kinds=_declare_kinds(settings.kinds, payload["kinds"]))
    return settings


def _declare_kinds(before: Mapping[str, Declaration], changed: Mapping[str, Any] | None) -> dict[str, Declaration]:
    if changed is None:
        return {}
    after = dict(before)
    for name, fields in changed.items():
        if fields is None:
            after.pop(name, None)
        else:
            after[name] = _declaration(fields)
    if len(after) > limits.DECLARED_KINDS_MAX:
        raise ProjectionError(
            f"the space would declare {len(after)} kinds, the limit is {limits.DECLARED_KINDS_MAX}; "
            "take others back in the same event, with null instead of a declaration"
        )
    return dict(sorted(after.items()))


def _declaration(fields: Mapping[str, Any]) -> Declaration:
    given = {name: value for name, value in fields.items() if name in _KIND_FIELDS and value is not None}
    if "importance" in given:
        given["importance"] = float(given["importance"])  # as the weights above
    # An explicit default is left out: a row is encoded without it once it was read from a store.
    return Declaration(**{name: value for name, value in given.items() if value != getattr(_DEFAULTS, name)})
