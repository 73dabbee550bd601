"""Calls to one Redis server: Lua scripts, errors of Recallog, and checks of the server's configuration."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from recallog_projections.breaker import Breaker
from recallog_projections.concurrency import cancel_all
from recallog_projections.patience import is_patient
from recallog_schemas import limits
from recallog_schemas.errors import SettingsError, StorageError, StorageFull, StorageReadOnly, StorageUnavailable

CONNECTIONS_MAX = 50
TOGETHER_BYTES_MAX = 32 * 1024
"""Calls with a longer last argument are sent alone and at once: the server works while the next one is prepared."""

_logger = logging.getLogger("recallog.redis")

_REFUSES_WRITES = ("MISCONF", "NOREPLICAS", "BUSY", "UNKILLABLE")
"""First words of errors without a class in redis-py: the server refuses all writes for now."""


_Words = tuple[Any, ...]


_PARTS = re.compile(r"(\w*://)?([^/?]*@)?([^/?]*)(.*)", re.DOTALL)
"""The parts of a URL: the scheme, the account, the hosts, and the path with the query."""


class Script:
    """A Lua script, called by its SHA-1 when the server has cached it.

    `repeatable`: a call that is sent twice has the same effect and answer as one.
    """

    def __init__(self, name: str, *, repeatable: bool = True) -> None:
        self._name = name
        self.repeatable = repeatable

    @cached_property
    def text(self) -> bytes:
        return files("recallog_projections.stores").joinpath("lua", f"{self._name}.lua").read_bytes()

    @cached_property
    def sha(self) -> bytes:
        return hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()


class Unreachable(Exception):
    """The server cannot be reached or still loads its data, or a connection to it broke or timed out."""


def address_of(url: str) -> str:
    """Host and port, or the path of the socket, in the URL of a Redis. Raises `ValueError`."""
    parsed = urlsplit(url)
    return parsed.path if parsed.scheme == "unix" else f"{parsed.hostname or 'localhost'}:{parsed.port or 6379}"


def split_servers(url: str) -> list[str]:
    """The URLs of the servers that `url` names: `redis://user:password@a:6379,b:6379/0` names two."""
    before, account, hosts, after = _PARTS.fullmatch(url).groups("")  # type: ignore[union-attr]
    return [url] if before == "unix://" else [f"{before}{account}{host}{after}" for host in hosts.split(",")]


def breaker_of(url: str, deadline_seconds: float = limits.DEADLINE_SECONDS) -> Breaker:
    """The circuit breaker of the Redis at `url`, for all its clients in this process. Raises `SettingsError`."""
    try:
        address = address_of(url)
    except ValueError as error:
        raise _invalid_url(error) from None

    def unavailable(reason: str) -> StorageUnavailable:
        return StorageUnavailable(
            f"the Redis at {address} {reason}. Is it running, and is the URL right? Whether a write was made shows in "
            "the checkpoint; try again"
        )

    return Breaker(unavailable, deadline_seconds, failures=(Unreachable,), reason_of=str)


def connection_options(deadline_seconds: float) -> dict[str, Any]:
    """The options of redis-py with which no call waits without a limit, and none is repeated unnoticed."""
    return {
        "socket_connect_timeout": deadline_seconds,
        # The breaker ends a silent call before. This ends one that has lost its cancellation (see `ended`).
        "socket_timeout": 2 * deadline_seconds,
        "retry": Retry(NoBackoff(), 0),
    }


class RedisServer:
    """Calls to the server at `url` (redis://, rediss:// or unix://, with the options of redis-py in its query).

    The `breaker` ends a call after its deadline, or at once while the server is known not to answer.

    Small calls that the program makes in one turn of its event loop are sent together, so that the commits of all
    partitions of a worker are one message.

    A call whose connection is broken is sent a second time, on a new connection: idle connections break unnoticed, and
    all of them break when the server restarts. The server may have executed the first one, but nothing is written
    twice. A commit compares before it writes: the second call answers "already there", or what it answers after another
    writer's commit. Creating a generation, the steps of garbage collection, and reads answer the same again. A cutover
    is sent once: a second one would answer that the generation is not the building one, as if it had been refused.
    Calls that time out are not repeated either, since the server may be overloaded. Patient calls are: after a pause.
    """

    def __init__(self, url: str, breaker: Breaker | None = None) -> None:
        self.url = url
        self._breaker = breaker or breaker_of(url)
        try:
            self.address = address_of(url)
            self._client = self._make_client(self._breaker.deadline_seconds)
        except (ValueError, TypeError) as error:
            raise _invalid_url(error) from None
        self._warned = self._closed = False
        self._turns: dict[bool, tuple[list[_Words], asyncio.Task[list[Any]]]] = {}
        """By whether they are patient: the calls of this turn of the event loop, and the task that then sends them."""
        self._exchanges: set[asyncio.Task[list[Any]]] = set()

    def _make_client(self, deadline_seconds: float) -> Redis:
        """A client whose connections wait for an answer at least `deadline_seconds`."""
        pool = BlockingConnectionPool.from_url(
            self.url,
            max_connections=CONNECTIONS_MAX,
            timeout=2 * deadline_seconds,  # the breaker ends the call before
            **connection_options(deadline_seconds),
            protocol=2,
            redis_connect_func=self._check_server,
        )
        return Redis.from_pool(pool)

    @cached_property
    def _patient_client(self) -> Redis:
        """The client of calls that wait longer than a question does."""
        return self._make_client(max(self._breaker.deadline_seconds, limits.PATIENT_SECONDS))

    @property
    def deadline_seconds(self) -> float:
        """How long a call may take."""
        return self._breaker.deadline_seconds

    @property
    def _present_client(self) -> Redis:
        return self._patient_client if is_patient() else self._client

    async def run(self, script: Script, *arguments: Any) -> Any:
        """Run `script`; `arguments` begin with the number of keys. Raises as `command` does."""
        try:
            try:
                return await self._send(script.repeatable, "EVALSHA", script.sha, *arguments)
            except NoScriptError:
                return await self._send(script.repeatable, "EVAL", script.text, *arguments)
        except RedisError as error:
            raise self._translated_error(error) from error

    async def command(self, *words: Any, alone: bool = False) -> Any:
        """Run a command that may be sent twice; one that blocks its connection is sent `alone`. Raises `StorageError`,
        usually `StorageUnavailable`."""
        try:
            return await self._send(True, *words, alone=alone)
        except RedisError as error:
            raise self._translated_error(error) from error

    async def exchange(self, commands: Sequence[_Words]) -> list[Any]:
        """The answers to commands that may be sent twice, on one connection and apart from those of the turn: one of
        them may block it. Raises as `command` does."""
        try:
            answers = await self._exchange(commands)
            for answer in answers:
                if isinstance(answer, RedisError):
                    raise answer
        except RedisError as error:
            raise self._translated_error(error) from error
        return answers

    async def _send(self, repeatable: bool, *words: Any, alone: bool = False) -> Any:
        """The answer to one call. Small calls that are made in one turn of the event loop are sent together."""
        if alone or not repeatable or (isinstance(words[-1], bytes) and len(words[-1]) > TOGETHER_BYTES_MAX):
            return (await self._exchange([words], repeatable=repeatable))[0]
        turn = self._turns.get(is_patient())
        if turn is None or turn[1].done():  # done: cancelled before it began
            commands: list[_Words] = []
            turn = self._turns[is_patient()] = commands, asyncio.create_task(self._exchange_turn(commands))
            self._exchanges.add(turn[1])
            turn[1].add_done_callback(self._exchanges.discard)
        commands, task = turn
        number = len(commands)
        commands.append(words)
        answer = (await asyncio.shield(task))[number]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _exchange_turn(self, commands: Sequence[_Words]) -> list[Any]:
        del self._turns[is_patient()]
        return await self._exchange(commands)

    async def _exchange(self, commands: Sequence[_Words], *, repeatable: bool = True) -> list[Any]:
        """The answers to commands in one pipeline. If there are several, errors of the server are among the answers."""

        async def work() -> list[Any]:
            with reaching():
                try:
                    return await _answers(self._present_client, commands)
                except NoConnection as error:
                    # Its subclasses are answers of the server, for example a wrong password: the same again.
                    if not repeatable or type(error) is not NoConnection:
                        raise
                    return await _answers(self._present_client, commands)

        return await self._breaker.call(work, repeatable=repeatable)

    async def close(self) -> None:
        """Close all connections. A call that still connects fails."""
        self._closed = True
        await cancel_all(*self._exchanges)  # one that connects would open its connection after the others have closed
        await self._client.aclose()
        if "_patient_client" in vars(self):
            await self._patient_client.aclose()

    async def _check_server(self, connection: AbstractConnection) -> None:
        """Check the server of every new connection: after a failover it is another one."""
        try:
            await connection.on_connect()
            await self._check(connection)
            if self._closed:
                raise StorageError(f"the memory that used the Redis at {self.address} is closed; open it again")
        except BaseException:
            # If it stayed open, the pool would return it next time without this check.
            await connection.disconnect(nowait=True)
            raise

    async def _check(self, connection: AbstractConnection) -> None:
        try:
            memory = await _answer(connection, "INFO", "memory")
            persistence = await _answer(connection, "INFO", "persistence")
        except NoPermissionError:
            raise StorageError(
                f"the user of the URL of the Redis at {self.address} may not run INFO, which shows whether keys can be "
                "evicted: allow it (ACL SETUSER … +info)"
            ) from None
        policy = _field(memory, "maxmemory_policy")
        if policy != "noeviction":
            raise StorageError(
                f"the Redis at {self.address} has maxmemory-policy {policy!r} and could evict parts of the views "
                "unnoticed: set maxmemory-policy to noeviction, or use a separate Redis for the views"
            )
        # While a server loads its append-only file it reports that it has none.
        loading = _field(persistence, "loading") == "1"
        if (
            not (self._warned or loading)
            and _field(persistence, "aof_enabled") == "0"
            and await _saves_nothing(connection)
        ):
            self._warned = True
            _logger.warning(
                "the Redis at %s stores nothing on disk (appendonly no, save ''): after its restart all views are "
                "built again from the ledger. Set appendonly to yes",
                self.address,
            )

    def _translated_error(self, error: RedisError) -> StorageError:
        text = str(error)
        here = f"the Redis at {self.address}"
        if isinstance(error, AuthenticationError):
            return StorageError(f"{here} refuses the user or the password of its URL ({text}): correct the URL")
        if isinstance(error, NoPermissionError):
            return StorageReadOnly(f"{here} denies its user a command that the store needs ({text}): extend its ACL")
        if isinstance(error, OutOfMemoryError) or "OOM command not allowed" in text:
            return StorageFull(f"{here} has no memory left, nothing was written: raise its maxmemory, then try again")
        if isinstance(error, ReadOnlyError):
            return StorageUnavailable(f"{here} is a replica, perhaps after a failover: use the primary, or try again")
        if isinstance(error, ClusterDownError | TryAgainError) or text.startswith(_REFUSES_WRITES):
            return StorageUnavailable(f"{here} takes no writes now ({text}); try again later")
        if isinstance(error, AskError):
            return StorageError(f"{here} is one of several nodes of a cluster ({text}): use a Redis that has all keys")
        return StorageError(f"{here} refused a call: {text}")


@contextmanager
def reaching() -> Iterator[None]:
    """Raise `Unreachable` for the errors of redis-py after which the same call may succeed on another connection."""
    try:
        yield
    except BusyLoadingError as error:  # after a start, until the append-only file has been read
        raise Unreachable("is still loading its data") from error
    except NoAnswer as error:
        raise Unreachable(f"did not answer in time ({error})") from error
    except NoConnection as error:
        if type(error) is not NoConnection:
            raise
        raise Unreachable(f"cannot be reached ({error})") from error


def _invalid_url(error: Exception) -> SettingsError:
    """The error lacks the text of `error`, which may show a part of a password that is not percent-encoded."""
    return SettingsError(
        "not the URL of a Redis: write redis://[[user]:password@]host[:port][/database] (rediss:// for TLS), with "
        f"special characters of the password percent-encoded ({type(error).__name__})"
    )


async def _answers(client: Redis, commands: Sequence[_Words]) -> list[Any]:
    if len(commands) == 1:  # costs less without a pipeline
        return [await client.execute_command(*commands[0])]  # type: ignore[no-untyped-call]
    async with client.pipeline(transaction=False) as pipeline:
        for words in commands:
            pipeline.execute_command(*words)
        return await pipeline.execute(raise_on_error=False)


async def _answer(connection: AbstractConnection, *words: str) -> Any:
    await connection.send_command(*words)
    return await connection.read_response()


def _field(info: bytes, name: str) -> str:
    for line in info.decode().splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2]
    return ""


async def _saves_nothing(connection: AbstractConnection) -> bool:
    """Whether no snapshots are taken either; False if the server does not permit the question."""
    try:
        answer = await _answer(connection, "CONFIG", "GET", "save")
    except RedisError:
        return False
    return list(answer) == [b"save", b""]
