"""What the chaos run makes of the records of its processes: histories of lists, and the latencies of promises."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos import history
from chaos.evidence import TopicRecord
from chaos.latencies import AFTER_FAULT_SECONDS, Faults
from chaos.lists import Lists, find_anomalies, lists_of_topic, read_histories

pytestmark = pytest.mark.models("all")

SPACE = "list-0"


def record(offset: int, value: str, agent: str, *audience: str) -> TopicRecord:
    fields = {"space": SPACE, "id": value, "agent": agent, "audience": audience or None, "payload": {"value": value}}
    return TopicRecord(offset, SPACE.encode(), json.dumps(fields).encode())


def invoked(op: str, time: int, kind: str = "append", **more: Any) -> dict[str, Any]:
    return {"what": "invoked", "op": op, "process": "p", "kind": kind, "space": SPACE, "time": time, **more}


def ended(op: str, time: int, outcome: str = "ok", **more: Any) -> dict[str, Any]:
    return {"what": outcome, "op": op, "time": time, **more}


def found(folder: Path, lines: Sequence[dict[str, Any]], last: Lists, **end: Lists) -> list[str]:
    written = history.Writer(history.path_of(folder, "appender-1"))
    for line in lines:
        written.note(**line)
    return [*find_anomalies(read_histories(folder, ["appender-1"], last, end))]


LINES = [
    invoked("1", 10, appended=[["x", ["baker", "miller"]]]),
    ended("1", 20),
    invoked("2", 30, "read", reader="after", sees=["x"]),
    ended("2", 40, lists={"miller": ["x"]}),
    invoked("3", 50, appended=[["y", ["baker"]]]),
    ended("3", 60, "unknown"),
    invoked("4", 70, appended=[["z", ["baker"]]]),  # killed
]
LAST = {SPACE: {"baker": ["x", "z"], "miller": ["x"]}}


def test_lists_are_the_first_records_of_their_events() -> None:
    topic = {0: [record(0, "x", "baker", "miller"), record(1, "z", "baker"), record(2, "x", "baker", "miller")]}
    assert lists_of_topic(topic) == LAST


def test_the_records_of_a_right_history_have_no_anomaly(tmp_path: Path) -> None:
    assert found(tmp_path, LINES, LAST, views=LAST) == []


@pytest.mark.parametrize(
    ("number", "line", "anomaly"),
    [
        (3, ended("2", 40, lists={"miller": []}), "not waited for"),
        (3, ended("2", 5, lists={"miller": ["x"]}), "unknown value"),
        (5, ended("3", 60), "lost"),
        (0, invoked("1", 10, appended=[["x", ["baker", "smith"]]]), "unknown value"),
    ],
)
def test_a_wrong_record_is_an_anomaly(tmp_path: Path, number: int, line: dict[str, Any], anomaly: str) -> None:
    lines = [*LINES[:number], line, *LINES[number + 1 :]]
    assert found(tmp_path, lines, LAST)[0].startswith(f"{SPACE}: {anomaly}: ")


def test_views_that_lack_an_event_at_the_end_are_an_anomaly(tmp_path: Path) -> None:
    views = {SPACE: {"baker": [], "miller": ["x"]}}
    assert found(tmp_path, LINES, LAST, views=views)[0].startswith(f"{SPACE}: G-single: ")


def test_a_run_without_lists_is_a_finding(tmp_path: Path) -> None:
    assert found(tmp_path, [], {}) == ["nothing was appended to lists"]


def test_a_promise_counts_long_after_faults_and_not_before_or_during_one() -> None:
    faults = Faults(begun=[100.0, 200.0], ended=[110.0, 210.0])
    calm = [moment for moment in range(0, 300, 5) if faults.is_calm(moment)]
    after_first = 110 + int(AFTER_FAULT_SECONDS)
    assert calm == [*range(0, 95, 5), *range(after_first, 195, 5), *range(after_first + 100, 300, 5)]
    faults.begun.append(250.0)
    assert not any(map(faults.is_calm, range(250, 1_000)))
