"""The log of Kafka's client: aiokafka writes a line for each attempt to connect, many per second while a broker is
down.

Its warnings and errors go to the logger `recallog.clients.kafka`, each kind once a minute, with the number of messages
that were left out. Handlers that a program has added to the logger `aiokafka` itself still get all lines.
"""

import logging
import time
from threading import Lock
from typing import Final

REPEAT_SECONDS: Final = 60.0
"""How long further lines of one kind are left out."""

_log = logging.getLogger("recallog.clients.kafka")


class RateLimitedHandler(logging.Handler):
    """Passes on the first line of each kind, and then one per minute. Lines below WARNING are not affected."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}
        """By logger and text without its values: when a line was last passed on, and how many were left out since."""
        self._counting = Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            logging.getLogger().handle(record)
            return
        kind, now = (record.name, str(record.msg)), time.monotonic()
        with self._counting:
            at, left_out = self._kinds.get(kind, (-REPEAT_SECONDS, 0))
            is_passed_on = now - at >= REPEAT_SECONDS
            self._kinds[kind] = (now, 0) if is_passed_on else (at, left_out + 1)
        if is_passed_on:
            more = f" ({left_out:,} more since the last line of this kind)" if left_out else ""
            _log.warning("the client of Kafka: %s%s", record.getMessage(), more)


_handler = RateLimitedHandler()


def limit() -> None:
    """Limit the log of Kafka's client in this process. Can be called again."""
    client = logging.getLogger("aiokafka")
    client.addHandler(_handler)  # once: a logger has a handler at most once
    client.propagate = False
