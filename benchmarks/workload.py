"""Realistic events of agents. They are the same in every run, except for their ids (UUIDv7)."""

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

BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_TEXT = (
    "the mill burned down and nobody saw who carried a lantern past bakery before dawn except old miller whose debt to "
    "the baker was never paid in full so they say it must have been grain dust or perhaps café owner Zoë knows more "
    "than she tells because her window looks onto river where boats come late with flour salt wine letters from city"
)
WORDS = _TEXT.split()
_SHARED = ("world.observed", "world.observed", "user.injected", "agent.reflected")
_PRIVATE = ("agent.spoke",) * 6 + ("agent.thought",) * 3 + ("clue.found", "tool.used", "shop.sold")


def villages(count: int, *, seed: int = 1) -> Iterator[Event]:
    """50 spaces of 7 agents: texts of 60 to 200 characters, sessions, one in five shared, a few audiences."""
    rng = random.Random(seed)
    agents = [f"agent-{n}" for n in range(AGENTS_OF_SPACE)]
    turns = [0] * SPACES
    for n in range(count):
        space = rng.randrange(SPACES)
        turns[space] += 1
        kind = rng.choice(_SHARED if rng.random() < 0.2 else _PRIVATE)
        yield Event(
            space=f"village-{space}",
            session=f"day-{turns[space] // TURNS_OF_SESSION}",
            agent=rng.choice(agents),
            kind=kind,
            turn=turns[space],
            at=BEGAN + timedelta(seconds=n),
            payload=_payload(rng, kind),
            audience=tuple(rng.sample(agents, 2)) if rng.randrange(AUDIENCE_ONE_IN) == 0 else None,
        )


def crowd(count: int, agents: int, *, space: str = "crowd", seed: int = 2) -> Iterator[Event]:
    """One space with a random agent for each event; nearly all events are private."""
    rng = random.Random(seed)
    for n in range(count):
        kind = "world.observed" if rng.random() < 0.02 else "agent.spoke"
        yield Event(
            space=space,
            agent=f"agent-{rng.randrange(agents)}",
            kind=kind,
            turn=n,
            at=BEGAN + timedelta(seconds=n),
            payload=_payload(rng, kind),
        )


def town(count: int, agents: int, *, space: str = "town", seed: int = 5) -> Iterator[Event]:
    """One space in which a fifth of the events is shared, and a reflection of each agent is due after 20 events."""
    rng = random.Random(seed)
    for n in range(agents):
        settings = {"reflection_threshold": 20, "persona": _text(rng), "use_salience": n % 2 == 1}
        yield Event(space=space, agent=f"agent-{n}", kind="agent.configured", at=BEGAN, payload=settings)
    for n in range(count - agents):
        kind = rng.choice(_SHARED if rng.random() < 0.2 else _PRIVATE)
        yield Event(
            space=space,
            agent=f"agent-{rng.randrange(agents)}",
            kind=kind,
            turn=n // agents,
            at=BEGAN + timedelta(seconds=n),
            payload=_payload(rng, kind),
        )


def batches(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch


def _payload(rng: random.Random, kind: str) -> dict[str, Any]:
    text = _text(rng)
    if kind == "tool.used":
        return {"tool": "ledger.lookup", "arguments": {"name": rng.choice(WORDS), "limit": 5}, "result": text}
    if kind == "agent.reflected":
        return {"belief": text}
    return {"text": text}


def _text(rng: random.Random) -> str:
    length = rng.randint(60, 200)
    return " ".join(rng.choices(WORDS, k=length // 3))[:length]
