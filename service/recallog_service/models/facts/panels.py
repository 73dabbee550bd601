"""The panels of entities: their network, and one of them with its entries."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recallog_service.console.page import Panel, Place

if TYPE_CHECKING:
    from recallog_schemas.models.facts.views import EntityGraph
    from recallog_service.console.network import Network


def _network(graph: "EntityGraph") -> Mapping[str, Any]:
    nodes = tuple((each.entity, each.entries) for each in graph.entities)
    return {"network": _draw(nodes, tuple(((each.one, each.other), each.entries) for each in graph.links))}


@lru_cache(maxsize=8)
def _draw(nodes: tuple[tuple[str, int], ...], links: tuple[tuple[tuple[str, str], int], ...]) -> "Network":
    from recallog_service.console import network

    return network.draw_network(dict(nodes), dict(links))


PANELS = (
    Panel("Entities", Place.KNOWLEDGE, "long_term.entities", "facts/entities.html", context=_network),
    Panel("Entity", Place.KNOWLEDGE, "long_term.about", "facts/entity.html"),
)
