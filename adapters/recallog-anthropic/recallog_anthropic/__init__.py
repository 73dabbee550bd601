"""Anthropic's memory tool in a memory of Recallog."""

from recallog_anthropic.tool import AsyncRecallogMemoryTool, RecallogMemoryTool

__all__ = ["AsyncRecallogMemoryTool", "RecallogMemoryTool"]
