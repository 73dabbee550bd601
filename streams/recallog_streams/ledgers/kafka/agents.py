"""The agents: a Faust app that consumes the topic of triggers.

It is a separate app inside the worker. If Faust's clients fail, for example while the cluster is unreachable, this app
is replaced, and the views, `/health` and `/metrics` of the worker are not affected.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

import faust

from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import fetch_times
from recallog_streams.ledgers.kafka.group import HEARTBEAT_SECONDS, SESSION_SECONDS
from recallog_streams.ledgers.trigger_queue import QueueFailed

START_SECONDS = 30.0
STOP_SECONDS = 10.0
"""How long the app may take to start, and to stop. It takes longer only if the cluster is unreachable."""
METADATA_SECONDS = 10.0
"""How often the topics of the cluster are read. A broker that has just started may not know them yet: a group that then
assigns no partitions gets them after the next read. Faust's own value is 5 minutes."""
FETCHING_SECONDS = 30.0
"""How long a partition of this process may stay without a fetch while the coordinator of the group is known. After a
broker had failed during a rebalance, Faust has reported that it is ready, and fetched nothing for minutes."""
_CHECK_SECONDS = 0.2
_SASL = "SASL"


class _Agents(faust.App):
    def _create_directories(self) -> None:
        """Creates none: a worker writes no files."""


class _WithoutProducer(faust.app.base.BootStrategy):
    """Agents publish only through the ledger."""

    enable_kafka_producer = False
    enable_web = False


_Agents.BootStrategy = _WithoutProducer


def app_of(address: KafkaAddress, group: str, topic: str, handle: Callable[[bytes | None], None]) -> faust.App:
    """The app whose agent calls `handle` with the messages of `topic` as a member of a consumer group."""
    app = _Agents(
        group,
        broker=[f"kafka://{server}" for server in address.servers],
        broker_credentials=_credentials(address),
        broker_session_timeout=SESSION_SECONDS,
        broker_heartbeat_interval=HEARTBEAT_SECONDS,
        consumer_metadata_max_age_ms=int(1_000 * METADATA_SECONDS),
        # Messages that were sent before the group existed are sent again.
        consumer_auto_offset_reset="latest",
        store="memory://",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        # A rebalance does not wait for a model: another process may call it again, and one answer counts.
        stream_wait_empty=False,
        stream_ack_cancelled_tasks=False,
    )
    messages = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def consume(stream: Any) -> None:
        async for data in stream:
            handle(data)

    app.agent(messages, name="reactors")(consume)
    return app


async def run(app: faust.App, started: Callable[[], None]) -> None:
    """Run an app until cancelled; `started` is called once its agents consume. Raises `QueueFailed`, also if the agents
    fetch nothing."""
    try:
        async with asyncio.timeout(START_SECONDS):
            await app.start()
        started()
        fetches = _Fetches()
        while not app.crashed:
            await asyncio.sleep(_CHECK_SECONDS)
            fetches.check(fetch_times(app.consumer._thread._consumer))  # type: ignore[attr-defined]
    except QueueFailed:
        raise
    except Exception as error:
        raise QueueFailed(f"the agents cannot start: {error!r}") from error
    else:
        raise QueueFailed(f"the agents have failed: {app.crash_reason!r}")
    finally:
        with suppress(Exception):
            async with asyncio.timeout(STOP_SECONDS):
                await app.stop()


class _Fetches:
    """When the partitions of a consumer were last fetched, by the times that the consumer keeps."""

    def __init__(self) -> None:
        self._seen: Mapping[tuple[str, int], tuple[int | None, float]] = {}

    def check(self, fetched: Mapping[tuple[str, int], int | None]) -> None:
        """Raise `QueueFailed` if a partition has not been fetched for `FETCHING_SECONDS`."""
        now, before = monotonic(), self._seen
        self._seen = {
            key: before[key] if key in before and before[key][0] == at else (at, now) for key, at in fetched.items()
        }
        for (topic, partition), (_, since) in self._seen.items():
            if now - since > FETCHING_SECONDS:
                raise QueueFailed(
                    f"the agents have not fetched partition {partition} of {topic} for {FETCHING_SECONDS:.0f} "
                    "seconds; they are started again"
                )


def _credentials(address: KafkaAddress) -> Any:
    context = address.connection().get("ssl_context")
    if address.security_protocol.startswith(_SASL):
        return faust.SASLCredentials(
            username=address.username,
            password=address.password,
            mechanism=address.sasl_mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)
