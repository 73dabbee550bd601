"""The events of coding agents at which a hook runs, and the messages in them.

Standard library only: a hook imports it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

START, PROMPT, TOOL, PART, END = "start", "prompt", "tool", "part", "end"
"""The actions of a hook: recall at the start of a session and at a prompt; capture at a tool use, at the end of a part
of the work (a turn, before a compaction), and at the end of a session."""

EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude-code": {
        "SessionStart": START,
        "UserPromptSubmit": PROMPT,
        "PostToolUse": TOOL,
        "SubagentStop": PART,
        "Stop": PART,
        "PreCompact": PART,
        "SessionEnd": END,
    },
    "codex": {
        "SessionStart": START,
        "UserPromptSubmit": PROMPT,
        "PostToolUse": TOOL,
        "Stop": PART,
        "PreCompact": PART,
    },
    "cursor": {
        "sessionStart": START,
        "beforeSubmitPrompt": PROMPT,
        "postToolUse": TOOL,
        "afterAgentResponse": PART,
        "preCompact": PART,
        "stop": PART,
        "sessionEnd": END,
    },
    "gemini-cli": {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "AfterTool": TOOL,
        "AfterAgent": PART,
        "PreCompress": PART,
        "SessionEnd": END,
    },
    "opencode": {
        "session.created": START,
        "chat.message": PROMPT,
        "tool.execute.after": TOOL,
        "text.complete": PART,
        "session.compacting": PART,
        "session.idle": PART,
        "session.deleted": END,
    },
}
"""The events that are installed, by agent, in the order of a session. A hook ignores other events."""

WITH_TRANSCRIPTS = frozenset({"claude-code", "codex"})
"""The agents whose transcripts are complete. For others, hooks keep separate transcripts."""

_SESSION = ("session_id", "conversation_id", "thread-id")
_TEXT_CHARS_MAX = 200_000


def session_of(payload: Mapping[str, Any]) -> str:
    return _first_text(payload, _SESSION)


def folder_of(payload: Mapping[str, Any]) -> str:
    """The folder of a session. Cursor names it as the first one of its workspace."""
    roots = payload.get("workspace_roots")
    of_workspace = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    return _first_text(payload, ("cwd",)) or of_workspace


def messages_of(event: str, payload: Mapping[str, Any], now: str) -> list[dict[str, Any]]:
    """The messages of an event in the form of a transcript; empty if it has none."""
    if payload.get("tool_name"):
        return _tool_use(payload, now)
    prompt = payload.get("prompt")
    if isinstance(prompt, str) and "prompt_response" not in payload:
        return [_message("user", prompt, event, payload, now)]
    said = _first_text(payload, ("prompt_response", "last_assistant_message", "text"))
    return [_message("assistant", said, event, payload, now)] if said else []


def _message(role: str, text: str, event: str, payload: Mapping[str, Any], now: str) -> dict[str, Any]:
    own = _first_text(payload, ("message_id", "generation_id", "turn_id"))
    id_ = own if event in ("chat.message", "text.complete") and own else _digest([event, own or now, text])
    return {"role": role, "content": text[:_TEXT_CHARS_MAX], "id": id_, "timestamp": now}


def _tool_use(payload: Mapping[str, Any], now: str) -> list[dict[str, Any]]:
    result = next((payload[name] for name in ("tool_response", "tool_output") if name in payload), "")
    arguments = payload.get("tool_input")
    id_ = _first_text(payload, ("tool_use_id",)) or _digest([payload["tool_name"], arguments, now])
    failed = isinstance(result, dict) and bool(result.get("error") or result.get("is_error"))
    call = {"type": "function_call", "call_id": id_, "name": payload["tool_name"], "arguments": _short(arguments)}
    answer = {"type": "function_call_output", "call_id": id_, "output": _short(result), "is_error": failed}
    return [call | {"timestamp": now}, answer | {"timestamp": now}]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:_TEXT_CHARS_MAX]


def _first_text(payload: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str) and value), "")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
