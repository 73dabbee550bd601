"""The base classes of all views, and remembered events."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from recallog_schemas.event import Event, Position

Item = TypeVar("Item")


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


class Remembered(View):
    """One event that an agent may see, with its position and its text."""

    position: Position
    """Its position in the ledger."""
    event: Event
    """The whole event."""
    text: str
    """Its text, by the rule of its kind; "" if it has none."""

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
