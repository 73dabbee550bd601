"""The content of a chat message as blocks: the forms of OpenAI (chat completions and responses), Anthropic, Google,
OpenTelemetry and Vercel's AI SDK.

text, input_text, output_text, any block with a string `text`   Said (also without a type, as Google's API has it)
refusal                                                         Said, with `refusal`
image, audio, video, file, document (also input_..., ..._url)   Said: a note, as "(image: cat.png, image/png, 12 kB)"
thinking, reasoning, think; a `text` with `thought`             Thought
tool_use, server_tool_use, mcp_tool_use, function_call          ToolCall
tool_call, tool-call; `functionCall`                            ToolCall
tool_result, ..._tool_result, ..._call_output                   ToolResult
tool_call_response, tool-result; `functionResponse`             ToolResult
tool-<name>, dynamic-tool, mcp_call                             ToolCall, and ToolResult as soon as there is one
any other type, and thoughts without a readable text            LeftOut
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recallog.messages import outcomes
from recallog_schemas.errors import InvalidEvent

_MEDIA = frozenset({"image", "audio", "video", "file", "document"})
_THOUGHTS = frozenset({"thinking", "reasoning", "reasoning_text", "think"})
_CALLS = frozenset(
    {"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call", "tool_call", "tool-call"}
)
_RESULTS = ("tool_result", "tool-result", "tool_call_response", "_call_output")
"""The ends of the types of results."""
_ANSWERED = ("tool-", "dynamic-tool", "mcp_call")
"""The beginnings of the types of calls that contain their own results."""
_OF_GOOGLE = {
    "functionCall": "function_call",
    "functionResponse": "tool_result",
    "inlineData": "file",
    "fileData": "file",
}
"""Parts without a type, by the field that identifies them."""
_TYPE_CHARS_MAX = 64
_NOTED_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class SaidBlock:
    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str | None
    tool: str
    arguments: object = None
    """The parsed arguments; None if the call has none."""
    arguments_as_written: str | None = None
    """The text that was parsed; None if the arguments were not text."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str | None
    tool: str | None
    result: object
    ok: bool


@dataclass(frozen=True, slots=True)
class LeftOutBlock:
    """A block that is not stored in an event."""

    type: str


Block = SaidBlock | Thought | ToolCall | ToolResult | LeftOutBlock


def blocks_of(content: object) -> list[Block]:
    """The blocks of `content`: a string, null, an object with a type, or a list of strings and such objects.

    Raises `InvalidEvent` for other content.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [SaidBlock(content)]
    if isinstance(content, dict) and "type" in content:
        content = [content]
    if isinstance(content, list):
        return [block for index, part in enumerate(content) for block in _blocks(part, index)]
    raise InvalidEvent("content: neither a string, null nor a list of parts", path="content", rule="content")


def calls_of(message: Mapping[str, Any]) -> list[ToolCall]:
    """The `tool_calls` of an OpenAI message, and its `function_call`."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidEvent("tool_calls: not a list of calls", path="tool_calls", rule="list_type")
    legacy = message.get("function_call")
    functions = [(call, _first(call, "function", "custom")) for call in calls]
    if isinstance(legacy, dict):
        functions.append(({}, legacy))
    return [_call(call, function if isinstance(function, dict) else call) for call, function in functions]


def result_of(message: Mapping[str, Any]) -> ToolResult:
    """The result in an OpenAI message with the role `tool` or `function`."""
    return _result(message, message.get("content"))


def nonempty(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _blocks(part: object, index: int) -> Iterable[Block]:
    kind = part.get("type") if isinstance(part, dict) else None
    is_call = isinstance(kind, str) and kind.startswith(_ANSWERED) and kind not in _CALLS
    if not isinstance(part, dict) or not is_call or str(kind).endswith(_RESULTS):
        return [_block(part, index)]
    name = _first(part, "toolName", "name") or str(kind).removeprefix("tool-")
    call = _call(part, {**part, "name": name})
    result = _first(part, "output", "errorText", "error")
    if result is None:
        return [call]
    failed = part.get("output") is None or outcomes.is_failure(result)
    return [call, ToolResult(call.id, call.tool, _plain(result), ok=not failed)]


def _block(part: object, index: int) -> Block:
    if isinstance(part, str):
        return SaidBlock(part)
    if isinstance(part, dict) and "type" not in part:
        part = _of_google(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        raise InvalidEvent(f"content.{index}: not a part with a type", path=f"content.{index}", rule="content")
    # "image_url" and "input_image" are both images, and "input_text" is text.
    name = kind.removeprefix("input_").removeprefix("output_").removesuffix("_url")
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return SaidBlock(part["refusal"], refusal=True)
    if kind in _CALLS:
        return _call(part, part)
    if kind.endswith(_RESULTS):
        return _result(part, _first(part, "content", "output", "response", "result"))
    if kind in _THOUGHTS:
        text = _thought(part)
        return Thought(text) if text.strip() else LeftOutBlock(kind)
    if name in _MEDIA:
        return SaidBlock(_note(name, part))
    words = _first(part, "text", "content") if name == "text" else part.get("text")
    if isinstance(words, str):
        return SaidBlock(words)
    if name == "text":
        raise InvalidEvent(f"content.{index}: a text without its text", path=f"content.{index}", rule="content")
    return LeftOutBlock(kind.encode("ascii", "backslashreplace").decode()[:_TYPE_CHARS_MAX])


def _of_google(part: dict[str, Any]) -> dict[str, Any]:
    """A part of Google's API, with a type."""
    for name, kind in _OF_GOOGLE.items():
        if isinstance(part.get(name), dict):
            return {**part[name], "type": kind}
    if not isinstance(part.get("text"), str):
        return part
    return {**part, "type": "thinking" if part.get("thought") is True else "text"}


def _thought(part: Mapping[str, Any]) -> str:
    """The readable text of a thought; "" if it has none, for example because it is encrypted."""
    text = _first(part, "thinking", "reasoning", "text", "think", "content")
    if isinstance(text, str):
        return text
    listed = [*_list(part.get("content")), *_list(part.get("summary"))]
    return "\n".join(each["text"] for each in listed if isinstance(each, dict) and isinstance(each.get("text"), str))


def _call(call: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCall:
    arguments = _first(function, "arguments", "input", "args")
    return ToolCall(
        nonempty(_first(call, "call_id", "toolCallId", "id")),
        nonempty(_first(function, "name", "toolName")) or "unknown",
        _parse(arguments) if isinstance(arguments, str) else arguments,
        arguments if isinstance(arguments, str) else None,
    )


def _parse(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _result(part: Mapping[str, Any], content: object) -> ToolResult:
    if isinstance(content, dict) and content.keys() == {"output"}:  # the form of answers of functions in Google's API
        content = content["output"]
    result = _plain(content)
    failed = part.get("is_error") is True or part.get("status") == "error" or outcomes.is_failure(result)
    call_id = nonempty(_first(part, "tool_call_id", "tool_use_id", "call_id", "toolCallId", "id"))
    return ToolResult(call_id, nonempty(_first(part, "name", "toolName")), result, ok=not failed)


def _plain(content: object) -> object:
    """A result as text if its blocks are texts and notes. Lists of other blocks, and other values, are not changed."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    blocks = blocks_of(content) if all(isinstance(part, str | dict) for part in content) else []
    if len(blocks) == 1 and isinstance(blocks[0], ToolResult):
        return blocks[0].result
    said = [block.text for block in blocks if isinstance(block, SaidBlock)]
    return "\n".join(said) if len(said) == len(content) else content


def _note(name: str, part: Mapping[str, Any]) -> str:
    """A note about a picture, a recording or a file, and the text of a text file."""
    known: dict[str, Any] = {**part}
    for value in part.values():
        if isinstance(value, dict):
            known |= value
    address = _first(known, "url", "image_url", "audio_url", "video_url", "file_url")
    data = _first(known, "data", "file_data")
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.partition(",")
        known = {"media_type": head.removeprefix("data:").partition(";")[0]} | known
        address = None
    is_text = known.get("type") == "text" and isinstance(data, str)
    about = [
        _first(known, "filename", "file_name", "fileName", "title", "name"),
        _first(known, "alt", "caption", "description", "transcript"),
        _first(known, "media_type", "mime_type", "mimeType", "mediaType", "mimetype", "mime", "format"),
        address,
        known.get("file_id"),
        f"{max(1, len(data) * 3 // 4 // 1000):,} kB" if isinstance(data, str) and data and not is_text else None,
    ]
    shown = ", ".join(each[:_NOTED_CHARS_MAX] for each in about if isinstance(each, str) and each)
    note = f"({name}: {shown})" if shown else f"({name})"
    return f"{note}\n{data}" if is_text else note


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that exists and is not null."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()
