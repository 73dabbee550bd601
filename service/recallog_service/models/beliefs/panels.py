"""The console panels of beliefs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recallog_service.console.page import Panel, Place

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import BeliefGraph


def _edges(graph: "BeliefGraph") -> Mapping[str, Any]:
    """The edges from each belief to earlier beliefs, with those beliefs."""
    by_id = {each.event.id: each for each in graph.beliefs}
    return {"edges": {id_: [(each, by_id[each.target]) for each in graph.edges if each.source == id_] for id_ in by_id}}


PANELS = (
    Panel("Beliefs", Place.AGENT, "beliefs", "beliefs/beliefs.html"),
    Panel("Graph of beliefs", Place.AGENT, "beliefs.graph", "beliefs/graph.html", hides_empty=True, context=_edges),
)
