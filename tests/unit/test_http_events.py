"""Publishing to a space over HTTP, as one event, a list and CloudEvents, and pages of its raw events."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Settings
from recallog_schemas import codec, limits
from recallog_service.http import events
from support.events import event, numbered, one_loop, run
from support.http import Door, problem

EVENTS = "/v1/spaces/village/events"
FIELDS: Mapping[str, Any] = {"agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
CLOUD: Mapping[str, Any] = {
    "specversion": "1.0",
    "id": "c-1",
    "source": "baker",
    "type": "agent.spoke",
    "time": "2026-03-01T12:00:00Z",
    "subject": "anna",
    "session": "s-1",
    "turn": 3,
    "audience": "miller, widow",
    "correlationid": "r-1",
    "datacontenttype": "application/json",
    "data": {"text": "Bread!"},
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(tmp_path)
    with one_loop():
        yield opened
        run(opened.close())


@pytest.fixture
def door(memory: Memory, tmp_path: Path) -> Door:
    return Door(memory, Settings(home=tmp_path))


def stored(door: Door) -> list[dict[str, Any]]:
    """The events of the space, as the ledger has them."""
    return [item["event"] for item in door.get(EVENTS).json()["items"]]


def test_an_event_and_a_list_are_answered_by_their_durable_positions(door: Door) -> None:
    one = door.post(EVENTS, FIELDS)
    assert (one.status_code, one.json()) == (201, {"items": [{"partition": 0, "offset": 0}]})
    several = door.post(EVENTS, [FIELDS, {**FIELDS, "id": "e-7", "space": "village"}])
    assert [each["offset"] for each in several.json()["items"]] == [1, 2]
    assert door.post(EVENTS, {**FIELDS, "id": "e-7"}).json()["items"][0]["offset"] == 2
    assert [each["space"] for each in stored(door)] == ["village"] * 3


def test_a_page_decodes_what_it_shows_and_one_more(memory: Memory, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    run(memory.publish_many(numbered(500)))
    decoded, decode = 0, codec.decode

    def counted(data: bytes) -> Event:
        nonlocal decoded
        decoded += 1
        return decode(data)

    monkeypatch.setattr(codec, "decode", counted)
    page = door.get(f"{EVENTS}?limit=5").json()
    assert (len(page["items"]), page["next"], decoded) == (5, "0:5", 6)


def test_pages_are_read_from_one_batch_and_go_on_behind_it(
    memory: Memory, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "READ_BATCH_RECORDS", 10)
    run(memory.publish_many([*numbered(35), *numbered(15, space="city")]))
    sizes, turns, following = [], list[int](), "0:0"
    while following is not None:
        page = door.get(f"{EVENTS}?start={following}").json()
        sizes.append(len(page["items"]))
        turns += [item["event"]["turn"] for item in page["items"]]
        following = page["next"]
    assert sizes == [10, 10, 10, 5]
    assert turns == list(range(35))


def test_all_events_of_a_request_are_written_or_none(door: Door) -> None:
    wrong = door.post(EVENTS, [FIELDS, {**FIELDS, "payload": {"text": 5}}])
    assert problem(wrong) == (422, "InvalidEvent", "1.payload.text")
    assert stored(door) == []


def test_an_event_of_another_space_than_the_path_is_refused(door: Door) -> None:
    assert problem(door.post(EVENTS, [FIELDS, {**FIELDS, "space": "city"}])) == (422, "InvalidEvent", "1.space")


@pytest.mark.parametrize("body", [b"3", b'"text"', b"[3]", b"null", b"", b"{", b"[[]]"])
def test_what_is_no_event_is_refused(door: Door, body: bytes) -> None:
    assert problem(door.send(EVENTS, body))[0] == 422


def test_a_cloud_event_is_an_event_in_each_of_its_three_forms(door: Door) -> None:
    structured = {**CLOUD}
    assert door.send(EVENTS, json.dumps(structured).encode(), "application/cloudevents+json").status_code == 201
    batch = [{**CLOUD, "id": "c-2"}, {**CLOUD, "id": "c-3"}]
    assert door.send(EVENTS, json.dumps(batch).encode(), "application/cloudevents-batch+json").status_code == 201
    headers = {f"ce_{name}": str(value) for name, value in CLOUD.items() if name not in ("data", "datacontenttype")}
    binary = {**headers, "ce_id": "c-4"}
    assert door.send(EVENTS, json.dumps(CLOUD["data"]).encode(), "application/json", **binary).status_code == 201
    expected = {
        "envelope": 1,
        "space": "village",
        "session": "s-1",
        "agent": "baker",
        "kind": "agent.spoke",
        "turn": 3,
        "at": "2026-03-01T12:00:00Z",
        "schema_version": 1,
        "payload": {"text": "Bread!"},
        "subject": "anna",
        "audience": ["miller", "widow"],
        "correlation_id": "r-1",
    }
    found = {each.pop("id"): each for each in stored(door)}
    assert found == dict.fromkeys(["c-1", "c-2", "c-3", "c-4"], expected)


def test_a_cloud_event_that_is_text_is_a_payload_with_this_text(door: Door) -> None:
    headers = {"ce_specversion": "1.0", "ce_id": "c-1", "ce_source": "baker", "ce_type": "agent.spoke"}
    assert door.send(EVENTS, "Brot für Anna".encode(), "text/plain", **headers).status_code == 201
    assert stored(door)[0]["payload"] == {"text": "Brot für Anna"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"source": None}, "agent"),
        ({"color": "red"}, "color"),
        ({"type": "Spoke"}, "kind"),
        ({"data": [1]}, "payload"),
        ({"data_base64": "eA=="}, "data_base64"),
    ],
)
def test_a_cloud_event_that_cannot_be_an_event_is_refused(door: Door, change: dict[str, Any], path: str) -> None:
    answer = door.send(EVENTS, json.dumps({**CLOUD, **change}).encode(), "application/cloudevents+json")
    assert problem(answer) == (422, "InvalidEvent", path)


@pytest.mark.parametrize("fields", [{"agent": None}, {"kind": "Spoke"}, {"space": "city"}])
def test_the_error_of_a_single_event_has_no_index(door: Door, fields: dict[str, Any]) -> None:
    sent = {"agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}, **fields}
    (path,) = fields
    for body, expected in ((sent, path), ([sent], f"0.{path}")):
        answer = door.send(EVENTS, json.dumps(body).encode(), "application/json")
        assert problem(answer) == (422, "InvalidEvent", expected)
        assert answer.json()["detail"].startswith(f"{expected}: ")


def test_pages_of_a_space_have_its_events_alone_in_order(memory: Memory, door: Door) -> None:
    run(memory.publish_many([each for n in range(7) for each in (event(turn=n), event(space="city"))]))
    seen, start = [], "0:0"
    while start is not None:
        page = door.get(EVENTS, {"start": start, "limit": 3}).json()
        seen += [(item["position"], item["event"]["turn"]) for item in page["items"]]
        start = page["next"]
    assert seen == [(f"0:{2 * n}", n) for n in range(7)]


def test_a_page_of_large_events_has_fewer(memory: Memory, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAGE_BYTES", 1_000)
    run(memory.publish_many([event(turn=n, payload={"text": "x" * 600}) for n in range(3)]))
    seen, start = [], "0:0"
    while start is not None:
        page = door.get(EVENTS, {"start": start}).json()
        seen.append([item["event"]["turn"] for item in page["items"]])
        start = page["next"]
    assert seen == [[0], [1], [2]]


def test_a_page_says_what_is_wrong_with_its_arguments(door: Door) -> None:
    assert problem(door.get(EVENTS, {"limit": 0})) == (422, "InvalidArgument", "limit")
    assert problem(door.get(EVENTS, {"start": "noon"})) == (422, "InvalidArgument", "start")
    assert problem(door.get(EVENTS, {"strat": "0:1"})) == (422, "InvalidArgument", "strat")
    assert problem(door.get(EVENTS, {"start": "3:0"})) == (404, "OutOfRange", "start")


def test_a_record_that_is_no_event_is_left_out_of_a_page(memory: Memory, door: Door) -> None:
    run(memory.publish_many(numbered(2)))
    assert len(stored(door)) == 2
