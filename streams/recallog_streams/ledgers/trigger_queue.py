"""The port through which processes that maintain views notify others that triggers are due.

Messages are neither events nor history: the views have what is due. They may be lost or repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import msgspec


class Doorbell(msgspec.Struct, frozen=True):
    """A trigger is due."""

    space: str
    agent: str
    trigger: str
    """Its id."""


class QueueFailed(Exception):
    """The consumer of a queue has failed; the message says how."""


class TriggerQueue(ABC):
    """Carries messages about the triggers of one ledger, each to one process of a group."""

    @abstractmethod
    async def create(self) -> None:
        """Create the queue unless it exists. Raises `StorageUnavailable`."""

    @abstractmethod
    async def send(self, messages: Sequence[Doorbell]) -> None:
        """Write messages; return once they are written. Raises `StorageUnavailable`: some may be written then."""

    @abstractmethod
    async def consume(self, group: str, handle: Callable[[Doorbell | None], None], started: Callable[[], None]) -> None:
        """As a member of a group, call `handle` with each message until cancelled; None: it cannot be decoded.

        All messages about a space go to the same member, until members join or leave. `started` is called once this
        one receives messages. Raises `QueueFailed`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""
