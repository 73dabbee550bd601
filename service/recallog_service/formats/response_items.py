"""Items of OpenAI's Responses API as messages that `recallog.messages.mapping` reads.

Messages, reasoning, function calls and their outputs are converted directly. A call that the server answers
(web_search_call, code_interpreter_call, mcp_call, ...) becomes a call and its result, named without "_call".
"""

import json
from collections.abc import Mapping
from typing import Any

from recallog.messages.blocks import LeftOutBlock

_CALL = "_call"
_CALLS_OF_CLIENTS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "computer_call", "shell_call"})
"""Calls that the caller of the API answers: their outputs are separate items."""
_OUTPUT = "_call_output"
_FIELDS_OF_CALLS = ("arguments", "input", "action", "operation", "queries", "query", "code")
_FIELDS_OF_RESULTS = ("output", "outputs", "results", "result", "status")
_REASON_CHARS_MAX = 64


def messages_of_item(item: Mapping[str, Any]) -> list[object]:
    """The messages of an item; a `LeftOut` for an item that does not become an event."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return [{name: value for name, value in item.items() if name != "type"}]
    if not isinstance(kind, str):
        return [left_out("unknown_item")]
    call_id = item.get("call_id") or item.get("id")
    said = {name: value for name, value in item.items() if name != "id"}
    if kind == "reasoning":
        return [{"role": "assistant", "content": [said]}]
    if kind.endswith(_OUTPUT):
        return [said | {"type": "function_call_output", "call_id": call_id} | _outcome(item.get("output"))]
    if not kind.endswith(_CALL):
        return [left_out(kind)]
    tool = item.get("name") or kind.removesuffix(_CALL)
    call = {"type": "function_call", "call_id": call_id, "name": tool, "arguments": _first(item, _FIELDS_OF_CALLS)}
    if kind in _CALLS_OF_CLIENTS:
        return [call]
    failed = bool(item.get("error")) or item.get("status") == "failed"
    result = item.get("error") or _first(item, _FIELDS_OF_RESULTS) or "completed"
    return [
        call,
        {"type": "function_call_output", "call_id": call_id, "name": tool, "output": result, "is_error": failed},
    ]


def left_out(kind: str) -> LeftOutBlock:
    """A left-out record, under a type that may be any text."""
    return LeftOutBlock(kind.encode("ascii", "backslashreplace").decode()[:_REASON_CHARS_MAX])


def _outcome(output: object) -> dict[str, Any]:
    """The text of an output, and whether the call failed. The output may be a text, an object {"content", "success"},
    or the JSON of an object {"output", "metadata"}."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return {}
    match output:
        case {"content": content, **more}:
            return {"output": content, "is_error": more.get("success") is False}
        case {"output": content, "metadata": dict(metadata)}:
            return {"output": content, "is_error": metadata.get("exit_code") not in (0, None)}
    return {}


def _first(item: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)
