"""Access: identifies a caller by its key or token."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from recallog import Settings
from recallog_schemas import extras
from recallog_schemas.errors import SettingsError, StorageError, Unauthorized
from recallog_service.access import keys, stores
from recallog_service.access.concealing import conceal_error
from recallog_service.access.grants import Grant
from recallog_service.access.rates import RateLimits

if TYPE_CHECKING:
    from recallog_service.access.keys import KeyStore
    from recallog_service.access.tokens import Tokens

CALLER = "recallog.caller"
"""The name under which one door hands the `Caller` of a request to another."""

_KEYLESS = "keyless"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of an operation, and what it may do."""

    name: str
    """`key:<id>`, `jwt:<subject>`, or `keyless`: for logs, which show no secrets."""
    grant: Grant
    calls_per_minute: int | None = None
    """Calls that it may make per minute; None: no limit."""


class Access:
    """The callers of one memory.

    If no key was ever made and no token can be checked, every caller may do everything: a door must then listen on the
    loopback interface only (`is_open`). The first key ends this; revoking the last key does not restore it.
    """

    def __init__(self, store: "KeyStore", tokens: "Tokens | None" = None, limits: RateLimits | None = None) -> None:
        self.limits = limits or RateLimits()
        self._store = store
        self._tokens = tokens
        self._was_closed = tokens is not None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The callers of the memory with these settings. Raises `SettingsError`."""
        return cls(stores.store_of(settings), _tokens(settings))

    async def is_open(self) -> bool:
        """Whether callers need neither a key nor a token."""
        if not self._was_closed and await self._store.all():
            self._was_closed = True
        return not self._was_closed

    async def caller(self, token: str | None) -> Caller:
        """The holder of a key or token (None: the caller gave neither). Counts one call.

        Raises `Unauthorized`, and `RateLimited` if the key has a limit.
        """
        caller = await self.identify(token)
        if caller.calls_per_minute is not None:
            self.limits.take(caller.name, "", calls_per_minute=caller.calls_per_minute)
        return caller

    async def identify(self, token: str | None) -> Caller:
        """The holder of a key or token, without counting a call: shows whether it is still valid. Raises
        `Unauthorized`."""
        try:
            return await self._identify_caller(token)
        except StorageError as error:
            raise conceal_error(error) from None  # the caller is not identified yet: it may not be an operator

    async def _identify_caller(self, token: str | None) -> Caller:
        if await self.is_open():
            return Caller(_KEYLESS, Grant.everything())
        if not token:
            raise Unauthorized("this needs a key: Authorization: Bearer rl_…; recallog keys create makes one")
        if keys.is_key(token):
            key = await keys.find_key(self._store, token)
            if key is None:
                raise Unauthorized("the key is unknown, revoked or expired")
            return Caller(f"key:{key.id}", key.grant, key.calls_per_minute)
        if self._tokens is None:
            raise Unauthorized("the key is unknown, revoked or expired")
        claims = self._tokens.claims(token)
        return Caller(f"jwt:{claims.subject}", claims.grant)

    async def close(self) -> None:
        """Close connections."""
        await self._store.close()


def _tokens(settings: Settings) -> "Tokens | None":
    if settings.jwt_key is None:
        if settings.jwt_audience is not None or settings.jwt_issuer is not None:
            raise SettingsError(
                "RECALLOG_JWT_AUDIENCE and RECALLOG_JWT_ISSUER are about tokens: set RECALLOG_JWT_KEY too, or neither"
            )
        return None
    with extras.import_extra("server"):
        from recallog_service.access.tokens import Tokens

    return Tokens(settings)
