"""The events of a run, as a function of seed, space and number: a restarted producer publishes the same events."""

import random

from recallog_schemas import Event
from support.oracle import trigger_of
from support.random_events import AGENTS, random_event

NUMBER = "n"
"""The field of the payload with the event's number in its space, from 0 in the order of publishing."""
PLANTED = "planted"
"""The field of the payload that marks a contradiction: an event whose id another event has. It is a dead letter."""

_ANSWERS = ("agent.reflected", "reflection.failed")
_TRIGGERS = 12
_THRESHOLD_FACTOR = 20
"""Agents reflect this much more rarely than in other tests: four that see each other's reflections would go on for long
after the last event."""


def event_of(seed: int, space: str, number: int) -> Event:
    """Event `number` of `space`."""
    rng = random.Random(f"{seed} {space} {number}")
    event = random_event(rng, (space,), AGENTS)
    payload = {**event.payload, NUMBER: number}
    if payload.get("reflection_threshold") is not None:
        payload["reflection_threshold"] *= _THRESHOLD_FACTOR
    changed = {"id": f"{space}/{number}", "payload": payload}
    if event.kind in _ANSWERS and rng.random() < 0.3:
        # All answers to a trigger have the same id: the first counts, and a second one is not a conflict.
        trigger = trigger_of(space, event.agent, rng.randrange(_TRIGGERS))
        changed |= {"id": f"{trigger}/answer", "causation_id": trigger}
    return event.model_copy(update=changed)


def may_be_contradicted(event: Event) -> bool:
    """Whether an event with the same id and another content is a dead letter."""
    return not event.id.endswith("/answer")


def contradiction(event: Event, number: int) -> Event:
    """Another event with the id of `event`. The same `number` gives the same contradiction."""
    payload = {"text": f"no, it was different ({number})", NUMBER: event.payload[NUMBER], PLANTED: True}
    return event.model_copy(update={"kind": "agent.spoke", "payload": payload})
