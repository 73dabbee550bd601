"""What an agent may see of consensus and dissent, by a search of all events: the oracle of `memory.consensus`."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

Fields = Mapping[str, Any]
SHARED = ("consensus.recorded", "dissent.recorded")


def words(topic: str) -> set[str]:
    return set(topic.lower().split())


def hash_of(topic: str) -> str:
    return hashlib.sha256(" ".join(sorted(words(topic))).encode()).hexdigest()[:16]


def jaccard(one: str, other: str) -> Fraction:
    return Fraction(len(words(one) & words(other)), len(words(one) | words(other)))


@dataclass(eq=False)
class Said:
    """A consensus or a dissent, and who sees it; None: all agents."""

    offset: int
    event: Fields
    readers: set[str] | None

    @property
    def id(self) -> str:
        return str(self.event["id"])

    @property
    def payload(self) -> Fields:
        payload: Fields = self.event["payload"]
        return payload

    def is_seen_by(self, agent: str) -> bool:
        return self.readers is None or agent in self.readers


@dataclass
class Debates:
    """The consensuses and dissents of one space, in the order of the ledger."""

    consensuses: list[Said] = field(default_factory=list)
    dissents: list[Said] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    """The ids of the superseded one and of its successor."""

    def seen(self, agent: str) -> list[Said]:
        return [each for each in self.consensuses if each.is_seen_by(agent)]

    def link(self, agent: str, before: str, after: str) -> None:
        seen = {each.id for each in self.seen(agent)}
        ended = {superseded for superseded, _ in self.links}
        taken = [by for _, by in self.links if by == after]
        if {before, after} <= seen and before != after and not {before, after} & ended and len(taken) < 64:
            by_id = {each.id: each.readers for each in self.consensuses}
            if by_id[after] is None or (by_id[before] is not None and by_id[before] <= by_id[after]):
                self.links.append((before, after))

    def linked(self, agent: str, id_: str) -> tuple[list[str], str | None]:
        """What it supersedes, and what supersedes it, as far as `agent` sees them."""
        seen = {each.id for each in self.seen(agent)}
        successors = [by for superseded, by in self.links if superseded == id_]
        return [each for each, by in self.links if by == id_ and each in seen], (successors or [None])[0]

    def similar(self, agent: str, topic: str, least: float) -> list[tuple[str, Fraction]]:
        ranked = sorted(
            ((jaccard(topic, each.payload["topic"]), each.offset, each) for each in self.seen(agent)), reverse=True
        )
        return [
            (each.id, similarity)
            for similarity, _, each in ranked
            if similarity > Fraction(1, 10) and each.payload["confidence"] >= least
        ]

    def objections(self, agent: str, topic: str, wanted: str | None) -> list[tuple[str, str | None]]:
        """The ids of the dissents on a topic, each with the consensus that it is about."""
        on_topic = [each for each in self.seen(agent) if words(each.payload["topic"]) == words(topic)]
        found = []
        for each in sorted(self.dissents, key=lambda said: (said.payload["confidence"], said.offset), reverse=True):
            named, own = each.payload.get("consensus"), each.payload.get("topic")
            names_topic = own is not None and words(own) == words(topic)
            if not each.is_seen_by(agent) or (wanted is not None and each.payload["type"] != wanted):
                continue
            if not names_topic and named not in {one.id for one in on_topic}:
                continue
            if named is not None:
                about = named if named in {one.id for one in self.seen(agent)} else None
            else:
                older = [one.id for one in on_topic if one.offset < each.offset]
                about = older[-1] if older else on_topic[0].id if on_topic else None
            found.append((each.id, about))
        return found


def debates(events: Sequence[Fields], until: datetime | None = None) -> dict[str, Debates]:
    """By space; events later than `until` change settings alone."""
    found: dict[str, Debates] = {}
    shared: dict[str, Sequence[str]] = {}
    for offset, event in _first_of_each_id(events):
        space, kind, payload = found.setdefault(event["space"], Debates()), event["kind"], event["payload"]
        if kind == "space.configured":
            shared[event["space"]] = SHARED if payload["shared_kinds"] is None else payload["shared_kinds"]
        if until is not None and datetime.fromisoformat(event["at"]) > until:
            continue
        audience = event.get("audience")
        is_shared = audience is None and kind in shared.get(event["space"], SHARED)
        said = Said(offset, event, None if is_shared else {event["agent"], *(audience or ())})
        if kind == "consensus.recorded":
            space.consensuses.append(said)
            if payload.get("supersedes") is not None:
                space.link(event["agent"], payload["supersedes"], event["id"])
        elif kind == "dissent.recorded":
            space.dissents.append(said)
        elif kind == "consensus.superseded":
            space.link(event["agent"], payload["consensus"], payload["by"])
    return found


def _first_of_each_id(events: Sequence[Fields]) -> Iterator[tuple[int, Fields]]:
    seen = set()
    for offset, event in enumerate(events):
        if (event["space"], event["id"]) not in seen:
            seen.add((event["space"], event["id"]))
            yield offset, event
