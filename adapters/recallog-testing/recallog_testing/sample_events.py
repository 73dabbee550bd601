"""Short builders of events."""

from typing import Any

from recallog_schemas import Event


def event(kind: str = "agent.spoke", *, space: str = "village", agent: str = "baker", **fields: Any) -> Event:
    """An event. The default payload is a text."""
    fields.setdefault("payload", {"text": "Bread!"})
    return Event(space=space, agent=agent, kind=kind, **fields)


def numbered(count: int, *, space: str = "village", first: int = 0) -> list[Event]:
    """`count` events whose texts and turns are their numbers."""
    return [event(space=space, turn=first + n, payload={"text": f"{space} {first + n}"}) for n in range(count)]
