"""The ids of triggers and of their answers.

A trigger is not an event. The views derive it from the ledger: a reflection is due, a session has ended. Its id follows
from its kind, its space, its agent and its cause, so that every fold and every reactor computes the same id.

A trigger is answered by events of its agent: the parts of the answer, and then the event that closes the trigger. That
is `agent.reflected` or `reflection.failed` for a reflection, else `reaction.done` or `reaction.failed`. The ids of
parts are `<trigger>/answer/<digest>/1` to `/n`. The digest is that of the answer, so that a repeat has the same ids,
and another answer, or a foreign event, has others. The event that closes the trigger is `<trigger>/answer`, or
`<trigger>/answer/1` and so on if foreign events have that id; its payload names the digest. Of several such events with
one id the first counts and the others are repeats, not conflicts. Of several answers one counts as a whole, see
`recallog_streams.answers`.
"""

import hashlib
import re
from typing import NamedTuple

from recallog_schemas.event import Event

REFLECTION = "reflection.due"
"""An agent has seen as many events as its threshold says."""
MIGRATION = "migration.due"
"""A session has ended whose working memory holds what the agent wants to keep."""
RETRACTION = "retraction.due"
"""An entry was retracted because one of its sources was erased, and is itself the source of others."""
CONSOLIDATION = "consolidation.due"
"""The entries of an agent that carry a tier have not been looked at for as long as its settings say, or are too many
in one tier."""
SUMMARY = "summary.due"
"""A plan has archived entries of which no summary has been kept yet."""
EXTRACTION = "extraction.due"
"""An agent whose facts are extracted has finished a turn."""
DAILY = "daily.due"
"""An agent has finished a turn, and its session has as many new messages as its daily log waits for."""
COMPACTION = "compaction.due"
"""A conversation of an agent has become so long that its beginning is to be replaced by a summary."""

ANSWERS = frozenset({"agent.reflected", "reflection.failed"})
"""The kinds of events that close a reflection."""
DONE = "reaction.done"
FAILED = "reaction.failed"
CLOSINGS = frozenset({DONE, FAILED})
"""The kinds of events that close any other trigger."""

KINDS = frozenset({REFLECTION, MIGRATION, RETRACTION, CONSOLIDATION, SUMMARY, EXTRACTION, DAILY, COMPACTION})
"""The kinds of triggers that the built-in views make due."""
RECURRING = frozenset({REFLECTION, CONSOLIDATION})
"""The kinds that an agent has again and again, numbered; any other trigger is made due by one event."""

_BY_ORDINAL = re.compile(r"((?:reflection|consolidation)\.due)/([0-9a-f]{32})/(0|[1-9][0-9]{0,17})")
_BY_CAUSE = re.compile(r"((?!(?:reflection|consolidation)\.)[a-z][a-z_]{0,31}\.due)/([0-9a-f]{32})/([0-9a-f]{32})")
_NUMBER = "[1-9][0-9]{0,6}"
_CLOSING = re.compile(f"(.*)/answer(?:/{_NUMBER})?", re.DOTALL)
_PART = re.compile(f"(.*)/answer/([0-9a-f]{{10}})/{_NUMBER}", re.DOTALL)
"""The longest kinds of triggers leave so many characters for the digest and the number."""


class Trigger(NamedTuple):
    """`owner` is 32 hex digits (blake2b) of kind, space and agent."""

    kind: str
    owner: str
    cause: str
    """The number of the agent's earlier answers, for triggers that recur; else 32 hex digits of what caused it."""

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.owner}/{self.cause}"

    @property
    def answer_id(self) -> str:
        """The id of the event that closes the trigger."""
        return self.closing_id(0)

    def closing_id(self, number: int) -> str:
        """The id of the event that closes the trigger, if foreign events have the first `number` of these ids."""
        return f"{self.id}/answer/{number}" if number else f"{self.id}/answer"

    def part_id(self, answer: str, number: int) -> str:
        """The id of the part `number`, from 1, of the answer with the digest `answer`."""
        return f"{self.id}/answer/{answer}/{number}"

    @property
    def ordinal(self) -> int:
        """The number of the agent's earlier answers, of a reflection or a consolidation."""
        return int(self.cause)


def reflection_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the reflection that is due for `agent` after `ordinal` answers."""
    return Trigger(REFLECTION, _owner(REFLECTION, space, agent), str(ordinal))


def consolidation_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the plan that is due for `agent` after `ordinal` plans."""
    return Trigger(CONSOLIDATION, _owner(CONSOLIDATION, space, agent), str(ordinal))


def caused_by(kind: str, space: str, agent: str, *cause: str) -> Trigger:
    """The trigger that an event or an entry made due for `agent`: `cause` is its id, and what else tells it apart."""
    return Trigger(kind, _owner(kind, space, agent), _digest(*cause))


def parse(id_: str | None) -> Trigger | None:
    """The trigger with the id `id_`; None if it is not a trigger's id."""
    if id_ is None:
        return None
    found = _BY_ORDINAL.fullmatch(id_) or _BY_CAUSE.fullmatch(id_)
    return Trigger(*found.groups()) if found else None


def named_by(event: Event) -> Trigger | None:
    """The trigger in the `causation_id` of an event that closes triggers; None if it is not one of its own agent."""
    trigger = parse(event.causation_id) if event.kind in ANSWERS or event.kind in CLOSINGS else None
    if trigger is None or (trigger.kind == REFLECTION) != (event.kind in ANSWERS):
        return None
    return trigger if _is_of(trigger, event) else None


def part_of(event: Event) -> tuple[Trigger, str] | None:
    """The trigger and the digest of the answer of which `event` is a part, by its id; None if it is none."""
    if event.causation_id is None or not event.id.startswith(event.causation_id):
        return None
    part, trigger = _PART.fullmatch(event.id), parse(event.causation_id)
    if part is None or trigger is None or part[1] != trigger.id or not _is_of(trigger, event):
        return None
    return trigger, part[2]


def answered_by(event: Event) -> Trigger | None:
    """The trigger that `event` answers with an id of that trigger's answers: the first such event of each id counts."""
    part = part_of(event)
    if part is not None:
        return part[0]
    trigger, closing = named_by(event), _CLOSING.fullmatch(event.id)
    return trigger if trigger is not None and closing is not None and closing[1] == trigger.id else None


def _is_of(trigger: Trigger, event: Event) -> bool:
    return trigger.owner == _owner(trigger.kind, event.space, event.agent)


def _owner(kind: str, space: str, agent: str) -> str:
    return _digest(kind, space, agent)


def _digest(*parts: str) -> str:
    """32 hex digits of names. Kinds, spaces and agents contain no line break, so that different ones differ."""
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
