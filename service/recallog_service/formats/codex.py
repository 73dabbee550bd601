"""Rollouts of Codex: the JSONL files of its sessions, below `~/.codex/sessions`.

A line is `{"timestamp", "type", "payload"}`. Lines of type `response_item` are items of the Responses API: messages of
the user and the model, and calls of tools. `session_meta` names the session and its folder. Lines of type `event_msg`
are what the screen showed; for each category (messages of the user, messages of the model, reasoning, calls) they are
read only if the rollout has no item of it: completed items of a turn if there are any, else other events. All other
lines are left out, and so are instructions that Codex writes in the name of the user or of the developer. Rollouts of
2025 have items without an envelope.

space     the space of the session's folder: "project/home/alice/app"
session   the id of the session
agent     "codex"
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import Cast
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages, reader
from recallog_service.formats.declared import read_messages
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import objects
from recallog_service.formats.response_items import left_out, messages_of_item
from recallog_service.formats.sessions import Record, sessions_of
from recallog_service.formats.structure import Structure

AGENT = "codex"

_EXPECTED = "a rollout of Codex: one record per line"
_ENVELOPES = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"]
_STRUCTURE = Structure([
    {"type": _ENVELOPES, "payload": "<object>"},
    {"type": "<none>", "id": "<text>", "timestamp": "<text>", "instructions": "<any>"},
])  # fmt: skip
_EVENTS = tomllib.loads((files(__package__) / "codex.toml").read_text(encoding="utf-8"))
_INSTRUCTIONS = re.compile(
    r"\s*(?:<(environment_context|user_instructions|permissions instructions|collaboration_mode|turn_aborted|skill"
    r"|INSTRUCTIONS|app-context|skills_instructions)>|# AGENTS\.md instructions )"
)
"""Beginnings of messages that Codex itself writes in the role of the user."""


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    ranks: dict[str, int] = {}
    """For each category, the best rank of the records that have it."""
    for record in objects(found):
        for each in _says(record):
            ranks[_kind(each)] = min(_rank(record), ranks.get(_kind(each), _rank(record)))

    def says(record: Record) -> Sequence[object]:
        return [each for each in _says(record) if _rank(record) == ranks[_kind(each)]] or [left_out(_type(record))]

    return sessions_of(found, says, _about, cast=lambda _: Cast(AGENT))


def _about(record: Record) -> Record:
    """The session's id, time and folder from a record. Records of 2025 have them without an envelope."""
    meta = record.get("payload") if record.get("type") == "session_meta" else record
    if not isinstance(meta, dict) or (meta is record and "type" in record):
        return {}
    known = {"id": meta.get("id"), "created_at": meta.get("timestamp"), "cwd": meta.get("cwd")}
    return {"session": AGENT} | {name: value for name, value in known.items() if isinstance(value, str)}


def _says(record: Record) -> Sequence[object]:
    """The messages of a line, or a call and its result; a `LeftOut` for a line that does not become an event."""
    kind, payload = record.get("type"), record.get("payload")
    if kind == "event_msg":
        return read_messages(_EVENTS, record, {})
    if kind == "response_item" and not isinstance(payload, dict):
        return [InvalidEvent("payload: not an object", path="payload", rule="dict_type")]
    if kind == "response_item" or (isinstance(kind, str) and kind not in _ENVELOPES and "payload" not in record):
        return _of_item(payload if isinstance(payload, dict) else record, record.get("timestamp"))
    return [left_out(_type(record))]


def _rank(record: Record) -> int:
    """The rank of a record: items come first, then completed items of a turn, then other events."""
    return 0 if record.get("type") != "event_msg" else 1 if _type(record) == "event_msg/item_completed" else 2


def _kind(said: object) -> str:
    if not isinstance(said, dict):
        return "left out"
    parts = objects(said.get("content"))
    return "thought" if parts and parts[0].get("type") in ("thinking", "reasoning") else str(said.get("role", "call"))


def _type(record: Record) -> str:
    payload = record.get("payload")
    detail = payload.get("type") if isinstance(payload, dict) else None
    named = (record.get("type") or record.get("record_type") or "session_meta", detail)
    return "/".join(part for part in named if isinstance(part, str))


def _of_item(item: Mapping[str, Any], time: object) -> list[object]:
    if item.get("type") == "message":
        role = item.get("role")
        if role not in ("user", "assistant") or (role == "user" and _is_instruction(item.get("content"))):
            return [LeftOutBlock("instructions")]
        item = {name: value for name, value in item.items() if name != "id"}  # some versions only write one
    messages = messages_of_item(item)
    return [{**each, "timestamp": time} if isinstance(each, dict) else each for each in messages]


def _is_instruction(content: object) -> bool:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return bool(texts) and all(isinstance(text, str) and _INSTRUCTIONS.match(text) for text in texts)


FORMAT = Format(
    "codex",
    "rollouts of Codex (~/.codex/sessions)",
    _STRUCTURE,
    reader(_EXPECTED, _find, _STRUCTURE),
    "messages, reasoning, tool calls with their results",
    "context of turns, counts of tokens, instructions that Codex writes, events that repeat an item",
)
