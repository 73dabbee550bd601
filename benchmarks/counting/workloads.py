"""The workloads whose costs are counted. Their events are the same in every run, with their ids and times."""

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from benchmarks import workload
from recallog import Event

_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_SPACES, _AGENTS = 10, 5
_DECLARED = {"shop.sold": {"importance": 0.6, "shared": True, "text": "{agent} sold: {text}"}}
_TURNS_OF_SESSION = 25
_SYLLABLES = ("ba", "ko", "ri", "me", "lu", "sta", "ver", "no", "thi", "pa", "gel", "do", "shi", "an", "tor", "ley")


def villages(count: int) -> Iterator[Event]:
    """The events of `benchmarks.workload.villages`."""
    for number, event in enumerate(workload.villages(count)):
        yield event.model_copy(update={"id": f"event-{number}"})


def mixed(count: int) -> Iterator[Event]:
    """Spaces with declared kinds, whose agents have thresholds and captured tool calls, and retain entries."""
    rng = random.Random(11)
    numbers = iter(range(count))
    yield from (event for event in _settings() if next(numbers, None) is not None)
    retained: list[Event] = []
    for number in numbers:
        event = _mixed(rng, number, retained)
        if event.kind == "memory.retained":
            retained.append(event)
        yield event


def chats(count: int) -> Iterator[Event]:
    """Conversations of two people each, in sessions some days apart, with texts of many different words."""
    rng = random.Random(13)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(6_000)]
    frequencies = [*accumulate(1 / (rank + 20) for rank in range(len(words)))]
    for number in range(count):
        conversation, turn = number % 4, number // 4
        session = turn // _TURNS_OF_SESSION
        people = (f"person-{2 * conversation}", f"person-{2 * conversation + 1}")
        speaker = turn % 2
        text = " ".join(rng.choices(words, cum_weights=frequencies, k=rng.randint(5, 40)))
        yield Event(
            id=f"event-{number}",
            space=f"conversation-{conversation}",
            session=f"session-{session}",
            agent=people[speaker],
            kind="agent.spoke",
            turn=turn,
            at=_BEGAN + timedelta(days=5 * session, minutes=turn, seconds=number % 60),
            payload={"text": f"{text.capitalize()}."},
            audience=(people[1 - speaker],),
        )


WORKLOADS: Mapping[str, Callable[[int], Iterator[Event]]] = {"villages": villages, "mixed": mixed, "chats": chats}


def _settings() -> Iterator[Event]:
    for space in range(_SPACES):
        common: dict[str, Any] = {"space": f"town-{space}", "at": _BEGAN}
        yield Event(id="kinds", agent="owner", kind="space.configured", payload={"kinds": _DECLARED}, **common)
        for agent in range(_AGENTS):
            settings = {"reflection_threshold": 20, "capture": {"enabled": True}}
            name = f"agent-{agent}"
            yield Event(id=f"settings-{agent}", agent=name, kind="agent.configured", payload=settings, **common)


def _mixed(rng: random.Random, number: int, retained: list[Event]) -> Event:
    common: dict[str, Any] = {"id": f"event-{number}", "at": _BEGAN + timedelta(seconds=number), "turn": number // 50}
    text = f"{' '.join(rng.choices(workload.WORDS, k=rng.randint(10, 40)))} {number}"
    drawn = rng.random()
    if drawn < 0.05 and retained:
        entry = retained[rng.randrange(len(retained))]
        kind, payload = rng.choice((("memory.updated", {"text": text}), ("memory.archived", {})))
        payload = {"entry": entry.id, **payload}
        return Event(space=entry.space, agent=entry.agent, kind=kind, payload=payload, **common)
    kind, payload = _content(rng, drawn, text)
    space, agent = f"town-{rng.randrange(_SPACES)}", f"agent-{rng.randrange(_AGENTS)}"
    return Event(space=space, agent=agent, kind=kind, payload=payload, session=f"day-{number // 500}", **common)


def _content(rng: random.Random, drawn: float, text: str) -> tuple[str, dict[str, Any]]:
    if drawn < 0.15:
        return "memory.retained", {"text": text, "type": rng.choice(("fact", "lesson", "note"))}
    if drawn < 0.3:
        arguments = {"path": f"notes/{rng.randrange(50)}.md", "lines": rng.randrange(200)}
        return "tool.used", {"tool": "files.read", "arguments": arguments, "result": text}
    if drawn < 0.4:
        return "shop.sold", {"text": text}
    kind = rng.choice(("world.observed", "agent.thought", "agent.spoke", "agent.spoke"))
    return kind, {"text": text}
