"""Rollouts of Codex: the JSONL files of its sessions, below `~/.codex/sessions`.

A line is `{"timestamp", "type", "payload"}`. The items of the Responses API, of the type `response_item`, are what the
user, the model and the tools said; they are all that is read. `session_meta` names the session and its folder. The
lines of the types `event_msg` (what the screen showed), `turn_context` and `compacted` repeat the items or say how they
came about, and are left out by their types; so are instructions that Codex writes in the name of the user or of the
developer. Rollouts of 2025 have the items without an envelope.

space     that of the folder of the session: "project/home/alice/app"
session   the id of the session
agent     "codex"
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recallog.messages.blocks import LeftOut
from recallog.messages.mapping import Cast
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import Found, reader
from recallog_service.formats.conversations import Conversation, space_of_project
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import wrong_format
from recallog_service.formats.response_items import left_out, messages_of_item
from recallog_service.formats.source import Sample

AGENT = "codex"

_EXPECTED = "a rollout of Codex: one record per line"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_INSTRUCTIONS = re.compile(
    r"\s*(?:<(environment_context|user_instructions|permissions instructions|collaboration_mode|turn_aborted|skill"
    r"|INSTRUCTIONS|app-context|skills_instructions)>|# AGENTS\.md instructions )"
)
"""How the messages begin that Codex writes itself with the role of the user."""


def _find(found: Sequence[object], _options: Options) -> Found:
    if found and not any(_is_record(each) for each in found):
        raise wrong_format(_EXPECTED, found)
    meta: Mapping[str, Any] = {}
    messages: list[object] = []
    lines: list[int] = []
    for line, record in enumerate(found, 1):
        if not meta:
            meta = _meta(record)
        for message in _messages(record):
            messages.append(message)
            lines.append(line)
    if not any(isinstance(each, dict | InvalidEvent) for each in messages):
        return Found([], [each.type for each in messages if isinstance(each, LeftOut)])
    fields = {"id": meta.get("id"), "created_at": meta.get("timestamp")}
    home = space_of_project(meta.get("cwd"))
    return Found([Conversation(1, fields, messages, lines, "line", Cast(AGENT), home)])


def _meta(record: object) -> Mapping[str, Any]:
    """What a record says of the session: its id, time and folder. Records of 2025 have them without an envelope."""
    if not isinstance(record, dict):
        return {}
    if record.get("type") == "session_meta":
        payload = record.get("payload")
        return payload if isinstance(payload, dict) else {}
    return record if "type" not in record and isinstance(record.get("id"), str) else {}


def _messages(record: object) -> list[object]:
    """What a line says: one message, or a call and its result; a `LeftOut` for a line that no event holds."""
    if isinstance(record, InvalidEvent):
        return [record]
    if not isinstance(record, dict):
        return [InvalidEvent("not a record of Codex: not an object", rule="unparsable")]
    kind, payload = record.get("type"), record.get("payload")
    if kind == "response_item":
        if not isinstance(payload, dict):
            return [InvalidEvent("payload: not an object", path="payload", rule="dict_type")]
        return _of_item(payload, record.get("timestamp"))
    if isinstance(kind, str) and kind not in _ENVELOPES and "payload" not in record:
        return _of_item(record, record.get("timestamp"))
    detail = payload.get("type") if isinstance(payload, dict) else None
    named = [part for part in (kind or record.get("record_type") or "session_meta", detail) if isinstance(part, str)]
    return [left_out("/".join(named))]


def _of_item(item: Mapping[str, Any], time: object) -> list[object]:
    if item.get("type") == "message":
        role = item.get("role")
        if role not in ("user", "assistant") or (role == "user" and _is_instruction(item.get("content"))):
            return [LeftOut("instructions")]
        item = {name: value for name, value in item.items() if name != "id"}  # some versions only write one
    said = messages_of_item(item)
    return [{**each, "timestamp": time} if isinstance(each, dict) else each for each in said]


def _is_instruction(content: object) -> bool:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return bool(texts) and all(isinstance(text, str) and _INSTRUCTIONS.match(text) for text in texts)


def _is_record(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") in _ENVELOPES and isinstance(value.get("payload"), dict):
        return True
    return "type" not in value and "instructions" in value and {"id", "timestamp"} <= value.keys()


def _recognises(sample: Sample) -> bool:
    return any(map(_is_record, sample.objects))


FORMAT = Format("codex", "rollouts of Codex (~/.codex/sessions)", _recognises, reader(_EXPECTED, _find))
