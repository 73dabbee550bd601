"""What is said: a function of the seed, the space and a number, so that whoever comes back says the same again."""

import random

from recallog_schemas import Event
from support.oracle import trigger_of
from support.random_events import AGENTS, random_event

NUMBER = "n"
"""The payload's field that counts the events of a space from 0, in the order in which they are said."""
PLANTED = "planted"
"""The payload's field that marks an event under an id which says something else already: a dead letter to be."""

_ANSWERS = ("agent.reflected", "reflection.failed")
_TRIGGERS = 12


def event_of(seed: int, space: str, number: int) -> Event:
    """Event `number` of `space`."""
    chance = random.Random(f"{seed} {space} {number}")
    event = random_event(chance, (space,), AGENTS)
    changed = {"id": f"{space}/{number}", "payload": {**event.payload, NUMBER: number}}
    if event.kind in _ANSWERS and chance.random() < 0.3:
        # Both answers to a trigger have the id that it gives them: the first counts, a second is no conflict.
        trigger = trigger_of(space, event.agent, chance.randrange(_TRIGGERS))
        changed |= {"id": f"{trigger}/answer", "causation_id": trigger}
    return event.model_copy(update=changed)


def may_be_contradicted(event: Event) -> bool:
    """Whether an event with the same id and another content is a dead letter."""
    return not event.id.endswith("/answer")


def contradiction(event: Event, number: int) -> Event:
    """Another event under the id of `event`; contradiction `number`, so that it is the same when it is sent again."""
    payload = {"text": f"no, it was otherwise ({number})", NUMBER: event.payload[NUMBER], PLANTED: True}
    return event.model_copy(update={"kind": "agent.spoke", "payload": payload})
