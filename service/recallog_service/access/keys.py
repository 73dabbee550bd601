"""Keys: how they are made and checked, and the port of the stores that hold them.

A key is shown once, when it is made. Only a hash of its secret is stored.
"""

import hashlib
import hmac
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from recallog_schemas.errors import OutOfRange
from recallog_service.access.grants import Grant

PREFIX = "rl"
"""Every key begins with it, so that scanners for leaked secrets recognise keys."""

_ID_BYTES = 8
_SECRET_BYTES = 32


class Key(BaseModel):
    """What is stored of a key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """The part of the key that names it, in lists and logs."""
    name: str
    """What the key is for, as given by its creator."""
    grant: Grant
    """What its holder may do."""
    sha256: str
    """The SHA-256 of its secret, in 64 hexadecimal digits."""
    created: datetime
    """When it was made."""
    expires: datetime | None = None
    """The key is refused from this time on; None: it does not expire."""
    revoked: datetime | None = None
    """When it was revoked; None: it is not revoked."""
    calls_per_minute: int | None = None
    """Calls that its holder may make per minute; None: no limit."""

    def is_valid_at(self, now: datetime) -> bool:
        """Whether the key is accepted: it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def cells(self) -> Sequence[str]:
        """The key as the cells of a table, without its hash: id, name, spaces, agent, verbs, calls a minute, state."""
        limit = "any" if self.calls_per_minute is None else f"{self.calls_per_minute:,}"
        return self.id, self.name, *self.grant.cells(), limit, self._state

    def format(self) -> str:
        """The key on one line, without its hash."""
        limit = "" if self.calls_per_minute is None else f"  {self.calls_per_minute:,}/min"
        state = "" if self._state == "valid" else f"  {self._state}"
        return f"{self.id}  {self.name}  {self.grant.format()}{limit}{state}"

    @property
    def _state(self) -> str:
        if self.revoked is not None:
            return f"revoked {self.revoked:%Y-%m-%d}"
        if self.expires is None:
            return "valid"
        return f"{'expires' if self.is_valid_at(datetime.now(UTC)) else 'expired'} {self.expires:%Y-%m-%d}"


class KeyStore(ABC):
    """Stores the keys of a memory. Methods raise `StorageError`."""

    @abstractmethod
    async def get(self, id_: str) -> Key | None:
        """The key with an id, even if revoked; None if there is none."""

    @abstractmethod
    async def all(self) -> Sequence[Key]:
        """All keys, including revoked ones, oldest first."""

    @abstractmethod
    async def put(self, key: Key) -> None:
        """Store a key. It replaces a key with the same id."""

    async def revoke(self, id_: str) -> Key:
        """Revoke the key with an id, and return it. A revoked key is not changed.

        Raises `OutOfRange` if there is none.
        """
        key = await self.get(id_)
        if key is None:
            raise OutOfRange(f"there is no key {id_!r}; recallog keys list shows them", path="id")
        if key.revoked is None:
            key = key.model_copy(update={"revoked": datetime.now(UTC)})
            await self.put(key)
        return key

    @abstractmethod
    async def close(self) -> None:
        """Close connections, if there are any."""


def make(
    name: str, grant: Grant, *, expires: datetime | None = None, calls_per_minute: int | None = None
) -> tuple[str, Key]:
    """A new key, `rl_<id>_<secret>`, and what to store of it."""
    id_, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    stored = Key(
        id=id_,
        name=name,
        grant=grant,
        sha256=_hash_of(secret),
        created=datetime.now(UTC),
        expires=expires,
        calls_per_minute=calls_per_minute,
    )
    return f"{PREFIX}_{id_}_{secret}", stored


def is_key(token: str) -> bool:
    """Whether a text has the form of a key."""
    return token.startswith(f"{PREFIX}_")


async def find_key(store: KeyStore, token: str) -> Key | None:
    """The stored key of `token` if it is valid now; otherwise None, after the same amount of work."""
    _, _, rest = token.partition("_")
    id_, _, secret = rest.partition("_")
    stored = await store.get(id_)
    expected = _NO_HASH if stored is None else stored.sha256
    is_same = hmac.compare_digest(_hash_of(secret), expected)
    return stored if is_same and stored is not None and stored.is_valid_at(datetime.now(UTC)) else None


def _hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


_NO_HASH = "0" * 64
