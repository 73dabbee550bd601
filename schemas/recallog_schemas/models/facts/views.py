"""Entities: what entries name, and which of them are named together."""

from typing import ClassVar

from recallog_schemas.models.long_term.views import EntryView
from recallog_schemas.views.base import Bounded, OfAgent, View, one_line


class NamedEntity(View):
    """An entity that entries name."""

    entity: str
    """Its words in lower case."""
    entries: int
    """The number of entries that name it."""

    def format(self) -> str:
        """The entity and the number in one line."""
        return one_line(f"{self.entity} ({self.entries:,})")


class EntityLink(View):
    """Two entities that entries name together."""

    one: str
    """The entity that sorts first."""
    other: str
    """The other entity."""
    entries: int
    """The number of entries that name both."""

    def format(self) -> str:
        """Both entities and the number in one line."""
        return one_line(f"{self.one} / {self.other} ({self.entries:,})")


class EntityGraph(OfAgent):
    """The entities that an agent reads about in most entries, and the links between them."""

    entities: tuple[NamedEntity, ...]
    """The entities, those with most entries first."""
    links: tuple[EntityLink, ...]
    """The links between them, the strongest first."""
    total: int
    """How many entities there are, in the graph of the agent and in the graph of the entries that all may read."""

    def format(self) -> str:
        """One line for each entity, then one for each link; `(nothing)` if there are none."""
        return "\n".join(each.format() for each in (*self.entities, *self.links)) or "(nothing)"


class EntityFound(OfAgent, Bounded):
    """An entity, the entries that name it, and the entities that they name too."""

    list_field: ClassVar[str] = "entries"

    entity: str
    """Its words in lower case."""
    entries: tuple[EntryView, ...]
    """The live entries that name it and that the agent may read, newest first."""
    related: tuple[NamedEntity, ...]
    """The entities that are named together with it, each with the number of entries that name both; the strongest
    first."""

    @property
    def ok(self) -> bool:
        """Whether any entry names it."""
        return bool(self.entries)

    def format(self) -> str:
        """One line for each entry, then what is related; `(nothing)` if there are none."""
        related = ", ".join(each.format() for each in self.related)
        lines = [*(each.format() for each in self.entries), *([f"with {related}"] if related else [])]
        return "\n".join(lines) or "(nothing)"
