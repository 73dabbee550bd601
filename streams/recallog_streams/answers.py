"""Answers to triggers: if a trigger has several answers, the fold counts one of them, as a whole.

Two reactors may answer a trigger at the same moment, and one may die between the events of its answer. The first part
of an answer claims the trigger: from then on, parts and closing events of other answers are skipped, and so is
everything after the closing event. An answer that its reactor did not finish is closed with the events that were
written (see `recallog.reactors.answering`). A closing event that names no answer closes the trigger for any answer.

Every fold of the ledger (views, index, a user's projections, the past) decides this from the same
records. The row of an answered trigger is never deleted, because a process may continue after any pause. A reflection,
which is answered by one event, has no row: the view of reflections compares the numbers of such answers.
"""

from typing import NamedTuple

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Event, triggers


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The answer that counts."""

    digest: str
    """"" if the closing event names no answer."""
    parts: int
    """How many of its parts have been processed."""
    closed: bool


DIGEST = "answer"
"""The field of the payload of a closing event that has the digest of its answer."""
TABLE = Table("answers", Answer)
"""At (space, "", id of the trigger)."""


class Answering(NamedTuple):
    """What an event says about an answer."""

    row_key: RowKey
    digest: str | None
    closes: bool


def answering(event: Event) -> Answering | None:
    """What an event says about the answer to a trigger; None if it says nothing, for example because it is erased."""
    if event.causation_id is None or event.is_erased:
        return None
    closes = event.kind in triggers.CLOSINGS or (DIGEST in event.payload and event.kind in triggers.all_closings())
    if closes:
        trigger, digest = triggers.named_by(event), event.payload.get(DIGEST)
    else:
        part = triggers.part_of(event)
        trigger, digest = (None, None) if part is None else part
    return None if trigger is None else Answering(key_of(event.space, trigger.id), digest, closes)


def key_of(space: str, trigger: str) -> RowKey:
    """The address of the row of a trigger."""
    return RowKey(TABLE.name, space, "", trigger)


def counts(rows: Rows, event: Answering) -> bool:
    """Whether an event belongs to the answer that counts."""
    answer = rows.get(TABLE, *event.row_key[1:])
    if answer is None:
        return True
    return not answer.closed and event.digest in (None, answer.digest)


def note(rows: Rows, event: Answering) -> None:
    """Count an event that belongs to the answer that counts."""
    answer = rows.get(TABLE, *event.row_key[1:]) or Answer(event.digest or "", 0, closed=False)
    answer = Answer(answer.digest, answer.parts + (not event.closes), event.closes)
    rows.put(TABLE, answer, *event.row_key[1:])
