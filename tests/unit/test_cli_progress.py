"""Progress of long work where stderr is not a terminal: a plain line every 10 seconds."""

from itertools import count
from types import SimpleNamespace

import pytest

from recallog_service.cli import terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of the clock is 4 seconds after the one before."""
    times = count(100.0, 4.0)
    monkeypatch.setattr("recallog_service.cli.terminal.time", SimpleNamespace(monotonic=lambda: next(times)))


@pytest.mark.usefixtures("clock")
def test_long_work_prints_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.bar("indexing") as advance:
        for done in range(0, 8_000, 1_000):
            advance(done, 10_000)
    assert capsys.readouterr() == (
        "",
        "indexing: 30 %, 3,000 of 10,000 events, 250 events/s\nindexing: 60 %, 6,000 of 10,000 events, 250 events/s\n",
    )


@pytest.mark.usefixtures("clock")
def test_of_work_of_unknown_size_only_the_count_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.bar("ingesting chats.json", "lines") as advance:
        for done in range(0, 4_000, 1_000):
            advance(done, done)
    assert capsys.readouterr().err == "ingesting chats.json: 3,000 lines, 250 lines/s\n"


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.bar("indexing") as advance:
        for done in range(100):
            advance(done, 100)
    assert capsys.readouterr() == ("", "")
