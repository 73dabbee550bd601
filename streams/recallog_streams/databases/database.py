"""The database port: where the views of a memory are, with its locks and keys."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from recallog_projections.stores.store import Store
from recallog_schemas.errors import SettingsError

if TYPE_CHECKING:
    from recallog_streams.keys.sealing_keys import SealingKeys

NAMESPACE = "recallog"
"""The namespace of the built-in views, and the prefix of all names in databases that others may use too."""

Lock = Callable[[], AbstractAsyncContextManager[Any]]


class Documents(ABC):
    """A few small documents with names. They cannot be computed again from the ledger."""

    @property
    def location(self) -> str:
        """Where a document can be deleted by hand, for messages; by default "the database"."""
        return "the database"

    @abstractmethod
    async def get(self, name: str) -> bytes | None:
        """The document with a name; None if there is none."""

    @abstractmethod
    async def all(self) -> Mapping[str, bytes]:
        """All documents by name."""

    @abstractmethod
    async def put(self, name: str, document: bytes) -> None:
        """Store a document durably. One that has its name is replaced."""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


class Database(ABC):
    """Has a store for each namespace, and the locks and keys of the processes of one memory.

    Creating it opens no connection. What its methods return is closed separately.
    """

    shared: ClassVar[bool] = True
    """Whether processes of several machines can use it."""

    @abstractmethod
    def store(self, namespace: str) -> Store:
        """The store of a namespace, such as `recallog` (the built-in views). Two of them have no row in common."""

    @abstractmethod
    def lock(self, name: str, wait_seconds: float) -> Lock:
        """A lock that one of the processes which use this database holds at a time; free soon after its holder dies.

        Entering it raises `LockTimeout` if it is held for `wait_seconds`. Locks avoid double work; commits and answers
        stay right without them.
        """

    def sealing_keys(self) -> "SealingKeys":
        """The store of the keys of sealed events. Raises `SettingsError` if this database keeps no keys."""
        raise SettingsError(
            f"RECALLOG_KEYS: {type(self).__name__} keeps no keys of sealed events. Name where they are, for example a "
            "folder or redis://host:6379/0; or seal nothing: RECALLOG_SEAL=off"
        )

    def has_sealing_keys(self) -> bool:
        """Whether there may be keys of sealed events already. False saves readers from opening a store of keys."""
        return True

    def documents(self, name: str) -> Documents | None:
        """The documents of a collection, such as `keys` (of the doors); None: they are in the memory's folder, and each
        machine has its own."""
        return None
