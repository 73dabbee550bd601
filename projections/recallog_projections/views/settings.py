"""What agents and spaces are set to. Settings are folded here and act on read, but for the shared kinds: those decide
who sees an event at the moment it is said, so what was private then stays private."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from recallog_projections.projection import RowKey, Table
from recallog_projections.rows import Rows
from recallog_schemas import Record
from recallog_schemas.kinds import DEFAULT_SHARED_KINDS, AgentConfigured

_AGENT_FIELDS = frozenset(AgentConfigured.model_fields)


class SpaceSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    shared_kinds: tuple[str, ...] | None = None
    """Sorted."""
    scene_kinds: tuple[str, ...] | None = None


class AgentSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """None is the default of each."""

    window: int | None = None
    use_salience: bool | None = None
    salience_weights: dict[str, float] | None = None
    salience_top_k: int | None = None
    reflection_threshold: int | None = None
    persona: str | None = None
    goal: str | None = None


SPACES = Table("settings.space", SpaceSettings)
AGENTS = Table("settings.agent", AgentSettings)


def shared_kinds(rows: Rows, space: str) -> Collection[str]:
    """The kinds that all agents of `space` see as of the record being folded."""
    settings = rows.get(SPACES, space)
    if settings is None or settings.shared_kinds is None:
        return DEFAULT_SHARED_KINDS
    return settings.shared_kinds


class SettingsProjection:
    """Fold of `agent.configured`, `space.configured` and the shared kinds of `run.started`.

    It is folded after all other projections, so that a record is judged by the settings before it.
    """

    name: ClassVar[str] = "settings"
    version: ClassVar[int] = 2
    kinds = frozenset({"agent.configured", "space.configured", "run.started"})
    tables = (SPACES, AGENTS)

    def needs(self, record: Record) -> Iterable[RowKey]:
        event = record.event
        yield RowKey(SPACES.name, event.space)
        if event.kind == "agent.configured":
            yield RowKey(AGENTS.name, event.space, event.agent)

    def apply(self, rows: Rows, record: Record) -> None:
        event = record.event
        if event.kind == "agent.configured":
            settings = rows.get(AGENTS, event.space, event.agent) or AgentSettings()
            rows.put(AGENTS, _changed(settings, event.payload), event.space, event.agent)
        elif event.kind == "space.configured":
            space = rows.get(SPACES, event.space) or SpaceSettings()
            rows.put(SPACES, _space(space, event.payload), event.space)
        elif event.kind == "run.started" and event.payload.get("shared_kinds") is not None:
            space = rows.get(SPACES, event.space) or SpaceSettings()
            rows.put(SPACES, _space(space, {"shared_kinds": event.payload["shared_kinds"]}), event.space)


def _changed(settings: AgentSettings, payload: Mapping[str, Any]) -> AgentSettings:
    changed = {name: value for name, value in payload.items() if name in _AGENT_FIELDS}
    if changed.get("salience_weights") is not None:
        # JSON has no floats: a weight of 1 must be the same row before and after it was stored.
        changed["salience_weights"] = {name: float(weight) for name, weight in changed["salience_weights"].items()}
    return msgspec.structs.replace(settings, **changed)


def _space(settings: SpaceSettings, payload: Mapping[str, Any]) -> SpaceSettings:
    shared, scene = payload.get("shared_kinds"), payload.get("scene_kinds")
    if "shared_kinds" in payload:
        settings = msgspec.structs.replace(
            settings, shared_kinds=None if shared is None else tuple(sorted(set(shared)))
        )
    if "scene_kinds" in payload:
        settings = msgspec.structs.replace(settings, scene_kinds=None if scene is None else tuple(scene))
    return settings
