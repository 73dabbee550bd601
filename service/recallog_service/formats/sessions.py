"""Conversations from files of consecutive records.

The records are the documents of the file (its lines), or each document is a conversation with a list of records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import CAST, Cast
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages
from recallog_service.formats.conversations import FileConversation, space_of_project

Record = dict[str, Any]

_REPEATED = "earlier_record_of_a_message"


@dataclass(slots=True)
class _Session:
    fields: dict[str, Any]
    said: dict[object, tuple[int, list[object]]] = field(default_factory=dict)
    """The messages of each record, with its ordinal. If several records have the same message, the last one is used, at
    the position of the first: agents rewrite a message while it grows."""

    @property
    def is_conversation(self) -> bool:
        return any(not isinstance(each, LeftOutBlock) for _, said in self.said.values() for each in said)

    def conversation(self, number: int, unit: str, cast: Cast) -> FileConversation:
        pairs = [(ordinal, message) for ordinal, said in self.said.values() for message in said]
        messages, ordinals = [message for _, message in pairs], [ordinal for ordinal, _ in pairs]
        home = space_of_project(self.fields.get("cwd"))
        # A document is written at once; lines are added while the agent works.
        return FileConversation(number, self.fields, messages, ordinals, unit, cast, home, grows=unit == "line")


def sessions_of(
    documents: Sequence[object],
    says: Callable[[Record], Sequence[object]],
    about: Callable[[Record], Mapping[str, Any]],
    *,
    records: Callable[[Record], Sequence[object] | None] = lambda _: None,
    cast: Callable[[Mapping[str, Any]], Cast] = lambda _: CAST,
) -> FoundMessages:
    """The sessions of `documents`.

    `says` returns the messages of a record, each with its `id` if it has one, or a `LeftOut`; records with the same
    `key` have the same message. `about` returns fields of the session (`id`, `cwd`, `created_at`; the first value of
    each is used), and its identity as `session`; a record without one belongs to the session of the previous record.
    `records` returns the list of records of a document that is a conversation.
    """
    sessions: dict[object, _Session] = {}
    left: list[str] = []
    current: _Session | None = None
    unit = "line"
    for line, document in enumerate(documents, 1):
        inner = records(document) if isinstance(document, dict) else None
        if inner is not None and isinstance(document, dict):
            unit, current = "message", _Session({**document, **about(document)})
            sessions["document", line] = current
        for ordinal, record in [(line, document)] if inner is None else enumerate(inner, 1):
            known = about(record) if inner is None and isinstance(record, dict) else {}
            if "session" in known:
                current = sessions.setdefault(known["session"], _Session({}))
            said = _read_messages(record, says)
            if current is None and all(isinstance(each, LeftOutBlock) for each in said):
                left += [each.type for each in said if isinstance(each, LeftOutBlock)]
                continue
            current = current or sessions.setdefault(None, _Session({}))
            current.fields = {**known, **current.fields}
            keys = (each.get("key", each.get("id")) for each in said if isinstance(each, dict))
            key = next((str(each) for each in keys if isinstance(each, str | int)), ("record", ordinal))
            first, before = current.said.get(key, (ordinal, []))
            left += [_REPEATED] * bool(before)
            current.said[key] = first, said
    for session in sessions.values():
        if not session.is_conversation:
            left += [each.type for _, said in session.said.values() for each in said if isinstance(each, LeftOutBlock)]
    whole = [each for each in sessions.values() if each.is_conversation]
    return FoundMessages([each.conversation(n, unit, cast(each.fields)) for n, each in enumerate(whole, 1)], left)


def _read_messages(record: object, says: Callable[[Record], Sequence[object]]) -> list[object]:
    if isinstance(record, InvalidEvent):
        return [record]
    if not isinstance(record, dict):
        return [InvalidEvent("not a record: not an object", rule="unparsable")]
    return list(says(record))
