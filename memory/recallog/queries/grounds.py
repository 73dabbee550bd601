"""Grounds: events and entries from which texts were made, and that may no longer support them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from recallog.queries import event_lookup
from recallog.reading.readings import AgentReading
from recallog_projections.views import episodic
from recallog_schemas import codec, models
from recallog_schemas.views.base import LossReason


class GroundLoss(NamedTuple):
    """The reason why an event or entry no longer supports the texts that were made from it."""

    reason: LossReason
    since: int | None = None
    """The offset of the record that changed it. Texts that were made later already reflect the change. None if that
    does not matter."""


async def find_losses(reading: AgentReading, ids: Collection[str]) -> Mapping[str, GroundLoss]:
    """The losses among events and entries, by id. Events and entries that the agent may not see, or could not see, are
    left out.

    Events that are not entries are considered only if the views retain them.
    """
    found: dict[str, GroundLoss] = {}
    for module in models.import_parts("recallog", "grounds"):
        found |= await module.find_losses(reading, ids)
    events = [id_ for id_ in ids if id_ not in found]
    offsets = await event_lookup.offsets_of(reading, reading.ledger, reading.space, events)
    if not offsets:
        return found
    snapshot = await reading.snapshot(logs=episodic.logs(reading.space, reading.agent, reading.log_events))
    tails = snapshot.tail(episodic.OWN, reading.space, reading.agent), snapshot.tail(episodic.SHARED, reading.space)
    named = set(offsets.values())
    erased = {
        each.offset for each in episodic.merge(*tails) if each.offset in named and codec.decode(each.data).is_erased
    }
    return {**found, **{id_: GroundLoss("erased") for id_, offset in offsets.items() if offset in erased}}
