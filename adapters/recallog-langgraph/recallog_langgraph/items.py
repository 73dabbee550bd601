"""The items of one agent: read one by one or below a namespace, and changed several at a time."""

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from recallog import Position
from recallog.sync import Memory, Remote
from recallog.views import ItemView
from recallog_schemas import limits

AnyMemory: TypeAlias = Memory | Remote
Event: TypeAlias = dict[str, Any]

_DIGEST_MARK = "#"


def name_of(text: str) -> str:
    """A name for any text: the text itself if it can name an item or a namespace, else its digest."""
    fits = 0 < len(text) <= limits.ITEM_NAME_CHARS_MAX and not text.startswith(_DIGEST_MARK)
    if fits and unicodedata.is_normalized("NFC", text):
        return text
    return _DIGEST_MARK + hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class Items:
    """The items of one agent, through a synchronous memory. Any number of threads may use them."""

    def __init__(self, memory: AnyMemory, space: str, agent: str) -> None:
        self._memory = memory
        self._space = space
        self._agent = agent
        self._written: Position | None = None
        """The position of the last change. On a cluster, the views may not have processed it at the next read."""

    def get(self, namespace: Sequence[str], key: str) -> ItemView | None:
        """The item under a key; None if there is none."""
        return self._memory.items.get(self._space, self._agent, list(namespace), key, after=self._written).item

    def below(self, namespace: Sequence[str], *, newest_first: bool = False, page: int = 200) -> Iterator[ItemView]:
        """The items in a namespace and below it, in the order of their names, or the last changed first."""
        cursor: str | None = None
        while True:
            found = self._memory.items.list(
                self._space,
                self._agent,
                list(namespace),
                newest_first=newest_first,
                limit=page,
                cursor=cursor,
                after=self._written,
            )
            yield from found.items
            cursor = found.next
            if cursor is None:
                return

    def put(self, namespace: Sequence[str], key: str, value: Any, *, only_new: bool = False) -> Event:
        """The change that sets the value of an item; with `only_new`, only if the item does not exist."""
        base = {"base": 0} if only_new else {}
        return self._event("item.put", namespace, key, value=value, **base)

    def delete(self, namespace: Sequence[str], key: str) -> Event:
        """The change that deletes an item."""
        return self._event("item.deleted", namespace, key)

    def change(self, events: Sequence[Event]) -> None:
        """Make changes, in order. Up to 10,000 are made completely or not at all, even if the process is killed."""
        for start in range(0, len(events), limits.APPEND_EVENTS_MAX):
            part = events[start : start + limits.APPEND_EVENTS_MAX]
            self._written = self._memory.publish_many(part).items[-1]

    def _event(self, kind: str, namespace: Sequence[str], key: str, **more: Any) -> Event:
        payload = {"namespace": list(namespace), "key": key, **more}
        return {"space": self._space, "agent": self._agent, "kind": kind, "payload": payload}
