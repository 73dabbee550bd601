"""Kinds of events, as the catalogue and a space's own declarations describe them."""

from collections.abc import Iterable
from typing import Self

from recallog_schemas import kinds
from recallog_schemas.kinds import Kind, Role
from recallog_schemas.views.base import OfSpace, View


class KindView(View):
    """One kind of event."""

    name: str
    """The name of the kind, for example agent.spoke."""
    space: str | None
    """The space that declares it; None for a kind of the catalogue."""
    importance: float
    """From 0 to 1: how much an event weighs in salience."""
    shared: bool
    """Whether every agent of the space sees its events, unless they are addressed to some."""
    recalled: bool
    """Whether recall and search find its events."""
    role: Role
    """What its events are. Episodes, by where a prompt shows them besides memory: "memory" (nowhere), "action" (ACTION
    HISTORY), or "visitor" (VISITOR). "entry": what an agent keeps on purpose. "bookkeeping": no memory of any agent."""
    text: str
    """How its text is made: a template of payload fields, alternatives joined by " or ", or the name of one field; ""
    if it has no text."""
    schema_version: int
    """The version of its payload."""
    fields: tuple[str, ...]
    """The payload fields that are checked; any payload may have others. Empty for a declared kind."""
    content: tuple[str, ...]
    """The payload fields that are content: texts, values, and names that people choose. The others are structure."""

    def format(self) -> str:
        """Name, importance, visibility and source in one line."""
        source = "catalogue" if self.space is None else f"space {self.space}"
        return f"{self.name}  importance {self.importance:.2f}  {'shared' if self.shared else 'private'}  {source}"

    @classmethod
    def of(cls, kind: Kind, *, shared: bool, space: str | None = None) -> Self:
        """The view of a kind; `shared` is as its space sets it."""
        return cls(
            name=kind.name,
            space=space,
            importance=kind.importance,
            shared=shared,
            recalled=kind.recalled,
            role=kind.role,
            text=kind.text.__name__,
            schema_version=kind.schema_version,
            fields=tuple(kind.payload.model_fields),
            content=tuple(field for field in kind.payload.model_fields if kind.is_content(field)),
        )


class Catalogue(View):
    """The kinds that every space knows, with their defaults, then a page of the kinds that spaces declare, by space
    and name."""

    kinds: tuple[KindView, ...]
    """The kinds of the catalogue, then the declared ones."""
    next: str | None = None
    """Pass it as `cursor` to get the next page, which has declared kinds only; None on the last one."""

    @classmethod
    def page(cls, declared: Iterable[KindView], limit: int, cursor: str | None) -> Self:
        """The page after `cursor`: at most `limit` of the kinds that spaces declare, on the first page after those of
        this version's catalogue."""
        known = [] if cursor else [KindView.of(kind, shared=kind.shared) for kind in kinds.CATALOGUE.values()]
        last = tuple((cursor or "").split(":"))
        by_space = sorted(declared, key=_place)
        following = [kind for kind in by_space if _place(kind) > last]
        more = len(following) > limit
        return cls(kinds=(*known, *following[:limit]), next=cls.cursor_of(following[limit - 1]) if more else None)

    @staticmethod
    def cursor_of(kind: KindView) -> str:
        """The cursor of the page after a declared kind."""
        return ":".join(_place(kind))

    def format(self) -> str:
        """The kinds, one per line."""
        return "\n".join(kind.format() for kind in self.kinds)


class KindsView(OfSpace):
    """The kinds of one space: the catalogue, then those that the space declares, by name. `shared` is as the space sets
    it."""

    kinds: tuple[KindView, ...]
    """The kinds of the catalogue, then those that the space declares."""

    def format(self) -> str:
        """The kinds, one per line."""
        return "\n".join(kind.format() for kind in self.kinds)


def _place(kind: KindView) -> tuple[str, ...]:
    return kind.space or "", kind.name
