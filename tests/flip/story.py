"""The events of the folder that is damaged, and a projection of a user's own.

Four spaces of different use: agents that talk and reflect, a long run with tools, conversations in sessions, and texts
in several scripts. Ids and times are fixed, so that the same events can be published to any ledger.
"""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, ClassVar

import msgspec

from recallog.extending import Log, Record, Rows, Table
from recallog_schemas import Event

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
BATCHES = 12
"""Each is published, folded and indexed before the next."""
EVENTS_OF_BATCH = 30
SESSIONS = ("morning", "noon", "evening")
REFUSED = "unspeakable"
"""The projection of the user fails on a text with this word, which makes a dead letter."""

_PEOPLE = {
    "village": ("baker", "miller", "smith", "widow"),
    "run-7": ("planner", "coder"),
    "office": ("assistant", "user"),
    "harbour": ("captain", "pilot", "harbourmaster"),
}
_THINGS = ("sacks of flour", "loaves", "iron rods", "letters", "barrels", "eggs", "candles", "nets")
_VERBS = ("owes me", "took", "promised me", "sold", "lost", "counted", "hid", "returned")
_PLACES = ("at the mill", "by the river", "behind the church", "in the cellar", "at the market", "on the bridge")
_TEXTS = (
    *("船在雾中靠岸。", "货物少了三箱。", "灯塔整夜亮着。"),
    *("Шторм придёт завтра.", "Der Zöllner schläft.", "🌊 high tide"),
)
"""In several scripts."""


class Topic(msgspec.Struct, frozen=True):
    """How often an agent used a word, and its longest text."""

    count: int
    longest: str


class Said(msgspec.Struct, frozen=True):
    """One text with its position."""

    offset: int
    text: str


TOPICS = Table("topics", Topic)
SAID = Log("said", Said, 50)


class Topics:
    """Counts what each agent says, and lists it."""

    name: ClassVar[str] = "topics"
    version: ClassVar[int] = 1
    tables = (TOPICS, SAID)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if REFUSED in event.text:
                raise ValueError(f"the word {REFUSED!r}")
            before = rows.get(TOPICS, event.space, event.agent) or Topic(0, "")
            rows.put(
                TOPICS, Topic(before.count + 1, max(before.longest, event.text, key=len)), event.space, event.agent
            )
            rows.append(SAID, Said(record.offset, event.text), event.space)


@cache
def batches() -> Sequence[Sequence[Event]]:
    """All events, in the batches in which they are published."""
    rng = random.Random(15)
    events = [_event(rng, number) for number in range(BATCHES * EVENTS_OF_BATCH)]
    return [events[start : start + EVENTS_OF_BATCH] for start in range(0, len(events), EVENTS_OF_BATCH)]


def _event(rng: random.Random, number: int) -> Event:
    space = rng.choices(list(_PEOPLE), (5, 2, 3, 2))[0]
    agent = rng.choice(_PEOPLE[space])
    kind, payload = _first(number, space) or _said(rng, space, agent)
    fields: dict[str, Any] = {}
    if kind == "agent.spoke" and rng.random() < 0.3:
        fields["audience"] = [rng.choice(_PEOPLE[space])]
    if space != "run-7":
        fields["session"] = SESSIONS[number * len(SESSIONS) // (BATCHES * EVENTS_OF_BATCH)]
    return Event(
        id=f"e-{number:03d}",
        space=space,
        agent=agent,
        kind=kind,
        turn=number // 6,
        payload=payload,
        at=START + timedelta(hours=number),
        **fields,
    )


def _first(number: int, space: str) -> tuple[str, dict[str, Any]] | None:
    """Settings and other events that occur at fixed places."""
    if number < len(_PEOPLE) * 4:
        return "agent.configured", {
            "window": 5 + number,
            "use_salience": number % 2 == 0,
            "reflection_threshold": 25,
            "persona": f"You live in {space}, and you remember what others promised.",
        }
    if number % 90 == 20:
        return "space.configured", {
            "shared_kinds": ["world.observed", "agent.reflected", "user.injected"],
            "kinds": {f"order.placed{number}": {"importance": 0.7, "text": "{who} ordered {what}"}},
        }
    if number % 60 == 31:
        return "agent.spoke", {"text": f"This is {REFUSED}, number {number}."}
    return _kept(number, space)


def _kept(number: int, space: str) -> tuple[str, dict[str, Any]] | None:
    """What an agent keeps on purpose, and changes of it."""
    if number % 12 == 3:
        type_ = ("fact", "lesson")[number % 24 == 3]
        text = f"LESSON: {space} counts its {_THINGS[number % len(_THINGS)]} on day {number} before it sells them."
        tier = {} if number % 24 == 3 else {"tier": ("slow", "glacial")[number % 48 == 15]}
        return "memory.retained", {"text": text, "type": type_, "entity": space.title(), **tier}
    if number % 48 == 32:
        return "memory.outcome_reported", {"entries": [f"e-{number - 5:03d}"], "success": True, "actual": 0.9}
    if number % 48 == 28:
        return "memory.updated", {"entry": f"e-{number - 1:03d}", "priority": "critical"}
    if number % 96 == 41:
        return "memory.erased", {"entries": [f"e-{number - 2:03d}"], "reason": "asked for"}
    if number % 24 == 10:
        return "item.put", {"namespace": ["notes"], "key": f"day {number}", "value": {"weather": number % 7}}
    if number % 24 == 14:
        return "item.put", {"namespace": ["working"], "key": "Goals", "value": f"Sell {number} loaves"}
    if number % 36 == 17:
        payload = {"topic": f"the {_THINGS[number % 8]} of {space}", "conclusion": "Count them twice."}
        return "consensus.recorded", payload | {"confidence": 0.5, "participating": ["baker"], "agreeing": ["baker"]}
    if number % 36 == 19:
        objection = {"type": "risk_warning", "content": f"Who counts them on day {number}?", "confidence": 0.7}
        return "dissent.recorded", objection | {"topic": f"{space} of the {_THINGS[(number - 2) % 8]}"}
    return None


def _said(rng: random.Random, space: str, agent: str) -> tuple[str, dict[str, Any]]:
    other = rng.choice([name for name in _PEOPLE[space] if name != agent])
    text = f"The {other} {rng.choice(_VERBS)} {rng.randrange(2, 40)} {rng.choice(_THINGS)} {rng.choice(_PLACES)}."
    if space == "harbour" and rng.random() < 0.6:
        text = f"{rng.choice(_TEXTS)} {rng.randrange(100)}"
    if rng.random() < 0.04:
        text = " ".join([text] * 40)
    kind = rng.choices(
        ("agent.spoke", "agent.thought", "world.observed", "agent.reflected", "tool.used", "user.injected"),
        (8, 4, 3, 1, 6 if space == "run-7" else 0, 3 if space == "office" else 0),
    )[0]
    if kind == "agent.reflected":
        return kind, {"belief": f"I believe: {text}", "based_on": [f"e-{rng.randrange(60):03d}"]}
    if kind == "tool.used":
        return kind, {"tool": "search", "arguments": {"query": text}, "result": {"found": rng.randrange(9)}, "ok": True}
    return kind, {"text": text}
