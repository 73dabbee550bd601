"""Messages of SWE-agent trajectories in OpenAI's form.

A `.traj` file has the messages of the model under `history`, and the steps of the agent under `trajectory`. With
function calling, messages are those of OpenAI, except that a result names its calls in a list. Otherwise an answer of
the model has its command under `action`, and the output of the command is the next message of the user. A step is an
answer and the output of its command in one object.
"""

from collections.abc import Iterable, Iterator
from typing import Any

SHELL = "bash"
"""The tool that runs an `action`: commands such as `edit` are functions of the agent's shell."""


def numbered(messages: Iterable[object]) -> Iterator[tuple[int, object]]:
    """Each message with its ordinal in the file, from 1; those of SWE-agent in OpenAI's form, all others unchanged."""
    call_id: str | None = None
    """The id of the command whose output may follow."""
    for ordinal, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            yield ordinal, message
            continue
        output_of, call_id = call_id, None
        if _is_step(message):
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
