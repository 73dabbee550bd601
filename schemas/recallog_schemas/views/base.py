"""The base classes of all views, and remembered events."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from recallog_schemas.event import Event, Position

Item = TypeVar("Item")

_SUBJECT = ("space", "agent")
"""The fields that `repr` shows first."""
_SHOWN_CHARS_MAX = 60
"""How many characters of a text `repr` shows."""


class View(BaseModel):
    """Base of all views: immutable, and serialised to JSON by `model_dump_json()`."""

    model_config = ConfigDict(frozen=True)

    def format(self) -> str:
        """The view as text: its fields, one per line."""
        return "\n".join(f"{name}: {getattr(self, name)}" for name in type(self).model_fields)

    @property
    def ok(self) -> bool:
        """Whether what was requested was found, done or confirmed. If not, the exit code of a command is 1."""
        return True

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What `repr` and `str` show: whom the view is about, then numbers and short texts; of collections the length.

        Other models and what computed the view are left out.
        """
        names = [name for name in type(self).model_fields if name not in ComputedAt.model_fields]
        for name in sorted(names, key=lambda name: name not in _SUBJECT):
            shown = _short(getattr(self, name))
            if shown is not None:
                yield name, shown


def _short(value: object) -> object:
    """A value as one line shows it; None if it is left out."""
    match value:
        case str():
            line = one_line(value)
            return line if len(line) <= _SHOWN_CHARS_MAX else line[: _SHOWN_CHARS_MAX - 1] + "…"
        case tuple() | list() | dict():
            return len(value)
        case Position() | datetime():
            return str(value)
        case BaseModel():
            return None
        case _:
            return value


class ListView(View, Generic[Item]):
    """A list of views; `len`, indexing and iteration are those of `items`."""

    items: tuple[Item, ...]
    """The items, in the order that the view names."""

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, list_index: int) -> Item:
        return self.items[list_index]

    def __iter__(self) -> Iterator[Item]:  # type: ignore[override]  # a model iterates over its fields
        return iter(self.items)

    def format(self) -> str:
        """The items, one per line; `(nothing)` if there are none."""
        return "\n".join(item.format() if isinstance(item, View) else str(item) for item in self) or "(nothing)"


class ComputedAt(View):
    """The generation of the views that answered, and the last position it had processed (None: nothing yet)."""

    generation: str
    """The generation of the views that answered."""
    checkpoint: Position | None
    """The last position that it had processed. None: nothing yet."""


class OfSpace(ComputedAt):
    """An answer about one space."""

    space: str
    """The name of the space."""
    known: bool
    """Whether the space has any event. If not, its name may be misspelt."""


class OfAgent(ComputedAt):
    """An answer about one agent of a space."""

    space: str
    """The name of the space."""
    agent: str
    """The name of the agent."""
    known: bool
    """Whether any event of the space is by the agent or addressed to it. If not, a name may be misspelt, or the agent
    has only read what is shared."""

    @property
    def empty(self) -> bool:
        """Whether the answer has no content. An empty answer about an agent that is not `known` points to a misspelt
        name."""
        return not any(_has_view(getattr(self, name)) for name in type(self).model_fields)


def _has_view(value: object) -> bool:
    return isinstance(value, View) or (isinstance(value, tuple) and any(isinstance(item, View) for item in value))


class Remembered(View):
    """One event that an agent may see, with its position and its text."""

    position: Position
    """Its position in the ledger."""
    event: Event
    """The whole event."""
    text: str
    """Its text, by the rule of its kind; "" if it has none."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        yield from (("id", self.event.id), ("agent", self.event.agent), ("kind", self.event.kind))
        yield from super().__repr_args__()

    def format(self) -> str:
        """The event as one line; see `line`."""
        return self.line()

    def line(self) -> str:
        """The event as one line of a prompt: `[turn 003][kind] text`."""
        return f"[turn {self.event.turn:03d}][{self.event.kind}] {one_line(self.text)}"


def lines(memories: Iterable[Remembered]) -> str:
    return "\n".join(memory.line() for memory in memories)


def one_line(text: str) -> str:
    """`text` without line breaks: in a prompt, the text of an event must not look like a separate section."""
    return " ".join(text.splitlines())
