"""The guarded memory: checks each call of each door against the grant of its caller."""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

from recallog import Memory
from recallog.messages import mapping
from recallog.operations import pipeline
from recallog.operations.operation import Operation, Scope
from recallog.operations.pipeline import Call
from recallog_schemas import Event, kinds, limits
from recallog_schemas.errors import DeadLettered, Forbidden, IdConflict, InvalidArgument, OutOfRange, RecallogError
from recallog_schemas.roles import USER
from recallog_schemas.views import OfAgent, View
from recallog_schemas.views.base import OfEvent
from recallog_service.access.concealing import FOR_OPERATORS
from recallog_service.access.grants import Grant, Verb


class Guarded:
    """A memory as the holder of a grant may use it. It is the guard of a call (`pipeline.Guard`).

    The caller may omit what the grant fixes: the agent, the space if there is only one, and both in events. An
    operation on anything that the grant does not cover raises `Forbidden` before any work is done. Answers that span
    spaces contain only the spaces that the grant covers. A grant for one agent allows operations about this agent, and
    those whose answer every agent of the space may see (`Operation.shared`).
    """

    def __init__(self, memory: Memory, grant: Grant) -> None:
        self._memory = memory
        self.grant = grant

    async def call(self, operation: Operation, given: Mapping[str, Any], **callbacks: Any) -> Any:
        """The answer for a door; `given` has the arguments as received. See `pipeline.call`."""
        return await pipeline.call(self._memory, operation, given, callbacks, self)

    def admit(self, operation: Operation, given: Mapping[str, Any]) -> None:
        """Raise what `call` raises before any work is done: `Forbidden`, and errors of the arguments."""
        self.bound_arguments(operation, operation.validate(self.admit_arguments(operation, given), strict=False))

    def may_be_told(self, operation: Operation) -> bool:
        """Whether the holder may get warnings about probable mistakes: a warning about an unknown agent names another
        agent."""
        return operation.scope is not Scope.READ or not self.grant.is_of_one_agent

    # The stages of a call

    def admit_arguments(self, operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, completed by what the grant fixes. Raises `Forbidden` if the grant lacks the verb."""
        if Verb(operation.scope) not in self.grant.verbs:
            raise Forbidden
        fixed: dict[str, str] = {}
        if self.grant.only_space is not None:
            fixed["space"] = self.grant.only_space
        if self.grant.is_of_one_agent:
            fixed["reader" if "reader" in operation.parameters else "agent"] = self.grant.agent
        found = {name: value for name, value in fixed.items() if name in operation.parameters} | dict(given)
        for name, value in found.items():
            if name == "event" and isinstance(value, Mapping):
                found[name] = {**fixed, **value}
            elif name == "events" and isinstance(value, list):
                found[name] = [{**fixed, **each} if isinstance(each, Mapping) else each for each in value]
        return found

    def bound_arguments(self, operation: Operation, valid: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with the agent that the grant fixes. Raises `Forbidden`."""
        grant, bounded = self.grant, dict(valid)
        if Verb.FORGET not in grant.verbs and any(valid.get(name) for name in operation.needing_forget):
            raise Forbidden
        events = list(_events(valid))
        for needed, where, author in {(_verb_of(event), event.space, event.agent) for event in events}:
            grant.check(Verb.PUBLISH, where, author)
            grant.check(needed, where, author)
        if events or _EVENTS & operation.parameters.keys():
            return bounded
        space = valid.get("space")
        if space is None and not grant.is_of_all_spaces and _items_with_space(operation) is None:
            raise Forbidden
        if space is not None and not grant.covers(space):
            raise Forbidden
        if grant.is_of_one_agent:
            who = next((name for name in ("reader", "agent") if name in operation.parameters), None)
            if who is not None:
                if bounded.get(who) not in (None, grant.agent):
                    raise Forbidden
                bounded[who] = grant.agent
            elif not operation.shared:
                raise Forbidden
            _check_authors(valid, grant.agent)
        return bounded

    def perform(self, call: Call) -> Awaitable[Any]:
        """The answer without items of spaces that the grant does not cover."""
        field = _items_with_space(call.operation)
        if self.grant.is_of_all_spaces or call.arguments.get("space") is not None or field is None:
            return pipeline.perform(call)
        return self._filter_items(call, field)

    def translate_error(self, call: Call, error: RecallogError) -> RecallogError:
        """The error without what would reveal other spaces or agents, or is for operators."""
        grant = self.grant
        if isinstance(error, DeadLettered) and (not grant.is_of_all_spaces or grant.is_of_one_agent):
            # It may be a record of another space or agent.
            return DeadLettered(f"the record at {call.arguments['after']} will show in no view")
        if isinstance(error, IdConflict) and grant.is_of_one_agent:
            # It may be an event of another agent: the name of the differing field would reveal something of it.
            message = "an id of these belongs to another event of the space; give this one an id of its own"
            return IdConflict(message, path="id", position="")
        return grant.translate_error(error) if isinstance(error, FOR_OPERATORS) else error

    async def filter_answer(self, call: Call, answer: Any) -> Any:
        """The answer, reduced to what the agent may see. It does not reveal whether another agent or an event
        exists."""
        if not self.grant.is_of_one_agent:
            return answer
        if isinstance(answer, OfEvent):
            return await self._conceal_unseen(answer, call.arguments)
        if isinstance(answer, OfAgent) and answer.agent != self.grant.agent:
            # Whether the other agent exists may show only in what this agent may see of it.
            return answer.model_copy(update={"known": not answer.empty})
        return answer

    async def _filter_items(self, call: Call, field: str) -> Any:
        """The answer with the items of its `field` that the grant covers.

        A page is filled from as many pages as needed, so that neither its size nor its `next` reveals other spaces.
        """
        arguments = call.arguments
        if "cursor" not in call.operation.parameters:
            answer = await pipeline.perform(call)
            return answer.model_copy(update={field: tuple(self._of_covered(getattr(answer, field)))})
        limit, largest = arguments.get("limit", limits.PAGE_ITEMS_MAX), {**arguments, "limit": limits.PAGE_ITEMS_MAX}
        answer = page = await pipeline.perform(replace(call, arguments=largest))
        items = self._of_covered(getattr(page, field))
        while page.next is not None and sum(each.space is not None for each in items) <= limit:
            page = await pipeline.perform(replace(call, arguments={**largest, "cursor": page.next}))
            items += self._of_covered(getattr(page, field))
        of_spaces = [each for each in items if each.space is not None]
        shown = [each for each in items if each.space is None] + of_spaces[:limit]
        following = answer.cursor_of(shown[-1]) if len(of_spaces) > limit else None
        return answer.model_copy(update={field: tuple(shown), "next": following})

    def _of_covered(self, items: Iterable[Any]) -> list[Any]:
        return [each for each in items if each.space is None or self.grant.covers(each.space)]

    async def _conceal_unseen(self, answer: OfEvent, bounded: Mapping[str, Any]) -> OfEvent:
        """The answer about an event; the answer for an unknown event if the agent may not see it."""
        if answer.shows_event:
            return answer
        at = {name: bounded[name] for name in ("after", "as_of") if name in bounded}
        try:
            found = await self._memory.entries(answer.space, answer.agent, [answer.event_id], **at)
            return answer if found.entries else answer.conceal()
        except OutOfRange:  # raised only for an event that the views have dropped
            return answer.conceal()


def _verb_of(event: Event) -> Verb:
    """The verb that publishing an event needs besides `publish`."""
    if event.kind == "run.started" and event.payload.get("shared_kinds") is not None:
        return Verb.OPERATE  # as space.configured
    return Verb(kinds.kind_of(event.kind).needs)


def _check_authors(valid: Mapping[str, Any], agent: str) -> None:
    """Raise `InvalidArgument` for a message whose event would belong to another agent: that agent would remember it as
    its own.

    `user`, the author of messages without a name, is not an agent.
    """
    cast = mapping.Cast(agent)
    for index, message in enumerate(valid.get("messages", ())):
        is_of_user = mapping.role_of(message) == USER
        if is_of_user and mapping.author_of(message, cast) != USER:
            path = f"messages.{index}.name"
            text = f"{path}: with a key of one agent, messages of users are by {USER!r}; leave the name out"
            raise InvalidArgument(text, path=path, rule="author")


_EVENTS = {"event", "events"}


def _events(valid: Mapping[str, Any]) -> Iterable[Event]:
    for name in _EVENTS & valid.keys():
        value = valid[name]
        yield from [value] if isinstance(value, Event) else value


def _items_with_space(operation: Operation) -> str | None:
    """The field of an answer whose items each name their space; None if there is none."""
    if operation.scope is not Scope.READ:
        return None
    for name, field in getattr(operation.answer, "model_fields", {}).items():
        item = next(iter(get_args(field.annotation)), None)
        if isinstance(item, type) and issubclass(item, View) and "space" in item.model_fields:
            return str(name)
    return None
