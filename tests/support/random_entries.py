"""Random histories of entries: events of several owners as any producer may write them, drawn from one generator."""

import json
import random
from datetime import datetime, timedelta
from typing import Any

from recallog_schemas import Event, codec, triggers
from recallog_schemas.models.long_term.triggers import MIGRATION
from support.events import MOMENT
from support.random_events import random_event, random_moment

AGENTS = ("baker", "miller", "smith")
TEXTS = (
    *(
        "Rye costs 3.",
        " Rye  costs 3.\n",
        "rye costs 3.",
        "Rye costs 3",
        "Rye costs 4.",
        "The mill is down.",
        "The\u3000mill is down.",
    ),
    *("caf\u00e9", "cafe\u0301", "cafe", "strategy: wait", "面包", "🥖 🥖"),
    *("Alpha works with Beta.", "The Beta supplies Gamma Mills.", "Gamma Mills rents from Delta", "Delta is closed."),
    *('Acme Corp, Alpha and "the old mill"', "「红楼梦」 belongs to Acme."),
)
TYPES = ("fact", "fact", "lesson", "lesson", "note", "summary", "tool_usage", "experience")
PRIORITIES = ("pinned", "pinned", "critical", "normal", "low", None)
SIMILARITIES = (1, 1.0, 0.93, 0.9200004, 0.92, 0.9199999, 0.86, 0.85, 0.8500006, 0.5, -1)
RULES = (None, 1, 2, 3, 3)
SHARED_KINDS = (None, [], ["memory.retained"], ["experience.recorded", "memory.retained"], ["agent.spoke"])
TOOLS = ("Read", "read", "Grep", "Bash")
CAPTURES = (
    None,
    {"enabled": True},
    {"enabled": True, "tools": ["Read", "BASH"], "skip": ["read"], "max_per_minute": 2, "importance": 1},
    {"enabled": True, "skip": ["Grep"], "case_sensitive": True, "max_per_minute": 3, "tier": "slow"},
    {"enabled": True, "max_per_minute": 1, "max_detail_chars": 6},
    {"enabled": True, "max_per_minute": 0},
    {"enabled": False, "tools": ["Read"]},
)
TIERS = ("fast", "medium", "slow", "glacial")
METERED = ({"units": 9}, {"units": 3, "eur": -1}, {"units": 0}, {"units": -1.5}, {"eur": 0.25})

Fields = dict[str, Any]


def random_history(rng: random.Random, size: int) -> list[Fields]:
    """`size` events as dicts; some of them repeat an earlier one, or conflict with it."""
    drawn = EntryEvents(rng)
    events: list[Fields] = []
    for number in range(size):
        if events and rng.random() < 0.04:
            events.append(_again(rng, rng.choice(events)))
        else:
            events.append(drawn.event(f"e-{number}"))
    return events


def _again(rng: random.Random, event: Fields) -> Fields:
    """The same event, perhaps at another time, or another one with the same id."""
    return event | rng.choice(({}, {"at": "2026-03-02T00:00:00+00:00"}, {"turn": 777}, {"agent": "smith"}))


class EntryEvents:
    """The events of one history, as dicts. Histories differ in how many agents, spaces and texts they have, so that
    some of them reach every limit."""

    def __init__(self, rng: random.Random, *, offsets: bool = True) -> None:
        """`offsets`: some plans are of earlier versions, and name the offset up to which they had read."""
        self.rng, self.offsets = rng, offsets
        self.agents = rng.choice((AGENTS, AGENTS, AGENTS[:1]))
        self.spaces = rng.choice((("village", "city"), ("village",)))
        self.texts = rng.choice((TEXTS, TEXTS, TEXTS[:4]))
        self.unique_texts = rng.choice((0.0, 0.7, 0.95))
        self.metered = rng.choice((0.0, 0.1))
        self.optional = rng.choice((0.2, 0.5))
        self.tools = rng.choice((0.0, 0.3))
        self.aging = rng.choice((0.0, 0.3))
        self.retained: list[tuple[str, str, str]] = [("village", "baker", "never")]
        """Space, agent and id of the events that would retain an entry."""
        self.archived: list[tuple[str, str, str]] = []
        """Space and agent of events that would archive an entry, and its id."""

    def event(self, id_: str) -> Fields:
        """A new event with this id."""
        rng = self.rng
        minutes, rest = rng.randrange(60), rng.randrange(9)
        space, agent, target = self._target()
        if rng.random() < 0.25:
            space, agent = rng.choice(self.spaces), rng.choice(self.agents)
        kind, payload = self._kind(target, id_)
        if self.archived and rng.random() < 0.05:
            space, agent, target = rng.choice(self.archived)
            kind, payload = self._back(target)
        if kind == "memory.archived":
            self.archived.append((space, agent, target))
        trigger = triggers.caused_by(MIGRATION, space, agent, id_)
        answers = kind == "memory.retained" and rng.random() < 0.2
        event: Fields = {
            "envelope": 1,
            "id": trigger.part_id("0123456789", 1) if answers else id_,
            "space": space,
            "agent": agent,
            "kind": kind,
            "turn": rng.randrange(100),
            "at": (datetime.fromisoformat(MOMENT) + timedelta(minutes=minutes, microseconds=rest)).isoformat(),
            "payload": payload,
        }
        chosen = {
            "session": rng.choice(("morning", "evening")),
            "audience": rng.choices((*AGENTS, "ghost"), k=rng.randrange(3)),
            "subject": rng.choice(("user-1", "user-1/2")),
        }
        if kind in ("memory.retained", "experience.recorded", "tool.used"):
            self.retained.append((space, agent, event["id"]))
        if answers:
            event["causation_id"] = trigger.id
        return event | {name: value for name, value in chosen.items() if rng.random() < 0.15}

    def _target(self) -> tuple[str, str, str]:
        return self.rng.choice(self.retained[-10:] if self.rng.random() < 0.7 else self.retained)

    def _ids(self, count_max: int) -> list[str]:
        return [self._target()[2] for _ in range(self.rng.randrange(1, count_max + 1))]

    def _text(self, id_: str) -> str:
        unique = self.rng.random() < self.unique_texts
        return self.rng.choice(self.texts) + (f" {id_}" if unique else "")

    def _kind(self, target: str, id_: str) -> tuple[str, Fields]:
        """A kind with its payload."""
        rng, draw = self.rng, self.rng.random()
        if rng.random() < self.metered:
            return "memory.metered", rng.choice(METERED)
        if rng.random() < self.tools:
            if rng.random() < 0.2:
                return "agent.configured", {"capture": rng.choice(CAPTURES)}
            return "tool.used", {"tool": rng.choice(TOOLS), "result": self._text(id_)}
        if rng.random() < self.aging:
            return self._aged(target)
        if draw < 0.02:
            return "space.configured", {"shared_kinds": rng.choice(SHARED_KINDS)}
        if draw < 0.47:
            return "memory.retained", self._retained(target, self._text(id_))
        if draw < 0.52:
            counts = {id_: rng.choice((1, 2, 2**63 - 1)) for id_ in self._ids(4)}
            return "memory.accessed", self._some_of(
                counts=counts, hits=rng.choice((0, 1, 7)), misses=rng.choice((0, 2))
            )
        if draw < 0.56:
            outcome = rng.choice(({}, {"outcome": "sold"}, {"outcome": "", "score": 1, "cost": 2.5}))
            return "experience.recorded", {"action_type": "trade", "summary": self._text(id_)} | outcome
        several = list(dict.fromkeys([target, *self._ids(3)]))
        reason = rng.choice(({}, {"reason": "asked"}))
        if draw < 0.78:
            return "memory.updated", {"entry": target} | self._updated(self._text(id_))
        if draw < 0.86:
            return rng.choice(("memory.retracted", "memory.archived", "memory.archived")), {"entry": target} | reason
        if draw < 0.94:
            return "memory.transferred", {"entries": several, "to": rng.choice(self.agents)} | self._some_of(
                rule=rng.choice(RULES)
            )
        return "memory.erased", {"entries": several} | reason

    def _back(self, target: str) -> tuple[str, Fields]:
        """What would restore an archived entry."""
        moved = "memory.tier_changed", {"to": self.rng.choice(TIERS)}
        kind, more = self.rng.choice((("memory.restored", {}), moved))
        return kind, {"entry": target, **more} | self._some_of(rule=self.rng.choice(RULES))

    def _aged(self, target: str) -> tuple[str, Fields]:
        """An outcome, a move by the owner, or a part of a plan that any producer may have written."""
        rng = self.rng
        if rng.random() < 0.3:
            outcome = self._some_of(
                predicted=rng.choice((0, 0.4)),
                actual=rng.choice((1, 0.9, 0)),
                success=rng.choice((True, False, None)),
                confidence=rng.choice((None, 0.5, 0.49)),
            )
            return "memory.outcome_reported", {"entries": [target, *self._ids(2)], **outcome}
        if rng.random() < 0.3:
            return "memory.tier_changed", {"entry": target, "to": rng.choice(TIERS)}
        ids = list(dict.fromkeys([target, *self._ids(4)]))
        parts = rng.choice((1, 1, 2))
        plan: Fields = {
            "now": (datetime.fromisoformat(MOMENT) + timedelta(hours=rng.randrange(-5, 50))).isoformat(),
            "ordinal": rng.choice((0, 0, 1, 2)),
            "part": rng.choice((1, parts)),
            "parts": parts,
        }
        seen = rng.choice((0, 10, 40, 1_000)) if self.offsets and rng.random() < 0.5 else None
        known: list[Fields] = [{} if seen is not None else {"changes": rng.choice((1, 1, 2, 3, 5))} for _ in ids]
        moves = [
            {"id": id_, "from": rng.choice(TIERS), "to": rng.choice(TIERS), "reason": "ttl", **each}
            for id_, each in zip(ids, known, strict=True)
        ]
        archived = [
            {"id": id_, "reason": rng.choice(("expired", "tier_limit", "tidied")), **each}
            for id_, each in zip(ids, known, strict=True)
        ]
        plan |= {} if seen is None else {"seen": seen}
        return "memory.consolidated", plan | rng.choice(({"moves": moves}, {"moves": moves}, {"archived": archived}))

    def _retained(self, target: str, text: str) -> Fields:
        rng = self.rng
        version, similarity = rng.choice((1, 1, 1, 2)), rng.choice(SIMILARITIES)
        nearest = {"id": target, "version": version, "similarity": similarity, "model": "m"}
        return {"text": text} | self._some_of(
            type=rng.choice(TYPES),
            entity=rng.choice((None, "rye", "Acme Corp", "Delta")),
            category="prices",
            source="a call",
            topic=None,
            importance=rng.choice((None, 0, 1, 0.7)),
            confidence=rng.choice((None, 1, 0.25)),
            tier=rng.choice((None, *TIERS)),
            priority=rng.choice(PRIORITIES),
            red_line=rng.choice((None, True, False)),
            metadata=rng.choice((None, {}, {"b": [1, 2.5], "a": None})),
            sources=rng.choice((None, [], self._ids(3), self._ids(3))),
            rule=rng.choice(RULES),
            nearest=rng.choice((None, nearest, nearest, nearest)),
            cost=rng.choice((None, 0, 2, 0.5)),
            preseeded=rng.choice((None, True)),
        )

    def _updated(self, text: str) -> Fields:
        rng = self.rng
        changed = self._some_of(
            text=rng.choice((None, text, text)),
            type=rng.choice((None, *TYPES)),
            entity=rng.choice((None, "Beta")),
            category=rng.choice((None, "news")),
            importance=rng.choice((None, 1, 0.125)),
            confidence=rng.choice((None, 0)),
            priority=rng.choice(PRIORITIES),
            red_line=rng.choice((None, True)),
            metadata=rng.choice((None, {}, {"c": "d"})),
        )
        if changed:
            changed |= self._some_of(rule=rng.choice(RULES))
        return changed or {"priority": "pinned"}

    def _some_of(self, **fields: Any) -> Fields:
        return {name: value for name, value in fields.items() if self.rng.random() < self.optional}


class WorldEvents:
    """The events of a simulated world: episodes, entries, items, and ends of sessions, which migrate working memory."""

    def __init__(self, rng: random.Random, *, offsets: bool = True) -> None:
        self.rng = rng
        self.entries = EntryEvents(rng, offsets=offsets)
        self.kept = rng.choice((0.0, 0.2, 0.5))
        """The share of events that are not episodes."""

    def event(self) -> Event:
        rng = self.rng
        if rng.random() >= self.kept:
            return random_event(rng)
        id_ = f"{rng.getrandbits(64):x}"
        if rng.random() < 0.6:
            return codec.decode(json.dumps(self.entries.event(id_)).encode())
        session = rng.choice((None, "morning", "evening"))
        kind, payload = rng.choice((("session.ended", {}), *(self._item() for _ in range(4))))
        space, agent = rng.choice(self.entries.spaces), rng.choice(self.entries.agents)
        at = random_moment(rng)
        return Event(id=id_, space=space, agent=agent, kind=kind, session=session, at=at, payload=payload)

    def _item(self) -> tuple[str, Fields]:
        rng = self.rng
        namespace = rng.choice((["working"], ["working"], ["session", "morning"], ["notes"]))
        item: Fields = {"namespace": namespace, "key": rng.choice(("tip", "recent", "_private"))}
        if rng.random() < 0.2:
            item["base"] = rng.choice((0, 1, 2))
        text = f"LESSON: {rng.choice(TEXTS)}"
        if rng.random() < 0.7:
            return "item.put", item | {
                "value": rng.choice((text, text, [text, "noise"], {"deep": {"er": text}}, 7, None))
            }
        return rng.choice((("item.appended", item | {"text": f"\n{text}"}), ("item.deleted", item)))
