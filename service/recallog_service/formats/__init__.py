"""Ingest formats: pure readers from a file's text to events. They know no ledger; `recallog ingest` appends.

jsonl    one event a line, as `recallog export` writes it or a producer hands it in
chat     conversations in OpenAI's roles, with tool calls
locomo   the LoCoMo data set: many sessions between two speakers

Every reader yields `Item`s, an event or the error in its place, and gives the same events for the same input, ids and
times included: ingesting a file twice adds nothing.
"""

from recallog_service.formats import chat, jsonl, locomo
from recallog_service.formats.item import DEFAULT_START, Item

__all__ = ["DEFAULT_START", "Item", "chat", "jsonl", "locomo"]
