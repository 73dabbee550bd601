"""The ids of triggers and of their answers.

A trigger is not an event. The views derive it from the ledger: a reflection is due, a session has ended. Its id follows
from its kind, its space, its agent and its cause, so that every fold and every reactor computes the same id.

A trigger is answered by events of its agent: the parts of the answer, and then the event that closes the trigger. That
is `reaction.done` or `reaction.failed`, unless the kind of the trigger names others. The ids of parts are
`<trigger>/answer/<digest>/1` to `/n`. The digest is that of the answer, so that a repeat has the same ids, and another
answer, or a foreign event, has others. The event that closes the trigger is `<trigger>/answer`, or
`<trigger>/answer/1` and so on if foreign events have that id; its payload names the digest. If several such events have
one id, the first counts and the others are repeats, not conflicts. If there are several answers, one of them counts as
a whole, see `recallog_streams.answers`.

This module is the mechanism. The models name the kinds of their triggers, each in its module `triggers`.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from recallog_schemas import models
from recallog_schemas.event import Event

DONE = "reaction.done"
FAILED = "reaction.failed"
CLOSINGS = frozenset({DONE, FAILED})
"""The kinds of events that close a trigger, unless its kind names others."""

_ID = re.compile(r"([a-z][a-z_]{0,31}\.due)/([0-9a-f]{32})/(0|[1-9][0-9]{0,17}|[0-9a-f]{32})")
_DUE = ".due"
_CAUSE_CHARS = 32
_NUMBER = "[1-9][0-9]{0,6}"
_CLOSING = re.compile(f"(.*)/answer(?:/{_NUMBER})?", re.DOTALL)
_PART = re.compile(f"(.*)/answer/([0-9a-f]{{10}})/{_NUMBER}", re.DOTALL)
"""The characters that the longest kinds of triggers leave for the digest and the number."""


class TriggerKind(NamedTuple):
    """The description of one kind of a model's triggers, in `KINDS` of its module `triggers`."""

    name: str
    counts: tuple[str, str] = ("entry", "entries")
    """What `PendingTrigger.events` counts, as a word for one and a word for several."""
    recurs: bool = False
    """Whether such triggers recur for an agent, with numbers; any other trigger is made due by one event."""
    answer: str = DONE
    """The kind of event that answers and closes it."""
    failure: str = FAILED
    """The kind of event that closes it if it cannot be answered."""
    part_of: str = ""
    """The work that its answer is a part of, if that is not what the name of the trigger says."""
    makes: str = ""
    """The kind of event that only such work makes, even without a trigger."""

    @property
    def step(self) -> str:
        """The word for what its answer does with events or entries, such as "extraction"."""
        return self.part_of or self.name.removesuffix(_DUE)

    @property
    def has_own_answer(self) -> bool:
        """Whether the last event of its reactor's answer closes it, and no `reaction.done` is added."""
        return self.answer != DONE

    @property
    def closings(self) -> frozenset[str]:
        """The kinds of events that close it."""
        return frozenset((self.answer, self.failure))


@cache
def built_in() -> Mapping[str, TriggerKind]:
    """The kinds of triggers of the built-in models, by name."""
    return {kind.name: kind for part in models.import_parts("recallog_schemas", "triggers") for kind in part.KINDS}


@cache
def all_closings() -> frozenset[str]:
    """The kinds of events that close triggers of any kind."""
    return CLOSINGS.union(*(kind.closings for kind in built_in().values()))


@cache
def all_failures() -> frozenset[str]:
    """The kinds of events that close triggers which could not be answered."""
    return frozenset((FAILED, *(kind.failure for kind in built_in().values())))


def kind_of(name: str) -> TriggerKind:
    """The kind of triggers with this name: a built-in one, or one of a user's projection."""
    return built_in().get(name) or TriggerKind(name, ("item", "items"))


class Trigger(NamedTuple):
    """`owner` is 32 hex digits (blake2b) of kind, space and agent."""

    kind: str
    owner: str
    cause: str
    """The number of the agent's earlier answers, for triggers that recur; else 32 hex digits of what caused it."""

    @property
    def recurs(self) -> bool:
        """Whether such triggers recur for an agent, with numbers."""
        return kind_of(self.kind).recurs

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
        """For a trigger that recurs: the number of the agent's earlier answers."""
        return int(self.cause)


def make_numbered(kind: str, space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of a recurring kind that is due for `agent` after `ordinal` answers."""
    return Trigger(kind, _owner(kind, space, agent), str(ordinal))


def caused_by(kind: str, space: str, agent: str, *cause: str) -> Trigger:
    """The trigger that an event or an entry made due for `agent`: `cause` is its id, with anything else that
    distinguishes the trigger."""
    return Trigger(kind, _owner(kind, space, agent), _digest(*cause))


def parse(id_: str | None) -> Trigger | None:
    """The trigger with the id `id_`; None if it is not a trigger's id."""
    found = None if id_ is None else _ID.fullmatch(id_)
    if found is None:
        return None
    trigger = Trigger(*found.groups())
    return trigger if trigger.recurs == (len(trigger.cause) < _CAUSE_CHARS) else None


def named_by(event: Event) -> Trigger | None:
    """The trigger in the `causation_id` of an event that closes triggers; None if it is not one of its own agent."""
    trigger = parse(event.causation_id) if event.kind in all_closings() else None
    if trigger is None or event.kind not in kind_of(trigger.kind).closings:
        return None
    return trigger if _is_of(trigger, event) else None


def part_of(event: Event) -> tuple[Trigger, str] | None:
    """The trigger and the digest of the answer of which `event` is a part, by its id; None if it is not a part of an
    answer."""
    if event.causation_id is None or not event.id.startswith(event.causation_id):
        return None
    part, trigger = _PART.fullmatch(event.id), parse(event.causation_id)
    if part is None or trigger is None or part[1] != trigger.id or not _is_of(trigger, event):
        return None
    return trigger, part[2]


def answered_by(event: Event) -> Trigger | None:
    """The trigger that `event` answers with an id of that trigger's answers: the first such event of each id counts."""
    if event.causation_id is None:
        return None
    part = part_of(event)
    if part is not None:
        return part[0]
    trigger, closing = named_by(event), _CLOSING.fullmatch(event.id)
    return trigger if trigger is not None and closing is not None and closing[1] == trigger.id else None


def step_of(id_: str, kind: str) -> str | None:
    """The step that made the event with this id and kind, see `TriggerKind.step`; None if no answer to a trigger has
    such an id or kind. Anybody may choose the id of an event: the step is a label, not a proof."""
    match = _PART.fullmatch(id_) or _CLOSING.fullmatch(id_)
    trigger = None if match is None else parse(match[1])
    if trigger is not None:
        return kind_of(trigger.kind).step
    made = (each for each in built_in().values() if kind == (each.answer if each.has_own_answer else each.makes))
    return next((each.step for each in made), None)


def _is_of(trigger: Trigger, event: Event) -> bool:
    return trigger.owner == _owner(trigger.kind, event.space, event.agent)


def _owner(kind: str, space: str, agent: str) -> str:
    return _digest(kind, space, agent)


def _digest(*parts: str) -> str:
    """32 hex digits of names. Kinds, spaces and agents contain no line break, so different ones give other digits."""
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
