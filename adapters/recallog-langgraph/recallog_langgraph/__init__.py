"""LangGraph's long-term store and its checkpoints in a memory of Recallog."""

from recallog_langgraph.checkpointer import RecallogSaver
from recallog_langgraph.store import RecallogStore

__all__ = ["RecallogSaver", "RecallogStore"]
