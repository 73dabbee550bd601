"""Events as agents really make them, the same ones in every run (but for their ids, which are UUIDv7 of now)."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from recallog import Event

Item = TypeVar("Item")

SPACES = 50
AGENTS_OF_SPACE = 7
AUDIENCE_ONE_IN = 20
TURNS_OF_SESSION = 200

_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_TEXT = (
    "the mill burned down and nobody saw who carried a lantern past bakery before dawn except old miller whose debt to "
    "the baker was never paid in full so they say it must have been grain dust or perhaps café owner Zoë knows more "
    "than she tells because her window looks onto river where boats come late with flour salt wine letters from city"
)
_WORDS = _TEXT.split()
_SHARED = ("world.observed", "world.observed", "user.injected", "agent.reflected")
_PRIVATE = ("agent.spoke",) * 6 + ("agent.thought",) * 3 + ("clue.found", "tool.used", "shop.sold")


def villages(count: int, *, seed: int = 1) -> Iterator[Event]:
    """50 spaces of 7 agents: texts of 60 to 200 characters, sessions, one in five shared, a few audiences."""
    dice = random.Random(seed)
    agents = [f"agent-{n}" for n in range(AGENTS_OF_SPACE)]
    turns = [0] * SPACES
    for n in range(count):
        space = dice.randrange(SPACES)
        turns[space] += 1
        kind = dice.choice(_SHARED if dice.random() < 0.2 else _PRIVATE)
        yield Event(
            space=f"village-{space}",
            session=f"day-{turns[space] // TURNS_OF_SESSION}",
            agent=dice.choice(agents),
            kind=kind,
            turn=turns[space],
            at=_BEGAN + timedelta(seconds=n),
            payload=_payload(dice, kind),
            audience=tuple(dice.sample(agents, 2)) if dice.randrange(AUDIENCE_ONE_IN) == 0 else None,
        )


def crowd(count: int, agents: int, *, space: str = "crowd", seed: int = 2) -> Iterator[Event]:
    """One space, a random agent for each event; nearly all of it private talk."""
    dice = random.Random(seed)
    for n in range(count):
        kind = "world.observed" if dice.random() < 0.02 else "agent.spoke"
        yield Event(
            space=space,
            agent=f"agent-{dice.randrange(agents)}",
            kind=kind,
            turn=n,
            at=_BEGAN + timedelta(seconds=n),
            payload=_payload(dice, kind),
        )


def town(count: int, agents: int, *, space: str = "town", seed: int = 5) -> Iterator[Event]:
    """One space in which a fifth of what is said is shared, and every agent owes a reflection after 20 events."""
    dice = random.Random(seed)
    for n in range(agents):
        settings = {"reflection_threshold": 20, "persona": _text(dice), "use_salience": n % 2 == 1}
        yield Event(space=space, agent=f"agent-{n}", kind="agent.configured", at=_BEGAN, payload=settings)
    for n in range(count - agents):
        kind = dice.choice(_SHARED if dice.random() < 0.2 else _PRIVATE)
        yield Event(
            space=space,
            agent=f"agent-{dice.randrange(agents)}",
            kind=kind,
            turn=n // agents,
            at=_BEGAN + timedelta(seconds=n),
            payload=_payload(dice, kind),
        )


def batches(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch


def _payload(dice: random.Random, kind: str) -> dict[str, Any]:
    text = _text(dice)
    if kind == "tool.used":
        return {"tool": "ledger.lookup", "arguments": {"name": dice.choice(_WORDS), "limit": 5}, "result": text}
    if kind == "agent.reflected":
        return {"belief": text}
    return {"text": text}


def _text(dice: random.Random) -> str:
    length = dice.randint(60, 200)
    return " ".join(dice.choices(_WORDS, k=length // 3))[:length]
