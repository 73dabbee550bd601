"""The expected entity graph, by brute force over the entries that are live. It shares no code with the fold: which
entities a text of `random_entries` names is written down here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from support.entries_oracle import ExpectedEntries, ExpectedEntry

NAMED = {
    "Rye costs": ["rye"],
    " Rye  costs": ["rye"],
    "Alpha works with Beta.": ["alpha", "beta"],
    "The Beta supplies Gamma Mills.": ["beta", "gamma mills"],
    "Gamma Mills rents from Delta": ["gamma mills", "delta"],
    "Delta is closed.": ["delta"],
    'Acme Corp, Alpha and "the old mill"': ["old mill", "acme corp", "alpha"],
    "「红楼梦」 belongs to Acme.": ["红楼梦", "acme"],
}
"""By the beginning of a text."""
NAMED_BY_CALLS = {"Bash: ": ["bash"], "Grep: ": ["grep"], "Read: ": [], "read: ": []}
"""By the beginning of the text of a call of a tool, which an update may make another type of entry."""


@dataclass
class ExpectedEntity:
    """One entity of one graph."""

    facts: list[tuple[int, str]] = field(default_factory=list)
    """Offset and owner, oldest first."""
    links: dict[str, list[int]] = field(default_factory=dict)
    """By the other entity: the offsets of the entries that name both."""

    @property
    def linked(self) -> list[tuple[str, int, int]]:
        """Key, count and newest offset of each link."""
        return sorted((key, len(offsets), max(offsets)) for key, offsets in self.links.items())


ExpectedGraph = dict[str, ExpectedEntity]
"""By key."""


def names_of(entry: ExpectedEntry) -> list[str]:
    """The keys of the entities that an entry names."""
    if entry.content["type"] == "tool_usage" or entry.content.get("captured"):
        return []
    stated = entry.content["entity"]
    found = [] if stated is None else [stated.lower()]
    text = entry.content["text"].removeprefix("LESSON: ")  # of one that a session's end has retained
    for beginning, names in NAMED_BY_CALLS.items():
        if text.startswith(beginning):
            found, text = [*found, *names], text.removeprefix(beginning)
    for beginning, names in NAMED.items():
        if text.startswith(beginning):
            found += names
    return list(dict.fromkeys(found))


def graph_of(entries: Iterable[ExpectedEntry]) -> ExpectedGraph:
    """The graph of these entries."""
    graph: ExpectedGraph = {}
    for entry in sorted(entries, key=lambda entry: entry.offset):
        names = names_of(entry)
        for name in names:
            entity = graph.setdefault(name, ExpectedEntity())
            entity.facts.append((entry.offset, entry.owner))
            for other in set(names) - {name}:
                entity.links.setdefault(other, []).append(entry.offset)
    return graph


def graphs(expected: ExpectedEntries) -> Iterator[tuple[str, str, ExpectedGraph]]:
    """Space, owner and graph of each reader that has any entity, and of the owner "" of shared entries."""
    addressed: dict[tuple[str, str], list[ExpectedEntry]] = {}
    for entry in expected.entries.values():
        if entry.status == "live":
            for reader in [""] if entry.content["shared"] else [entry.owner, *entry.content["audience"]]:
                addressed.setdefault((entry.space, reader), []).append(entry)
    for (space, reader), entries in addressed.items():
        if graph := graph_of(entries):
            yield space, reader, graph


def readable(expected: ExpectedEntries, space: str, agent: str) -> list[ExpectedEntry]:
    """The live entries that an agent may read."""
    return [
        entry
        for entry in expected.live(space)
        if agent in (entry.owner, *entry.content["audience"]) or entry.content["shared"]
    ]


def reached(expected: ExpectedEntries, space: str, agent: str, asked: Iterable[str]) -> dict[int, float]:
    """By offset: the weight of each entry that `agent` reaches from the entities of a query in two hops."""
    graph = graph_of(readable(expected, space, agent))
    asked_words = [set(name.split()) for name in asked]
    front = {key for key in graph if any(words <= set(key.split()) for words in asked_words)}
    seen, weights = set(front), dict[int, float]()
    for weight in (1.0, 0.5, 0.25):
        for key in front:
            for offset, _ in graph[key].facts:
                weights.setdefault(offset, weight)
        front = {other for key in front for other in graph[key].links} - seen
        seen |= front
    return weights
