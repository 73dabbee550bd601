"""Short ids: the last eight digits of a UUID that Recallog has made.

A terminal shows them in place of whole ids. Commands take them, or any other unique beginning or end of an id.
`event_ids` describes the ids of events. A model describes its ids in a module `ids`: the name of its facade, the
parameters that take ids, a function that recognises an id, a function that lists the ids of an agent, and the command
that lists them.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recallog import Memory
from recallog.operations.operation import MAKES_REPEATABLE, Operation
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models import import_parts
from recallog_service.cli import event_ids
from recallog_service.cli.parameters import name_parameter

_DIGITS = 8
_SHOWN_MATCHES = 5
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PART = re.compile(r"(?=.{4,35}$)-?[0-9a-f]+(-[0-9a-f]*)*")


async def written_out(memory: Memory, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation with whole ids in place of short ones.

    Raises `InvalidArgument` for a part that is not unique. A text that is a whole id, or matches no id, is unchanged.
    """
    found = dict(arguments)
    space, agent = arguments["space"], arguments.get("agent")
    for part in _parts(operation):
        known: list[str] | None = None
        for name in part.PARAMETERS & arguments.keys():
            if MAKES_REPEATABLE in operation.arguments.model_fields[name].metadata:
                continue  # the id of a new item
            value = arguments[name]
            ids = [value] if isinstance(value, str) else list(value or ())
            if any(map(_PART.fullmatch, ids)):
                known = await part.list_ids(memory, space, agent) if known is None else known
                ids = [
                    each
                    if _PART.fullmatch(each) and await part.is_id(memory, space, agent, each)
                    else whole(each, known, name_parameter(operation, name))
                    for each in ids
                ]
                found[name] = ids[0] if isinstance(value, str) else ids
    return found


def whole(text: str, known: Sequence[str], option: str) -> str:
    """The known id that begins or ends with `text`; `text` itself if there is none."""
    if text in known or not _PART.fullmatch(text):
        return text
    part = text.replace("-", "")
    digits = {id_: id_.replace("-", "") for id_ in known if _UUID.fullmatch(id_)}
    matches = [id_ for id_, each in digits.items() if each.startswith(part) or each.endswith(part)]
    if len(matches) > 1:
        shown, more = ", ".join(matches[:_SHOWN_MATCHES]), len(matches) - _SHOWN_MATCHES
        rest = f" and {more:,} more" if more > 0 else ""
        raise InvalidArgument(f"{option}: {text!r} may be {shown}{rest}", path=option, rule="ambiguous")
    return matches[0] if matches else text


def listing_command(operation: Operation, arguments: Mapping[str, Any]) -> str | None:
    """The command that lists the ids that an operation takes; None if no argument is an id of a model."""
    named = [each for each in _parts(operation) if hasattr(each, "LISTED_BY") and each.PARAMETERS & arguments.keys()]
    words = [named[0].LISTED_BY, arguments["space"], arguments["agent"]] if named else []
    return " ".join(["recallog", words[0], *map(shlex.quote, words[1:])]) if words else None


def shorten_ids(operation: Operation, answer: Any) -> Any:
    """The answer with short ids, for a terminal. Ids of other agents, and ids with the same ending, are not
    shortened."""
    if not _parts(operation):
        return answer
    document = answer.model_dump(mode="json")
    ids = {each for each in _ids(document, document.get("agent")) if _UUID.fullmatch(each)}
    ends = Counter(each[-_DIGITS:] for each in ids)
    short = {each: each[-_DIGITS:] for each in ids if ends[each[-_DIGITS:]] == 1}
    return type(answer).model_validate(_replace_ids(document, short))


def _parts(operation: Operation) -> list[Any]:
    parts = [event_ids, *import_parts("recallog_service", "ids")]
    return [each for each in parts if operation.group == each.FACADE]


def _ids(value: Any, agent: str | None) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("id"), str) and value.get("owner", agent) == agent:
            yield value["id"]
        yield from value.get("ids") or ()
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in children:
        yield from _ids(each, agent)


def _replace_ids(value: Any, short: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {short.get(name, name): _replace_ids(each, short) for name, each in value.items()}
    if isinstance(value, list):
        return [_replace_ids(each, short) for each in value]
    return short.get(value, value) if isinstance(value, str) else value
