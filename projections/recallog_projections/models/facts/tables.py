"""The tables of the entity graph: entities by name and by word, and how many there are.

There is one graph for each reader, named by its owner: the entries that it owns and those addressed to it. The graph of
the owner "" has the entries that are shared with the whole space. So a reader never gets an entity, a fact or a link
that comes from an entry which it may not read.
"""

import msgspec

from recallog_projections.tables import Table


class EntityFact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One live entry that names an entity."""

    offset: int
    """The offset of the event that retained it."""
    owner: str
    """Its owner, who is in the key of its row."""


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entity that is named together with another one."""

    key: str
    count: int
    """The number of entries that name both."""
    newest: int
    """The offset of the newest one."""


class Entity(msgspec.Struct, frozen=True, array_like=True):
    """One entity of one graph.

    It equals that of a fold of the entries that are live now. An entry or a link that was left out because others
    are newer or stronger does not come back when these are removed: the entity then has fewer facts or links than it
    could.
    """

    total: int
    """The number of live entries that name it."""
    facts: tuple[EntityFact, ...]
    """The newest `facts_limits.GRAPH_FACTS_KEPT` of them, in the order of the ledger."""
    links: tuple[Link, ...]
    """The strongest `limits.GRAPH_LINKS_KEPT` entities that are named together with it, by count and then the newest;
    in the order of their keys."""


class EntitySize(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The beginning of an entity's row, which can be decoded without the rest."""

    total: int


class EntityWord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An empty row: the address names the entity, see `word_key`."""


class Counts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The size of a graph."""

    entities: int
    links: int
    """The pairs of entities that are named together, as far as the one whose key sorts first holds the link."""


ENTITIES = Table("graph.entities", Entity)
"""At (space, owner of the graph, key of the entity)."""
SIZES = Table("graph.entities", EntitySize)
"""The same rows."""
WORDS = Table("graph.words", EntityWord, write_only=True)
"""At (space, owner of the graph, `word_key`)."""
COUNTS = Table("graph.counts", Counts)
"""At (space, owner of the graph). No row: it is empty."""

ALL = (ENTITIES, WORDS, COUNTS)


def word_key(word: str, key: str) -> str:
    """The key under which the entity `key` is found by one of its words; without a key, the prefix of all of them."""
    return f"{word} {key}"
