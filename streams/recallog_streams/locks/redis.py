"""The locks of a cluster, in Redis.

They only avoid duplicate work. Correctness does not depend on them: answers to a trigger count once, and the commits of
an index are fenced.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import LockError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from recallog_projections.breaker import Breaker
from recallog_projections.concurrency import cancel_all
from recallog_projections.patience import answer_seconds
from recallog_projections.stores.redis_server import breaker_of, connection_options, reaching
from recallog_schemas.errors import LockTimeout, StorageUnavailable

_HELD_SECONDS = 30.0
"""How long the lock outlives a holder that died."""
_POLL_SECONDS = 0.1


class RedisLock:
    """A lock that one process holds at a time and renews while it works.

    Raises `LockTimeout` after `wait_seconds`, and `StorageUnavailable` if the server does not answer. `breaker` is that
    of the server's other clients (see `redis_server.breaker_of`).
    """

    def __init__(self, url: str, name: str, wait_seconds: float, breaker: Breaker | None = None) -> None:
        self._url = url
        self._name = name
        self._wait_seconds = wait_seconds
        self._breaker = breaker or breaker_of(url)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        options = connection_options(answer_seconds(self._breaker.deadline_seconds))
        async with redis.asyncio.from_url(self._url, **options) as connection:
            lock = connection.lock(f"{{{self._name}}}:lock", timeout=_HELD_SECONDS)
            try:
                await self._acquire(lock)
            except RedisError as error:
                raise StorageUnavailable(f"Redis refuses a lock ({error}). Try again") from error
            renewing = asyncio.create_task(_renew(lock))
            try:
                yield
            finally:
                await cancel_all(renewing)
                with suppress(LockError, RedisError):  # expired, or Redis is unreachable: it expires by itself
                    await lock.release()

    async def _acquire(self, lock: "redis.asyncio.lock.Lock") -> None:
        give_up = asyncio.get_running_loop().time() + self._wait_seconds
        while not await self._breaker.call(lambda: _attempt(lock)):
            if asyncio.get_running_loop().time() >= give_up:
                raise LockTimeout(
                    f"another process has held {self._name} for more than {self._wait_seconds:g} s; try again"
                )
            await asyncio.sleep(_POLL_SECONDS)


async def _attempt(lock: "redis.asyncio.lock.Lock") -> bool:
    with reaching():
        return bool(await lock.acquire(blocking=False))


async def _renew(lock: "redis.asyncio.lock.Lock") -> None:
    while True:
        await asyncio.sleep(_HELD_SECONDS / 3)
        with suppress(RedisConnectionError, RedisTimeoutError):  # it may answer before the lock expires
            await lock.reacquire()
