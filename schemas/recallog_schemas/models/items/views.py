"""Items: the values that an agent keeps under a namespace and a key."""

from datetime import datetime
from typing import Any

from pydantic import Field

from recallog_schemas import limits
from recallog_schemas.event import Position
from recallog_schemas.shortening import cut
from recallog_schemas.views.base import OfAgent, View, one_line, shown_json
from recallog_schemas.views.erasures import ErasureReport


class ItemView(View):
    """One item, as it is now or was at the requested moment."""

    namespace: tuple[str, ...]
    """The names of its namespace, outermost first."""
    key: str
    """Its name in the namespace."""
    value: Any
    """Its value: any JSON."""
    version: int
    """The number of its changes, from 1. An item that was deleted begins again."""
    at: datetime
    """When it last changed, in UTC."""
    sha256: str
    """The SHA-256 of its value in hex: of the UTF-8 of a text, else of the compact JSON with sorted keys."""
    position: Position
    """The position of the event that last changed it."""

    @property
    def path(self) -> str:
        """The namespace and the key, for example `notes/miller`."""
        return "/".join((*self.namespace, self.key))

    def format(self) -> str:
        """Path, version and the beginning of the value in one line: `notes/miller v2 nine sacks`."""
        value = cut(one_line(shown_json(self.value)), limits.PREVIEW_CHARS)
        return f"{one_line(self.path)} v{self.version} {value}"


class ItemFound(OfAgent):
    """The item under a key, if there is one."""

    item: ItemView | None
    """The item; None if there is none."""

    @property
    def ok(self) -> bool:
        """Whether there is such an item."""
        return self.item is not None

    def format(self) -> str:
        """The value; `(nothing)` if there is none."""
        return "(nothing)" if self.item is None else shown_json(self.item.value)


class ItemsPage(OfAgent):
    """A page of items."""

    items: tuple[ItemView, ...]
    """The items, by namespace and key, or most recently changed first."""
    next: str | None
    """The cursor of the next page; None: there is none."""

    def format(self) -> str:
        """One line for each item; `(nothing)` if there are none."""
        return "\n".join(item.format() for item in self.items) or "(nothing)"


class ItemChange(View):
    """What a change did to an item."""

    changed: bool
    """Whether the item was changed. False: there was nothing to delete."""
    id: str | None
    """The id of the event. None: nothing was written."""
    position: Position | None
    """The position of the event. None: nothing was written."""
    item: ItemView | None
    """The item as it is now; None if there is none. If its position is another one, it has changed again since."""
    erasure: ErasureReport | None = Field(default=None, exclude_if=lambda erasure: erasure is None)
    """What of it was erased; left out if no erasure was requested."""

    @property
    def ok(self) -> bool:
        """Whether the item was changed."""
        return self.changed

    def format(self) -> str:
        """The item in one line, or what happened to it."""
        if not self.changed:
            return "there is no such item"
        return "deleted" if self.item is None else self.item.format()
