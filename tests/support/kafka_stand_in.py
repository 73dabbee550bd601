"""A broker that only says which requests it knows and describes itself: clients connect to it, and nothing more."""

import asyncio
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from struct import Struct

from aiokafka.protocol.admin import ApiVersionRequest, ApiVersionResponse_v0
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v1

VERSIONS = ApiVersionRequest.API_KEY
METADATA = MetadataRequest.API_KEY
COORDINATOR = FindCoordinatorRequest.API_KEY
TOPIC = "events"
BROKER = 1
"""The id of the broker."""
_LENGTH, _HEAD = Struct(">i"), Struct(">hhi")


class KafkaStandIn:
    """Answers in an event loop of its own. It leaves requests of the kinds in `silent` without an answer, and does not
    even read those in `unread`, and what follows them."""

    def __init__(self) -> None:
        self.port = 0
        self.silent: Collection[int] = ()
        self.unread: Collection[int] = ()
        self.known = {VERSIONS: 0, METADATA: 1}
        """The latest version of each kind of request that it says it knows."""
        self.asked: list[int] = []
        """The kinds of the requests that arrived."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(EOFError, ConnectionError):
            while True:
                (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                kind, _, number = _HEAD.unpack(await reader.readexactly(_HEAD.size))
                self.asked.append(kind)
                if kind in self.unread:
                    await asyncio.Event().wait()
                await reader.readexactly(length - _HEAD.size)
                answer = None if kind in self.silent else self._answer(kind)
                if answer is not None:
                    writer.write(_LENGTH.pack(_LENGTH.size + len(answer)) + _LENGTH.pack(number) + answer)

    def _answer(self, kind: int) -> bytes | None:
        if kind == VERSIONS:
            return ApiVersionResponse_v0(0, [(each, 0, latest) for each, latest in self.known.items()]).encode()
        if kind == METADATA:
            topic = (0, TOPIC, False, [(0, 0, BROKER, [BROKER], [BROKER])])
            return MetadataResponse_v1([(BROKER, "127.0.0.1", self.port, None)], BROKER, [topic]).encode()
        return None

    async def run(self, started: threading.Event, ended: asyncio.Event) -> None:
        """Serve until `ended`."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await ended.wait()
        server.close()


@contextmanager
def kafka_stand_in() -> Iterator[KafkaStandIn]:
    """A broker in a thread."""
    broker, started, ended = KafkaStandIn(), threading.Event(), asyncio.Event()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=runner.run, args=(broker.run(started, ended),))
        thread.start()
        started.wait()
        try:
            yield broker
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()
