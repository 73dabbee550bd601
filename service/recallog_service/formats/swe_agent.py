"""Trajectories of SWE-agent: `.traj` files, whose messages are read as those of OpenAI.

A file has the messages of the model under `history`, and the steps of the agent under `trajectory`, which are read if
there is no history. With function calling, messages are those of OpenAI, except that a result names its calls in
a list. Otherwise an answer of the model has its command under `action`, and the next user message has the output. A
step is an answer and the output of its command in one object. Demonstrations, which show the model another run, are
left out.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import content_of
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import reader_of_each
from recallog_service.formats.conversations import FileConversation, digest
from recallog_service.formats.format import Format
from recallog_service.formats.structure import Structure

SHELL = "bash"
"""The tool that runs an `action`: commands such as `edit` are functions of the agent's shell."""

_STRUCTURE = Structure([{"history": {"*": {"agent": "<any>", "role": "<text>"}}}, {"trajectory": "<list>"}])
_EXPECTED = 'a trajectory of SWE-agent: an object with "history" or "trajectory"'


def _conversation(number: int, document: object) -> FileConversation | InvalidEvent:
    messages = _messages(document)
    if not isinstance(document, dict) or messages is None:
        return InvalidEvent('not an object with a list of "history" or "trajectory"', path="history")
    pairs = list(_number_messages(messages))
    fields = document if FileConversation(number, document, ()).own_id else {**document, "id": _name(pairs)}
    return FileConversation(number, fields, [each for _, each in pairs], [ordinal for ordinal, _ in pairs])


def _name(messages: Iterable[tuple[int, object]]) -> str:
    """A digest of the task and the first answer. Runs of one task begin alike; the answer distinguishes most of
    them."""
    said = {
        role: content_of(message)
        for _, message in reversed(list(messages))
        if isinstance(message, dict) and (role := message.get("role")) in ("user", "assistant")
    }
    return digest([said.get("user"), said.get("assistant")])


def _messages(document: object) -> list[object] | None:
    if not isinstance(document, dict):
        return None
    found = (document.get(name) for name in ("history", "trajectory"))
    lists = [each for each in found if isinstance(each, list)]
    return next((each for each in lists if each), lists[0] if lists else None)


def _number_messages(messages: Iterable[object]) -> Iterator[tuple[int, object]]:
    """Each message with its ordinal in the file, from 1, in OpenAI's form."""
    call_id: str | None = None
    """The id of the command whose output may follow."""
    for ordinal, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            yield ordinal, message
            continue
        output_of, call_id = call_id, None
        if message.get("is_demo") is True:
            yield ordinal, LeftOutBlock("demonstration")
        elif _is_step(message):
            call_id = f"action-{ordinal}"
            answer = {"role": "assistant", "content": message.get("response") or message.get("thought")}
            yield ordinal, _with_call(answer, message["action"], call_id)
            yield ordinal, {"role": "tool", "tool_call_id": call_id, "content": message["observation"]}
            call_id = None
        elif _is_action(message):
            call_id = f"action-{ordinal}"
            yield ordinal, _with_call(message, message["action"], call_id)
        elif output_of is not None and _is_output(message):
            yield ordinal, message | {"role": "tool", "tool_call_id": output_of}
        else:
            yield ordinal, _with_call_id(message)


def _is_step(message: dict[str, Any]) -> bool:
    return "role" not in message and isinstance(message.get("action"), str) and "observation" in message


def _is_action(message: dict[str, Any]) -> bool:
    action = message.get("action")
    is_command = isinstance(action, str) and bool(action.strip())
    return message.get("role") == "assistant" and is_command and not message.get("tool_calls")


def _is_output(message: dict[str, Any]) -> bool:
    return message.get("role") == "user" and message.get("message_type", "observation") == "observation"


def _with_call(message: dict[str, Any], action: str, call_id: str) -> dict[str, Any]:
    function = {"name": SHELL, "arguments": {"command": action.strip()}}
    return message | {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def _with_call_id(message: dict[str, Any]) -> dict[str, Any]:
    match message:
        case {"role": "tool", "tool_call_ids": [str(call_id), *_]} if not message.get("tool_call_id"):
            return message | {"tool_call_id": call_id}
    return message


FORMAT = Format(
    "swe-agent",
    "trajectories of SWE-agent (.traj)",
    _STRUCTURE,
    reader_of_each(_EXPECTED, _conversation),
    "messages, actions with their observations",
    "demonstrations",
)
