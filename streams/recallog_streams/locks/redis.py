"""The locks of a cluster, in Redis.

They only avoid duplicate work. Correctness does not depend on them: answers to a trigger count once, and the commits of
an index are fenced.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import redis.asyncio
from redis.exceptions import LockError, RedisError

from recallog_schemas.errors import LockTimeout, StorageUnavailable
from recallog_streams.concurrency import ended

_HELD_SECONDS = 30.0
"""How long the lock outlives a holder that died."""


class RedisLock:
    """A lock that one process holds at a time and renews while it works."""

    def __init__(self, url: str, name: str, wait_seconds: float) -> None:
        self._url = url
        self._name = name
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        async with redis.asyncio.from_url(self._url) as connection:
            lock = connection.lock(f"{{{self._name}}}:lock", timeout=_HELD_SECONDS)
            try:
                held = await lock.acquire(blocking_timeout=self._wait_seconds)
            except RedisError as error:
                raise StorageUnavailable(f"Redis does not answer ({error}). Is it running? Try again") from error
            if not held:
                raise LockTimeout(
                    f"another process has held {self._name} for more than {self._wait_seconds:g} s; try again"
                )
            renewing = asyncio.create_task(_renew(lock))
            try:
                yield
            finally:
                await ended(renewing)
                with suppress(LockError, RedisError):  # expired, or Redis is unreachable: it expires by itself
                    await lock.release()


async def _renew(lock: "redis.asyncio.lock.Lock") -> None:
    while True:
        await asyncio.sleep(_HELD_SECONDS / 3)
        await lock.reacquire()
