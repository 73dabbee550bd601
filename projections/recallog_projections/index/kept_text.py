"""A text that a memory model keeps, with everything that the index and recall need."""

from typing import Self

import msgspec

from recallog_schemas import Event, Record, kinds, timestamps


class KeptText(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A text that a memory model keeps in its rows: one for each event that gives one.

    Its hit shows an event of its kind, whose payload has the text alone. The payload model of the kind must allow that.
    """

    space: str
    owner: str
    """The agent whose text it is."""
    id: str
    """The id of its event."""
    kind: str
    """The kind of its event."""
    type: str
    """Its name in the option `types` of recall."""
    text: str
    offset: int
    """The offset of its event."""
    at: int
    """When that happened, in microseconds since 1970."""
    turn: int = 0
    session: str | None = None
    audience: tuple[str, ...] = ()
    """The agents that may read it besides its owner."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1."""
    version: int = 1

    @classmethod
    def of(cls, record: Record, text: str, *, type: str, audience: tuple[str, ...] = ()) -> Self:  # noqa: A002
        """The text that the event of a record gives."""
        event = record.event
        return cls(
            event.space,
            event.agent,
            event.id,
            event.kind,
            type,
            text,
            record.offset,
            record.time,
            event.turn,
            event.session,
            audience,
        )

    @property
    def event(self) -> Event:
        """The event that a hit shows."""
        return Event(
            id=self.id,
            space=self.space,
            agent=self.owner,
            kind=self.kind,
            at=timestamps.moment_of(self.at),
            turn=self.turn,
            session=self.session,
            payload={"text": self.text},
        )

    def is_shown_to(self, agent: str) -> bool:
        return agent == self.owner or agent in self.audience


class KeptTexts(msgspec.Struct, frozen=True, array_like=True):
    """A row with texts."""

    texts: tuple[KeptText, ...] = ()
    """In the order in which they were kept."""
