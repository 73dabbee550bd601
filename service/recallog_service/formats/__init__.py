"""Ingest formats: pure readers from a file's text to events. They know no ledger; `recallog ingest` appends.

jsonl    one event per line, as `recallog export` or a producer writes it
chat     conversations in the message formats of OpenAI and Anthropic, and exports of ChatGPT and Claude
locomo   the LoCoMo data set: many sessions between two speakers

Every reader yields one `Item` per event: the event, or the error that took its place. The same input always gives the
same events with the same ids and times, so ingesting a file twice adds nothing.
"""

from recallog_service.formats import chat, jsonl, locomo
from recallog_service.formats.item import DEFAULT_START, Item

__all__ = ["DEFAULT_START", "Item", "chat", "jsonl", "locomo"]
