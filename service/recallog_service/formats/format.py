"""The port of ingest formats: recognising a file, and reading its items."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recallog_schemas import codec
from recallog_service.formats.item import DEFAULT_START, Item
from recallog_service.formats.source import Source
from recallog_service.formats.structure import Recognition


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the caller. A format uses those that apply to it."""

    space: str | None = None
    """One space for all conversations; for LoCoMo, the prefix of spaces."""
    start: datetime = DEFAULT_START
    """The time from which missing times are counted."""
    messages_key: str | None = None
    """The field with the messages of a conversation; None: the format finds it."""
    agent: str | None = None
    """The agent name of the assistant; None: the format's default."""
    subjects: bool = False
    """Whether speakers other than the assistant become the `subject` of their events, so that they can be erased."""

    def __post_init__(self) -> None:
        """Raises `InvalidArgument` for a space or an agent that is not a name."""
        for field in ("space", "agent"):
            if (name := getattr(self, field)) is not None:
                object.__setattr__(self, field, codec.checked_name(name, field))


class Reading(Protocol):
    """The items of one file."""

    @property
    def unit(self) -> str:
        """What `Item.number` counts: "line" or "conversation"."""

    @property
    def note(self) -> str | None:
        """One line for people: what was chosen for this file, for example its spaces, and why."""

    def __iter__(self) -> Iterator[Item]:
        """One item for each event, and for each part of the file that does not become one. Raises `InvalidEvent` for a
        file in another format."""


@dataclass(frozen=True, slots=True)
class ItemsReading:
    """A reading whose items are made elsewhere."""

    items: Iterator[Item]
    unit: str
    note: str | None = None

    def __iter__(self) -> Iterator[Item]:
        return self.items


@dataclass(frozen=True, slots=True)
class Format:
    """A format that `recallog ingest` reads."""

    name: str
    about: str
    """The files, in one line."""
    structure: Recognition
    """What a file must contain. A file is read by the first format whose structure matches."""
    read: Callable[[Source, Options], Reading]
    """Raises `InvalidEvent` for a file in another format."""
    keeps: str = ""
    """What becomes events, in one line."""
    leaves_out: str = ""
    """What is counted instead, in one line."""
