"""The remote memory: `Remote`, with the operations and facades of `recallog.Memory`."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from recallog.memory import Memory
from recallog.operations import parameters
from recallog.operations.facade import check_arguments
from recallog.operations.routes import AGENT, PREFIX, SPACE
from recallog.remote import streams
from recallog.remote.deriving import RemoteFacade
from recallog.remote.streams import Gap, Tailed
from recallog_schemas.views import Remembered

if TYPE_CHECKING:
    from types import TracebackType

    from httpx import AsyncBaseTransport

DEADLINE_SECONDS = 90.0
"""The default time limit of a call with its repetitions: longer than a server works on one answer (60 s)."""

_EVENTS = f"{PREFIX}{SPACE}/events"
_STREAM = f"{PREFIX}{SPACE}{AGENT}/stream"


class Remote(RemoteFacade, of=Memory):
    """Event-sourced memory of a server: `recallog serve`.

    ```python
    async with Remote("http://127.0.0.1:8765", "rl_…") as memory:
        await memory.publish(Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "Bread!"}))
        print((await memory.episodic("village", "baker")).format())
    ```

    It has the operations, facades, answers and errors of `recallog.Memory`. Methods that are not operations, such as
    those for folders of a workspace, can be used only on the machine of the server. A key may not allow all operations.

    A call that fails temporarily is sent again if that is safe: a call that can be repeated, a call that writes under
    an id (a missing id is filled in), and any call that the server has certainly not begun. Waits double from 0.25 to
    10 s, are random, and last at least as long as the server asks. If it is not known whether a write has happened,
    `UnknownOutcome` is raised.

    Long work such as `admin.rebuild` and `react` continues in the server if the call is cancelled; `progress` is called
    with its progress.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        transport: "AsyncBaseTransport | None" = None,
        telemetry: bool = False,
    ) -> None:
        """The memory behind a URL such as `http://127.0.0.1:8765`; it is connected on first use.

        `key` is a key of `recallog keys create`, or a JWT. `deadline_seconds` is the time limit of a call with its
        repetitions (jobs may take longer), and of a stream's attempts to reconnect. `transport` is a transport of
        httpx, for example a proxy or an application in this process. With `telemetry`, calls have OpenTelemetry spans,
        which are the parents of the server's spans.

        Raises `InvalidArgument`, and `SettingsError` if OpenTelemetry is needed and not installed.
        """
        from recallog.remote.connection import ServerConnection

        tracing = None
        if telemetry:
            from recallog_streams.tracing import Tracing

            tracing = Tracing(remote=True)
        super().__init__(ServerConnection(url, key, deadline_seconds, transport, tracing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Nothing is lost if it is never called."""
        await self._connection.close()

    @check_arguments
    async def tail(self, space: parameters.Space, *, start: parameters.FirstPosition = None) -> "AsyncIterator[Tailed]":
        """The events of a space from `start` on, as they come; without `start`, from now on.

        It continues after interruptions, without gaps and repeats. The key must allow `tail`.

        Raises `OutOfRange` if the ledger ends before `start`.
        """
        path = _EVENTS.format(space=quote(space, safe=""))
        async with aclosing(streams.tail(self._connection, path, parameters.position(start))) as found:
            async for each in found:
                yield each

    @check_arguments
    async def seen(
        self, space: parameters.Space, agent: parameters.Agent, *, start: parameters.FirstPosition = None
    ) -> "AsyncIterator[Remembered | Gap]":
        """The events that an agent may see, as they come, from `start` on; without `start`, from now on.

        It continues after interruptions, without repeats. A `Gap` stands for events that the views have dropped before
        they were read.

        Raises `OutOfRange` if the ledger ends before `start`.
        """
        path = _STREAM.format(space=quote(space, safe=""), agent=quote(agent, safe=""))
        async with aclosing(streams.follow_seen(self._connection, path, parameters.position(start))) as found:
            async for each in found:
                yield each
