"""Texts that Recallog itself added to a conversation. They are not remembered again when the conversation is read.

A program that adds memories to a message of the user marks them with `mark_memories`. Calls of Recallog's own tools are
known by their names, as MCP clients write them: `mcp__recallog__recall_memory`, `recallog_recall_memory`.
"""

import re

_NAME = "recallog-memory"
_BEGIN, _END = f"<{_NAME}>", f"</{_NAME}>"
_MARKED = re.compile(rf"{_BEGIN}.*?{_END}\s*", re.DOTALL)
_TOOL = re.compile(r"(?:^|[_.:/])recallog[_.:/]|(?:^|[_.:/])(?:recall|retain|reflect_on|update|forget)_memory$")


def mark_memories(text: str) -> str:
    """Memories as a part of a message. The part cannot be ended by a text inside it."""
    return f"{_BEGIN}\n{text.replace(_NAME, 'recallog memory')}\n{_END}"


def strip_memories(text: str) -> str:
    """A text without the memories that were added to it."""
    return _MARKED.sub("", text) if _BEGIN in text else text


def is_own_tool(name: object) -> bool:
    """Whether a tool belongs to Recallog."""
    return isinstance(name, str) and _TOOL.search(name) is not None
