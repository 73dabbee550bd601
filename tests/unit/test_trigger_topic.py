"""What the topic of triggers says when Kafka refuses a message."""

from typing import Any, NoReturn

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError, KafkaError, TopicAuthorizationFailedError

from recallog_schemas.errors import StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.doorbells import TriggerTopic
from recallog_streams.ledgers.trigger_queue import Doorbell
from support.events import run

SERVER = "127.0.0.1:1"


class RefusedProducer(AIOKafkaProducer):
    """A client of a broker that refuses each message."""

    def __init__(self, refusal: KafkaError) -> None:
        super().__init__(bootstrap_servers=SERVER)
        self._refusal = refusal

    async def send(self, *_: Any, **__: Any) -> NoReturn:
        raise self._refusal


async def one_partition() -> int:
    return 1


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        (InvalidTimestampError("recallog.triggers-0"), "the clock of this machine.*message.timestamp.after.max.ms"),
        (TopicAuthorizationFailedError("recallog.triggers"), "does not allow this user writing them.*Grant it"),
    ],
)
def test_a_refused_trigger_is_reported_with_what_to_do(refusal: KafkaError, advice: str) -> None:
    """It once said, for any reason: is Kafka running?"""

    async def scenario() -> None:
        topic = TriggerTopic(KafkaAddress.parse(f"kafka://{SERVER}/recallog.events"), one_partition)
        topic._producer = RefusedProducer(refusal)
        try:
            with pytest.raises(StorageUnavailable, match=f"cannot be written to recallog.triggers: .*{advice}"):
                await topic.send([Doorbell("village", "baker", "a trigger")])
        finally:
            await topic.close()

    run(scenario())
