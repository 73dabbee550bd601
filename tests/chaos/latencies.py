"""How long triggers take: from the moment when a promise is in the topic to the moment when its answer is there."""

import threading
import time
from dataclasses import dataclass, field

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.appends import PREFIX, PROMISE

AFTER_FAULT_SECONDS = 30.0
"""A trigger counts from this long after the last fault on."""
P99_SECONDS_MAX = 5.0

_BEFORE_FAULT_SECONDS = P99_SECONDS_MAX
"""A trigger does not count if a fault begins within this time after it: whether it was answered before would decide."""
_POLL_SECONDS = 0.1
_ANSWER = "agent.thought"


@dataclass(slots=True)
class Faults:
    """The periods in which something was down or stopped, by the monotonic clock."""

    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    def begin(self) -> None:
        self.begun.append(time.monotonic())

    def end(self) -> None:
        self.ended.append(time.monotonic())

    def is_calm(self, at: float) -> bool:
        """Whether the moment is long enough after each fault that has begun before it, and before the next one."""
        if any(
            at - AFTER_FAULT_SECONDS < moment <= at + _BEFORE_FAULT_SECONDS for moment in (*self.begun, *self.ended)
        ):
            return False
        return sum(moment <= at for moment in self.begun) == sum(moment <= at for moment in self.ended)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the triggers that were due in calm."""

    triggers: int
    """All that were due in the run."""
    calm: int
    """How many of them count."""
    p50_seconds: float
    p99_seconds: float
    max_seconds: float
    longest_seconds: float
    """Of all triggers of the run, in calm or not."""


class TopicTail:
    """Reads the topic to its end all the time, with another client than Recallog's, and notes when records arrive."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.due: dict[str, float] = {}
        """By the text of the promise: when it arrived."""
        self.answered: dict[str, float] = {}
        """By the text of the promise: when its first answer arrived."""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos-tail",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail of the topic", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                messages = self._consumer.consume(1_000, timeout=_POLL_SECONDS)
            except KafkaException:
                continue  # the broker is down
            now = time.monotonic()
            for message in messages:
                value = message.value()
                if message.error() is None and isinstance(value, bytes):
                    self._note(value, now)

    def _note(self, value: bytes, now: float) -> None:
        event = msgspec.json.decode(value)
        text = str(event.get("payload", {}).get("text", ""))
        if event["space"].startswith(PREFIX) and text.startswith(PROMISE):
            (self.answered if event["kind"] == _ANSWER else self.due).setdefault(text, now)

    def latencies(self, faults: Faults) -> Latencies | None:
        """The figures; None if no trigger counts."""
        taken = {text: self.answered[text] - due for text, due in self.due.items() if text in self.answered}
        calm = sorted(seconds for text, seconds in taken.items() if faults.is_calm(self.due[text]))
        if not calm:
            return None
        return Latencies(
            len(self.due),
            len(calm),
            p50_seconds=calm[len(calm) // 2],
            p99_seconds=calm[min(len(calm) - 1, len(calm) * 99 // 100)],
            max_seconds=calm[-1],
            longest_seconds=max(taken.values()),
        )
