"""The log of Kafka's client: a line of each kind a minute, with the number of lines that were left out."""

import logging
from collections.abc import Iterator

import pytest

from recallog_streams.ledgers.kafka import client_log

CLIENT = logging.getLogger("aiokafka.conn")


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A log that has passed on nothing yet."""
    client, handler = logging.getLogger("aiokafka"), client_log.RateLimitedHandler()
    client.removeHandler(client_log._handler)
    monkeypatch.setattr(client_log, "_handler", handler)
    client_log.limit()
    yield
    client.removeHandler(handler)


def passed_on(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of our logger. pytest listens to that of the client too."""
    ours = [record for record in caplog.records if record.name == "recallog.clients.kafka"]
    assert all(record.levelno == logging.WARNING for record in ours)
    return [record.getMessage() for record in ours]


def refuse(times: int, port: int = 9092) -> None:
    for _ in range(times):
        CLIENT.error("Unable to connect to %s: %s", port, ConnectionRefusedError())


def test_many_refused_connections_are_one_line_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    client_log.limit()  # as each further ledger does
    refuse(1_000)
    (line,) = passed_on(caplog)
    assert "Unable to connect to 9092" in line


def test_the_next_line_says_how_many_were_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(5)
    monkeypatch.setattr(client_log, "REPEAT_SECONDS", 0.0)
    refuse(1, port=9093)
    assert "connect to 9093" in passed_on(caplog)[-1]
    assert "(4 more since the last line of this kind)" in passed_on(caplog)[-1]


def test_lines_of_another_kind_are_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    refuse(2)
    CLIENT.warning("Topic %s is not available", "events")
    assert len(passed_on(caplog)) == 2


def test_a_handler_of_the_clients_own_logger_gets_all_lines() -> None:
    seen: list[logging.LogRecord] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    collecting = Collecting()
    logging.getLogger("aiokafka").addHandler(collecting)
    refuse(3)
    logging.getLogger("aiokafka").removeHandler(collecting)
    assert len(seen) == 3
