"""Source classes: the sources of the words of events, and what a space may make from them.

The class of an event follows from its kind and its author, and from what the event and its space say. An event may
lower its own class, with `trust` in its payload or in `metadata` of it; only a space may raise one.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from recallog_schemas import limits
from recallog_schemas.kinds.episodes import KindName
from recallog_schemas.kinds.kind import ACTION, VISITOR, Kind
from recallog_schemas.kinds.payload import AgentName, Part

SourceClass = Literal["operator", "user", "agent", "tool", "import"]
"""From the most trusted to the least: who runs the memory, people, agents, what tools and other outside sources
printed, and what was taken over from elsewhere, such as a document or a page."""
CLASSES: tuple[SourceClass, ...] = get_args(SourceClass)
AGENT: SourceClass = "agent"
TRUST = "trust"
"""The field with which an event lowers its class."""

_RANKS = {name: -rank for rank, name in enumerate(CLASSES)}
CALL = "tool_usage"
"""The type of entries that are calls of tools: an entry of it states the class `tool`."""
_OUTSIDE = frozenset({"oracle.spoke"})
"""Kinds whose words are from outside the agents, besides those with the role `action`."""


def rank_of(name: object) -> int | None:
    """How trusted a class is: a greater number is more trusted; None if `name` is not a class."""
    return _RANKS.get(name) if isinstance(name, str) else None  # type: ignore[call-overload]


def is_untrusted(name: SourceClass) -> bool:
    """Whether texts of the class are shown as data: whether it is below that of agents."""
    return _RANKS[name] < _RANKS[AGENT]


def find_least(classes: Iterable[SourceClass]) -> SourceClass:
    """The least trusted of `classes`, which applies to what was made from all of them; "operator" if there are none."""
    return min(classes, key=_RANKS.__getitem__, default=CLASSES[0])


def read_stated(payload: Mapping[str, Any]) -> SourceClass:
    """The class that a payload states for itself; the most trusted one if it states none."""
    metadata = payload.get("metadata")
    stated = (
        payload.get(TRUST),
        metadata.get(TRUST) if isinstance(metadata, Mapping) else None,
        "tool" if payload.get("type") == CALL else None,
    )
    return find_least(CLASSES[-rank] for rank in map(rank_of, stated) if rank is not None)


def state_class(name: SourceClass) -> dict[str, str]:
    """The field that lowers the class of what an agent makes from sources of this class; empty if it need not."""
    return {TRUST: name} if is_untrusted(name) else {}


def class_of_kind(kind: Kind) -> SourceClass:
    """The class of events of a kind for which a space says nothing else."""
    if kind.needs == "operate":
        return "operator"
    if kind.role == VISITOR:
        return "user"
    return "tool" if kind.role == ACTION or kind.name in _OUTSIDE else AGENT


class TrustSettings(Part):
    """The source classes of a space, and for each purpose the least trusted class that is used."""

    kinds: Annotated[dict[KindName, SourceClass], Field(max_length=limits.DECLARED_KINDS_MAX)] = Field(
        default_factory=dict
    )
    """The class of events by their kind (by default that of the catalogue)."""
    agents: Annotated[dict[AgentName, SourceClass], Field(max_length=limits.DECLARED_KINDS_MAX)] = Field(
        default_factory=dict
    )
    """The class of events by their author (by default that of their kind). The less trusted of both counts."""
    facts: SourceClass = AGENT
    """For facts that are extracted, and for lines of the daily log."""
    beliefs: SourceClass = AGENT
    """For reflections."""
    consolidation: SourceClass = "import"
    """For summaries of archived entries."""


Purpose = Literal["facts", "beliefs", "consolidation"]
"""What is made from events: a setting of `TrustSettings`."""
