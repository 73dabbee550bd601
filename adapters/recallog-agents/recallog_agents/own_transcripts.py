"""Transcripts that hooks keep for agents that have none: one message per line, with its agent, session and folder."""

from collections.abc import Sequence
from typing import Any

from recallog_service.formats import (
    Cast,
    FileConversation,
    Format,
    FoundMessages,
    Options,
    reader,
    space_of_project,
    structure_of,
)

_EXPECTED = "a transcript that the hooks of Recallog wrote: one message per line"
_STRUCTURE = structure_of("recallog-hooks")


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    lines = [(line, each) for line, each in enumerate(found, 1) if _is_line(each) or not isinstance(each, dict)]
    first: dict[str, Any] = next((each for _, each in lines if isinstance(each, dict)), {})
    if not first:
        return FoundMessages([])
    messages = [each["message"] if isinstance(each, dict) else each for _, each in lines]
    home = space_of_project(first.get("cwd"))
    ordinals = [line for line, _ in lines]
    cast = Cast(first["recallog_agent"])
    return FoundMessages([FileConversation(1, {"id": first.get("session")}, messages, ordinals, "line", cast, home)])


def _is_line(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("recallog_agent"), str) and "message" in value


FORMAT = Format(
    "recallog-hooks",
    "transcripts that hooks of coding agents keep",
    _STRUCTURE,
    reader(_EXPECTED, _find, _STRUCTURE),
    "prompts, answers, tool calls with their results",
)
